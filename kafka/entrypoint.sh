#!/usr/bin/env bash
# Writes the broker's addresses below the common settings, formats an empty data directory, then becomes the broker.
# KAFKA_PORT: the port at which programs on the host reach it. KAFKA_HEAP: the size of its heap, such as 512m.
# KAFKA_SECURE: true in the secure stack; the certificates are in /run/secrets then.
set -euo pipefail
settings=/run/kafka/server.properties
data=/var/lib/kafka/data

# Each client is told the address that it can reach: HOST is for programs on the host, the others for the stack's own
# network.
listeners=HOST://:29092,CONTROLLER://127.0.0.1:9093
advertised=HOST://127.0.0.1:${KAFKA_PORT:?is not set}
{
    cat server.properties
    if [ "${KAFKA_SECURE:-}" = true ]; then
        echo "listeners=CLIENT://:9092,BROKER://:9094,$listeners"
        echo "advertised.listeners=CLIENT://kafka:9092,BROKER://kafka:9094,$advertised"
        cat secure.properties
    else
        echo "listeners=BROKER://:9092,$listeners"
        echo "advertised.listeners=BROKER://kafka:9092,$advertised"
        echo listener.security.protocol.map=BROKER:PLAINTEXT,HOST:PLAINTEXT,CONTROLLER:PLAINTEXT
    fi
    echo "log.dirs=$data"
} >"$settings"

jvm=(-Dlog4j2.configurationFile=/opt/kafka/log4j2.properties -cp '/opt/kafka/libs/*')
if [ ! -e "$data/meta.properties" ]; then
    quick=(-XX:TieredStopAtLevel=1 -XX:+UseSerialGC)
    tool=kafka.tools.StorageTool
    id=$(java "${quick[@]}" "${jvm[@]}" "$tool" random-uuid)
    java "${quick[@]}" "${jvm[@]}" "$tool" format --cluster-id "$id" --config "$settings"
fi

# G1 with a short pause goal is Kafka's own choice. The agent serves the broker's figures on port 9404.
exec java "-Xms${KAFKA_HEAP:?is not set}" "-Xmx$KAFKA_HEAP" \
    -XX:+UseG1GC -XX:MaxGCPauseMillis=20 -XX:+ExitOnOutOfMemoryError \
    "-javaagent:$(echo /opt/kafka/jmx/*.jar)=9404:/opt/kafka/exporter.yml" \
    "${jvm[@]}" kafka.Kafka "$settings"
