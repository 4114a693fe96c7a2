"""The bench: modes, Kafka Streams and Apache Flink under the same load, round by round, measured and audited."""

import logging

logging.getLogger("matplotlib.font_manager").setLevel(logging.ERROR)  # it warns of a slow first start
