"""Is the filter well? One look at mode, latency against its objective, flow, lag and restarts."""

from __future__ import annotations

from parts import (
    CHOSEN,
    GREEN,
    OBJECTIVE_S,
    RED,
    YELLOW,
    Content,
    ask,
    board,
    increase,
    lines,
    number,
    per_second,
    row,
    spread,
    states,
    yes_or_no,
)

_BUCKETS = f"fraud_filter_end_to_end_latency_seconds_bucket{{{CHOSEN}}}"
_SLOW = f"mode_query:fraud_filter_slow_decisions:ratio_rate%s{{{CHOSEN}}}"


def _percentile(share: float, over: str, by: str = "le") -> str:
    return f"histogram_quantile({share}, sum by ({by}) (rate({_BUCKETS}[{over}])))"


_NOW: Content = (
    yes_or_no(
        "Filter",
        "The mode that the running query has, and whether it is active and keeps up.",
        "health",
        f"fraud_filter_healthy{{{CHOSEN}}}",
        "{{mode}}",
        ("not well", "well"),
    ),
    number(
        "Alerts",
        "How many alerts are firing; they are named at the end of this page.",
        "health",
        'count(ALERTS{alertstate="firing", alertname=~"FraudFilter.*"}) or vector(0)',
        unit="none",
        levels={0: GREEN, 1: RED},
    ),
    *(
        number(
            title,
            f"{share:.0%} of the decisions of the last 5 minutes were appended within this time after their "
            "payment, by the broker's clock. Red is beyond 20 ms.",
            "latency",
            _percentile(share, "5m"),
            unit="s",
            levels={0: GREEN, OBJECTIVE_S: RED},
        )
        for title, share in (("Median latency", 0.5), ("99th percentile", 0.99))
    ),
    number(
        "Payments",
        "Payments that arrived a second, over the last minute, by the ends of the input's partitions.",
        "flow",
        f"sum(mode_query:fraud_filter_arrived_records:rate1m{{{CHOSEN}}})",
        unit="cps",
    ),
    number(
        "Consumer lag",
        "Payments between the newest commit and the end of the input. In real-time mode commits come every few "
        "minutes, and the payments since the last one count as lag although they are decided.",
        "lag",
        f"sum(mode_query:fraud_filter_consumer_lag_records:sum{{{CHOSEN}}})",
        unit="short",
    ),
    number(
        "Since the last commit",
        "Time since the newest micro-batch, epoch or real-time batch was committed.",
        "commits-and-epochs",
        f"time() - max(fraud_filter_last_progress_timestamp_seconds{{{CHOSEN}}})",
        unit="s",
    ),
    number(
        "Restarts",
        "Restarts of the query after a failure, in the time range of this page.",
        "fraudfilterrestartloop",
        f"sum(increase(fraud_filter_restarts_total{{{CHOSEN}}}[$__range]))",
        unit="none",
        levels={0: GREEN, 1: YELLOW, 3: RED},
    ),
)

_LATENCY: Content = (
    row("Latency"),
    lines(
        "End-to-end latency",
        "From the append of a payment to the append of its decision, both on the broker's clock. Half, 95 % and "
        "99 % of the decisions are within these lines. Dashed: the objective for the 99th percentile, 20 ms.",
        "latency",
        *(
            ask(_percentile(share, "$__rate_interval", "le, mode"), f"{name} {{{{mode}}}}")
            for share, name in ((0.5, "p50"), (0.95, "p95"), (0.99, "p99"))
        ),
        unit="s",
        objective=OBJECTIVE_S,
        log=True,
    ),
    lines(
        "Latency of the last interval, exact",
        "What the probe has measured since its last line in the log, every 15 seconds, without the histogram's "
        "rounding to buckets: quantiles 0.5, 0.95 and 0.99, and 1, the slowest decision. Dashed: 20 ms.",
        "latency",
        ask(
            f"max by (mode, quantile) (fraud_filter_interval_latency_seconds{{{CHOSEN}}})",
            "{{quantile}} {{mode}}",
        ),
        unit="s",
        objective=OBJECTIVE_S,
        log=True,
    ),
    spread(
        "Distribution of the latency",
        "How many decisions fell into each span of latency.",
        "latency",
        f"sum by (le) (increase({_BUCKETS}[$__rate_interval]))",
        unit="s",
    ),
    lines(
        "Decisions beyond 20 ms",
        "Share of the decisions that took longer than 20 ms. The objective allows 1 % (dashed); an alert fires "
        "when 14.4 % of an hour or 6 % of six hours were too late.",
        "fraudfilterlatencyobjectivemissed",
        *(ask(_SLOW % over, f"{{{{mode}}}}, over {over}") for over in ("5m", "1h", "6h")),
        unit="percentunit",
        objective=0.01,
    ),
    lines(
        "Latency that can't be measured",
        "Decisions that bear an earlier time than their payment (the brokers' clocks differ), and records on the "
        "output topics without readable source headers (somebody else wrote them). Both should be 0.",
        "latency",
        per_second("fraud_filter_negative_latency_records_total", "earlier than the payment, {{mode}}"),
        per_second("fraud_filter_unreadable_records_total", "unreadable, {{mode}}"),
        unit="cps",
    ),
)

