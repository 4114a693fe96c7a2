#!/usr/bin/env bash
# master | worker | any other command, such as the driver's. All of them find Spark's settings in a memory file system,
# where the secrets are added: they are on no command line. In the secure stack they come as files (SPARK_SECRET_FILE,
# SPARK_UI_KEY_FILE), and the web pages ask for a token that is signed with the key.
set -euo pipefail
settings=/run/spark/spark-defaults.conf

add() { echo "$1 $2" >>"$settings"; }

umask 077
cp /etc/spark/spark-defaults.conf "$settings"
# The most task slots that the driver asks for, where it is not to ask for what its query needs.
[ -z "${SPARK_CORES_MAX:-}" ] || add spark.cores.max "$SPARK_CORES_MAX"
# The master gives an application as few workers as can hold it: a worker has memory for one executor alone.
[ "${STANDBY:-0}" = 0 ] || add spark.deploy.spreadOutApps false
[ -z "${SPARK_SECRET_FILE:-}" ] || SPARK_SECRET=$(<"$SPARK_SECRET_FILE")
[ -z "${SPARK_SECRET:-}" ] || add spark.authenticate.secret "$SPARK_SECRET"
if [ -n "${SPARK_SECRET_FILE:-}" ]; then
    # Every page of every Spark program. Who is given no key has one that nobody knows: its page is closed.
    filter=org.apache.spark.ui.JWSFilter
    add spark.ui.filters "$filter"
    key=$(head -c 32 /dev/urandom | base64 | tr '+/' _-)
    [ -z "${SPARK_UI_KEY_FILE:-}" ] || key=$(<"$SPARK_UI_KEY_FILE")
    add "spark.$filter.param.secretKey" "$key"
    # What is written to local disks.
    add spark.io.encryption.enabled true
fi
unset SPARK_SECRET SPARK_SECRET_FILE SPARK_UI_KEY_FILE SPARK_CORES_MAX

# A worker and a driver are in Kafka's network, too: Spark's ports are open in the network where the master is, and its
# programs tell each other this address.
where='
import socket, sys
way = socket.socket(type=socket.SOCK_DGRAM)
way.connect((sys.argv[1], 1))
print(way.getsockname()[0])
'
open_in_spark_s_network() {
    local host=${SPARK_MASTER#spark://}
    SPARK_LOCAL_IP=$(python3 -c "$where" "${host%:*}" 2>/dev/null) || return 0  # the program says it better
    export SPARK_LOCAL_IP
    add spark.driver.host "$SPARK_LOCAL_IP"
}
case "${1:-} ${2:-} ${SPARK_MASTER:-}" in
    "worker  spark://"*)
        # A master that still recovers would take it for the worker that had its address before, and never register it
        # (Worker.scala, MasterChanged): both stay as they are permanently.
        until healthcheck recovered >/dev/null 2>&1; do sleep 0.5; done
        open_in_spark_s_network ;;
    "fraud-filter run spark://"*) open_in_spark_s_network ;;
esac

# What Java says of itself, for Prometheus. Each option is for the process named alone: no executor gets it, and no
# program that somebody runs in the container.
agent=-javaagent:$(echo /opt/jmx/*.jar)=${SPARK_LOCAL_IP:-0.0.0.0}:9404:/etc/spark/exporter.yml
# Every Java starts in half the time with the classes that the image has loaded.
archive="-XX:SharedArchiveFile=/opt/classes.jsa -Xlog:cds=off -Xlog:cds+dynamic=off"
export SPARK_DAEMON_JAVA_OPTS="$archive -Dlog4j2.configurationFile=file:/etc/spark/log4j2.properties"
add spark.executor.extraJavaOptions "$SPARK_DAEMON_JAVA_OPTS"
export SPARK_SUBMIT_OPTS=$archive
case "${1:-} ${2:-}" in
    "master ") export SPARK_MASTER_OPTS=$agent ;;
    "worker ") export SPARK_WORKER_OPTS=$agent ;;
    "fraud-filter run") export SPARK_SUBMIT_OPTS="$archive $agent" ;;
esac

case ${1:-} in
    master) exec spark-class org.apache.spark.deploy.master.Master --properties-file "$settings" ;;
    worker)
        exec spark-class org.apache.spark.deploy.worker.Worker --properties-file "$settings" "${SPARK_MASTER:?is not set}"
        ;;
    *) exec "$@" ;;
esac
