#!/usr/bin/env bash
# Writes the broker's addresses below the common settings, formats an empty data directory, then becomes the broker.
# KAFKA_PORT: the port at which programs on the host reach it. KAFKA_HEAP: the size of its heap, such as 512m.
# BROKERS: 1, or 3 of one cluster, of which this is KAFKA_NODE.
# KAFKA_SECURE: true in the secure stack; the certificates are in /run/secrets then.
set -euo pipefail
settings=/run/kafka/server.properties
data=/var/lib/kafka/data

# Each client is told the address that it can reach: HOST is for programs on the host, the others for the stack's own
# network.
listeners=HOST://:29092,CONTROLLER://127.0.0.1:9093
advertised=HOST://127.0.0.1:${KAFKA_PORT:?is not set}
name=kafka
if [ "${BROKERS:?is not set}" = 3 ]; then
    name=kafka-${KAFKA_NODE:?is not set}
    listeners=HOST://:29092,CONTROLLER://:9093
fi
{
    cat server.properties
    if [ "$BROKERS" = 3 ]; then
        cat replicated.properties
        echo "node.id=$KAFKA_NODE"
        echo "broker.rack=rack-$KAFKA_NODE"
        echo controller.quorum.voters=1@kafka-1:9093,2@kafka-2:9093,3@kafka-3:9093
    fi
    if [ "${KAFKA_SECURE:-}" = true ]; then
        echo "listeners=CLIENT://:9092,BROKER://:9094,$listeners"
        echo "advertised.listeners=CLIENT://$name:9092,BROKER://$name:9094,$advertised"
        cat secure.properties
    else
        echo "listeners=BROKER://:9092,$listeners"
        echo "advertised.listeners=BROKER://$name:9092,$advertised"
        echo listener.security.protocol.map=BROKER:PLAINTEXT,HOST:PLAINTEXT,CONTROLLER:PLAINTEXT
    fi
    echo "log.dirs=$data"
} >"$settings"

jvm=(-Dlog4j2.configurationFile=/opt/kafka/log4j2.properties -cp '/opt/kafka/libs/*')
if [ ! -e "$data/meta.properties" ]; then
    echo "$BROKERS" >/var/lib/kafka/brokers
    quick=(-XX:TieredStopAtLevel=1 -XX:+UseSerialGC)
    tool=kafka.tools.StorageTool
    # Three have to agree.
    id=three-brokers-AAAAAAAA
    [ "$BROKERS" = 3 ] || id=$(java "${quick[@]}" "${jvm[@]}" "$tool" random-uuid)
    java "${quick[@]}" "${jvm[@]}" "$tool" format --cluster-id "$id" --config "$settings"
fi

# Data of before there was a choice are those of one.
made_for=$(cat /var/lib/kafka/brokers 2>/dev/null || echo 1)
if [ "$made_for" != "$BROKERS" ]; then
    echo "BROKERS=$BROKERS: the data of this broker are those of BROKERS=$made_for, and a cluster's controllers can't be" \
        "changed by a setting: set BROKERS=$made_for, or begin anew (\`fraud-filter down --volumes\` removes all data)" >&2
    exit 2
fi

# G1 with a short pause goal is Kafka's own choice. The agent serves the broker's figures on port 9404.
exec java "-Xms${KAFKA_HEAP:?is not set}" "-Xmx$KAFKA_HEAP" \
    -XX:+UseG1GC -XX:MaxGCPauseMillis=20 -XX:+ExitOnOutOfMemoryError \
    "-javaagent:$(echo /opt/kafka/jmx/*.jar)=9404:/opt/kafka/exporter.yml" \
    "${jvm[@]}" kafka.Kafka "$settings"