_FLOW: Content = (
    row("Flow"),
    lines(
        "Payments and decisions",
        "Payments that arrive, and those that are flagged or rejected. What is neither leaves nothing behind.",
        "flow",
        ask(f"mode_query:fraud_filter_arrived_records:rate1m{{{CHOSEN}}}", "arrived, {{mode}}"),
        per_second("fraud_filter_flagged_records_total", "flagged, {{mode}}"),
        per_second("fraud_filter_rejected_records_total", "rejected, {{mode}}"),
        unit="cps",
    ),
    lines(
        "Rejected payments",
        "Payments that could not be read, by the reason that each record bears as a header.",
        "fraudfilterrejectedrecords",
        per_second("fraud_filter_rejected_records_total", "{{reason}}", by="reason"),
        unit="cps",
        stacked=True,
    ),
    lines(
        "Duplicates and losses",
        "Decisions on payments that had been decided before, as after a restart: delivery is at-least-once. And "
        "payments that Kafka removed before they were read. `make audit` counts both again from the topics.",
        "duplicates-and-losses",
        increase("fraud_filter_duplicate_records_total", "repeated, {{mode}}"),
        increase("fraud_filter_lost_records_total", "lost, {{mode}}"),
        unit="short",
    ),
    lines(
        "Share of the payments that is decided",
        "Flagged and rejected records for each payment that arrived: over the last minute, and what was usual in "
        "the last half hour. A fall without a change in the payments is a part of the filter that has stopped.",
        "fraudfilterfewerdecisions",
        ask(f"mode_query:fraud_filter_decided_records:ratio_rate1m{{{CHOSEN}}}", "last minute, {{mode}}"),
        ask(f"mode_query:fraud_filter_decided_records:ratio_median30m{{{CHOSEN}}}", "usual, {{mode}}"),
        unit="percentunit",
    ),
)

_PROGRESS: Content = (
    row("Progress"),
    lines(
        "Consumer lag by partition",
        "Payments between what is read and the end of each partition. One line that only grows is a partition "
        "that nobody reads.",
        "lag",
        ask(f"fraud_filter_consumer_lag_records{{{CHOSEN}}}", "partition {{partition}}, {{mode}}"),
        unit="short",
    ),
    lines(
        "Time since progress",
        "Since the newest commit of the query, and since the newest record on its output topics.",
        "commits-and-epochs",
        ask(f"time() - fraud_filter_last_progress_timestamp_seconds{{{CHOSEN}}}", "commit, {{mode}}"),
        ask(f"time() - fraud_filter_last_output_timestamp_seconds{{{CHOSEN}}}", "output, {{mode}}"),
        unit="s",
    ),
    lines(
        "Restarts by reason",
        "Restarts of the query from its checkpoint, by what ended the one before.",
        "fraudfilterrestartloop",
        increase("fraud_filter_restarts_total", "{{reason}}", by="reason"),
        unit="short",
    ),
    states(
        "What the filter does",
        "Starting, running, waiting for task slots, backing off before a restart, or stopping.",
        "health",
        ask(f"fraud_filter_state{{{CHOSEN}}} == 1", "{{state}}, {{mode}}"),
        words=("no", "yes"),
    ),
    states(
        "Query",
        "When a query was active in which mode. Where one bar ends and the other begins the mode was switched.",
        "health",
        ask(f"fraud_filter_up{{{CHOSEN}}}", "{{mode}}"),
        words=("not active", "active"),
    ),
    states(
        "Alerts that fire",
        "Which alert fired when; empty when all is well. The runbook has a section for each.",
        "health",
        ask('ALERTS{alertstate="firing", alertname=~"FraudFilter.*"}', "{{alertname}} {{mode}}{{job}}"),
        words=("quiet", "firing"),
    ),
)

#: The dashboard that Grafana opens with.
BOARD = board(
    "fraud-filter",
    "Fraud filter",
    "Is the filter well? Mode, latency, flow, lag, restarts.",
    *_NOW,
    *_LATENCY,
    *_FLOW,
    *_PROGRESS,
)
