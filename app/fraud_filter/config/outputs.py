"""The topics that decisions are written to."""

from __future__ import annotations

from fraud_filter.config.settings import Settings

#: What decides which topics these are.
OUTPUT_SETTINGS = ("query", "emit", "flagged_topic", "approved_topic", "rejected_topic")


def output_topics(settings: Settings) -> list[str]:
    """The settings that name the topics of decisions, such as "flagged_topic".

    One for each topic: where several settings name one topic, the first of them. A query of the user's has one.
    """
    if settings.query:
        return ["flagged_topic"]
    approved = ["approved_topic"] if settings.emit == "all" else []
    by_topic: dict[str, str] = {}
    for setting in ("flagged_topic", *approved, "rejected_topic"):
        by_topic.setdefault(getattr(settings, setting), setting)
    return list(by_topic.values())
