"""What the filter runs on: Kafka, memory and collections of each JVM, CPU, and the programs beside it."""

from __future__ import annotations

from parts import GREEN, HEIGHT, RED, TARGETS, Content, ask, board, lines, number, row, states, yes_or_no

_TOPICS = f'topic!~"__.*", {TARGETS}'
# Up to Kafka 4.1 a broker that is a controller too adds the controller's handlers, which are idle (KAFKA-19606).
_IDLE = f"kafka_server_kafkarequesthandlerpool_requesthandleravgidle_percent{{{TARGETS}}}"
_CONTROLLERS = f"kafka_controller_kafkacontroller_activecontrollercount{{{TARGETS}}}"
_IDLE_HANDLERS = f"clamp_min(min(({_IDLE} - on (instance) (0 * {_CONTROLLERS} + 1)) or on (instance) {_IDLE}), 0)"


_KAFKA: Content = (
    row("Kafka"),
    yes_or_no(
        "Broker",
        "Whether the broker is in the state RUNNING (3).",
        "kafka",
        f"kafka_server_kafkaserver_brokerstate{{{TARGETS}}} == bool 3",
        "{{instance}}",
        ("not running", "running"),
        height=HEIGHT,
    ),
    *(
        number(
            title, told, "kafka", f"sum({metric}{{{TARGETS}}})", unit="none", levels={0: GREEN, 1: RED}, height=HEIGHT
        )
        for title, told, metric in (
            (
                "Offline partitions",
                "Partitions without a leader: nobody can read or write them.",
                "kafka_controller_kafkacontroller_offlinepartitionscount",
            ),
            (
                "Under-replicated",
                "Partitions with fewer replicas in step than they should have.",
                "kafka_server_replicamanager_underreplicatedpartitions",
            ),
        )
    ),
    number(
        "Idle handlers",
        "Share of the time that the broker's request handlers wait for work. Below 30 % it is the bottleneck.",
        "kafka",
        _IDLE_HANDLERS,
        unit="percentunit",
        levels={0: RED, 0.3: GREEN},
        height=HEIGHT,
    ),
    lines(
        "Time of a Produce",
        "From the arrival of a request that writes records to the end of its answer: a part of each latency.",
        "kafka",
        ask(f'kafka_network_requestmetrics_totaltimems{{request="Produce", {TARGETS}}}', "quantile {{quantile}}"),
        unit="ms",
    ),
    lines(
        "Time of a Fetch",
        "From the arrival of a request that reads records to the end of its answer. It waits for records, so a long "
        "time is no fault.",
        "kafka",
        ask(f'kafka_network_requestmetrics_totaltimems{{request="FetchConsumer", {TARGETS}}}', "quantile {{quantile}}"),
        unit="ms",
    ),
    lines(
        "Records by topic",
        "Records that were written to each topic, a second.",
        "kafka",
        ask(
            f"sum by (topic) (rate(kafka_server_brokertopicmetrics_messagesin_total{{{_TOPICS}}}[$__rate_interval]))",
            "{{topic}}",
        ),
        unit="cps",
        many=True,
    ),
    lines(
        "Bytes",
        "What goes into the broker and out of it, a second.",
        "kafka",
        ask(f"sum(rate(kafka_server_brokertopicmetrics_bytesin_total{{{_TOPICS}}}[$__rate_interval]))", "in"),
        ask(f"sum(rate(kafka_server_brokertopicmetrics_bytesout_total{{{_TOPICS}}}[$__rate_interval]))", "out"),
        unit="Bps",
    ),
    lines(
        "Requests",
        "Requests by kind, a second. Continuous mode polls: a low fetch.max.wait.ms shows here.",
        "kafka",
        ask(
            f"sum by (request) (rate(kafka_network_requestmetrics_requests_total{{{TARGETS}}}[$__rate_interval]))",
            "{{request}}",
        ),
        ask(
            f"sum(rate(kafka_server_brokertopicmetrics_failedproducerequests_total{{{TARGETS}}}[$__rate_interval]))",
            "failed: Produce",
        ),
        ask(
            f"sum(rate(kafka_server_brokertopicmetrics_failedfetchrequests_total{{{TARGETS}}}[$__rate_interval]))",
            "failed: Fetch",
        ),
        unit="reqps",
        many=True,
    ),
    lines(
        "Size of the topics",
        "What the log of each topic takes on the disk, over its partitions.",
        "kafka",
        ask(f"sum by (topic) (kafka_log_log_size{{{_TOPICS}}})", "{{topic}}"),
        unit="bytes",
        many=True,
    ),
)

