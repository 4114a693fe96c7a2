"""The bench: modes, Kafka Streams and Apache Flink under the same load, round by round, measured and audited."""

import logging

# It warns where its first start on a machine takes longer than 5 s: the output is for what was measured.
logging.getLogger("matplotlib.font_manager").setLevel(logging.ERROR)