_JAVA: Content = (
    row("Java"),
    lines(
        "Heap in use",
        "Of the broker, the Spark master, the workers and the driver. A saw-tooth is normal; a rising floor is a leak.",
        "memory-and-collections",
        ask(f'jvm_memory_used_bytes{{area="heap", {TARGETS}}}', "{{job}} {{instance}}"),
        ask(f'jvm_memory_max_bytes{{area="heap", {TARGETS}}} > 0', "limit of {{job}} {{instance}}"),
        unit="bytes",
        many=True,
    ),
    lines(
        "Heap of the executors",
        "The highest that each executor has used; Spark reports peaks. The limit is SPARK_EXECUTOR_MEMORY.",
        "memory-and-collections",
        ask(f"fraud_filter_executor_peak_memory_bytes{{{TARGETS}}}", "{{area}}, executor {{executor}}"),
        unit="bytes",
        many=True,
    ),
    lines(
        "Time in collections",
        "Share of the time that garbage collections take. Each pause is in the latency of all that arrives in it.",
        "memory-and-collections",
        ask(f"sum by (job) (rate(jvm_gc_collection_seconds_sum{{{TARGETS}}}[$__rate_interval]))", "{{job}}"),
        ask(f"rate(fraud_filter_executor_gc_seconds_total{{{TARGETS}}}[$__rate_interval])", "executor {{executor}}"),
        unit="percentunit",
        many=True,
    ),
    lines(
        "Collections",
        "Garbage collections a second, by kind.",
        "memory-and-collections",
        ask(
            f"sum by (job, gc) (rate(jvm_gc_collection_seconds_count{{{TARGETS}}}[$__rate_interval]))", "{{job}} {{gc}}"
        ),
        unit="cps",
        many=True,
    ),
)

_PROCESSES: Content = (
    row("Processes"),
    lines(
        "CPU",
        "Cores that each process uses; spark-driver is Java in the filter's container. Executors are in the sum of "
        "their worker's container.",
        "cpu",
        ask(f"rate(process_cpu_seconds_total{{{TARGETS}}}[$__rate_interval])", "{{job}} {{instance}}"),
        ask(
            f'spark_container_cpu_usage_ratio{{job="spark-worker", {TARGETS}}} * spark_container_processors',
            "executors and {{job}} {{instance}}",
        ),
        unit="cores",
        many=True,
    ),
    lines(
        "Resident memory",
        "Memory that each process has in RAM; the containers' limits are the *_MEM_LIMIT of .env.",
        "memory-and-collections",
        ask(f"process_resident_memory_bytes{{{TARGETS}}}", "{{job}} {{instance}}"),
        unit="bytes",
        many=True,
    ),
    states(
        "Scrape targets",
        "Which of the programs answered Prometheus when.",
        "fraudfiltertargetdown",
        ask(f"up{{{TARGETS}}}", "{{job}} {{instance}}"),
        words={0: ("down", RED), 1: ("up", GREEN)},
    ),
    lines(
        "Generator",
        "Payments that the generator handed to Kafka's client, those sent more than 10 ms after they were due, and "
        "those known not to have been delivered. Late payments mean that the machine is too slow for the rate.",
        "flow",
        ask(f"rate(fraud_filter_generator_sent_records_total{{{TARGETS}}}[$__rate_interval])", "sent"),
        ask(f"rate(fraud_filter_generator_late_records_total{{{TARGETS}}}[$__rate_interval])", "late"),
        ask(f"rate(fraud_filter_generator_failed_records_total{{{TARGETS}}}[$__rate_interval])", "failed"),
        unit="cps",
    ),
)

BOARD = board(
    "fraud-filter-infrastructure",
    "Infrastructure",
    "Kafka, executors, memory, collections, CPU.",
    *_KAFKA,
    *_JAVA,
    *_PROCESSES,
)
