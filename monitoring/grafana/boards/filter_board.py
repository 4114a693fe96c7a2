"""Is the filter well? One look at mode, latency against its objective, flow, lag and restarts."""

from __future__ import annotations

from grafana_foundation_sdk.builders.dashboard import Dashboard
from parts import CHOSEN, GREEN, OBJECTIVE_S, RED, YELLOW, ask, board, lines, number, row, spread, states, yes_or_no

_BUCKETS = f"fraud_filter_end_to_end_latency_seconds_bucket{{{CHOSEN}}}"
_SLOW = f"mode_query:fraud_filter_slow_decisions:ratio_rate%s{{{CHOSEN}}}"


def _percentile(share: float, over: str, by: str = "le") -> str:
    return f"histogram_quantile({share}, sum by ({by}) (rate({_BUCKETS}[{over}])))"


def build() -> Dashboard:
    """The dashboard that Grafana opens with."""
    made = board("fraud-filter", "Fraud filter", "Is the filter well? Mode, latency, flow, lag, restarts.")
    _now(made)
    _latency(made)
    _flow(made)
    _progress(made)
    return made


def _now(made: Dashboard) -> None:
    made.with_panel(
        yes_or_no(
            "Filter",
            "The mode that the running query has, and whether it is active and keeps up.",
            "health",
            f"fraud_filter_healthy{{{CHOSEN}}}",
            "{{mode}}",
            ("not well", "well"),
        )
    )
    made.with_panel(
        number(
            "Alerts",
            "How many alerts are firing; they are named at the end of this page.",
            "health",
            'count(ALERTS{alertstate="firing", alertname=~"FraudFilter.*"}) or vector(0)',
            unit="none",
            levels={0: GREEN, 1: RED},
        )
    )
    for title, share in (("Median latency", 0.5), ("99th percentile", 0.99)):
        made.with_panel(
            number(
                title,
                f"{share:.0%} of the decisions of the last 5 minutes were appended within this time after their "
                "payment, by the broker's clock. Red is beyond 20 ms.",
                "latency",
                _percentile(share, "5m"),
                unit="s",
                levels={0: GREEN, OBJECTIVE_S: RED},
            )
        )
    made.with_panel(
        number(
            "Payments",
            "Payments that arrived a second, over the last minute, by the ends of the input's partitions.",
            "flow",
            f"sum(mode_query:fraud_filter_arrived_records:rate1m{{{CHOSEN}}})",
            unit="cps",
        )
    )
    made.with_panel(
        number(
            "Consumer lag",
            "Payments between the newest commit and the end of the input. In real-time mode commits come every few "
            "minutes, and the payments since the last one count as lag although they are decided.",
            "lag",
            f"sum(mode_query:fraud_filter_consumer_lag_records:sum{{{CHOSEN}}})",
            unit="short",
        )
    )
    made.with_panel(
        number(
            "Since the last commit",
            "Time since the newest micro-batch, epoch or real-time batch was committed.",
            "commits-and-epochs",
            f"time() - max(fraud_filter_last_progress_timestamp_seconds{{{CHOSEN}}})",
            unit="s",
        )
    )
    made.with_panel(
        number(
            "Restarts",
            "Restarts of the query after a failure, in the time range of this page.",
            "fraudfilterrestartloop",
            f"sum(increase(fraud_filter_restarts_total{{{CHOSEN}}}[$__range]))",
            unit="none",
            levels={0: GREEN, 1: YELLOW, 3: RED},
        )
    )


def _latency(made: Dashboard) -> None:
    made.with_row(row("Latency"))
    quantiles = ((0.5, "p50"), (0.95, "p95"), (0.99, "p99"))
    made.with_panel(
        lines(
            "End-to-end latency",
            "From the append of a payment to the append of its decision, both on the broker's clock. Half, 95 % and "
            "99 % of the decisions are within these lines. Dashed: the objective for the 99th percentile, 20 ms.",
            "latency",
            *(
                ask(_percentile(share, "$__rate_interval", "le, mode"), f"{name} {{{{mode}}}}")
                for share, name in quantiles
            ),
            unit="s",
            objective=OBJECTIVE_S,
            log=True,
        )
    )
    made.with_panel(
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
        )
    )
    made.with_panel(
        spread(
            "Distribution of the latency",
            "How many decisions fell into each span of latency.",
            "latency",
            f"sum by (le) (increase({_BUCKETS}[$__rate_interval]))",
            unit="s",
        )
    )
    made.with_panel(
        lines(
            "Decisions beyond 20 ms",
            "Share of the decisions that took longer than 20 ms. The objective allows 1 % (dashed); an alert fires "
            "when 14.4 % of an hour or 6 % of six hours were too late.",
            "fraudfilterlatencyobjectivemissed",
            *(ask(_SLOW % over, f"{{{{mode}}}}, over {over}") for over in ("5m", "1h", "6h")),
            unit="percentunit",
            objective=0.01,
        )
    )
    made.with_panel(
        lines(
            "Latency that can't be measured",
            "Decisions that bear an earlier time than their payment (the brokers' clocks differ), and records on the "
            "output topics without readable source headers (somebody else wrote them). Both should be 0.",
            "latency",
            ask(
                f"sum by (mode) (rate(fraud_filter_negative_latency_records_total{{{CHOSEN}}}[$__rate_interval]))",
                "earlier than the payment, {{mode}}",
            ),
            ask(
                f"sum by (mode) (rate(fraud_filter_unreadable_records_total{{{CHOSEN}}}[$__rate_interval]))",
                "unreadable, {{mode}}",
            ),
            unit="cps",
        )
    )


def _flow(made: Dashboard) -> None:
    made.with_row(row("Flow"))
    made.with_panel(
        lines(
            "Payments and decisions",
            "Payments that arrive, and those that are flagged or rejected. What is neither leaves nothing behind.",
            "flow",
            ask(f"mode_query:fraud_filter_arrived_records:rate1m{{{CHOSEN}}}", "arrived, {{mode}}"),
            ask(
                f"sum by (mode) (rate(fraud_filter_flagged_records_total{{{CHOSEN}}}[$__rate_interval]))",
                "flagged, {{mode}}",
            ),
            ask(
                f"sum by (mode) (rate(fraud_filter_rejected_records_total{{{CHOSEN}}}[$__rate_interval]))",
                "rejected, {{mode}}",
            ),
            unit="cps",
        )
    )
    made.with_panel(
        lines(
            "Rejected payments",
            "Payments that could not be read, by the reason that each record bears as a header.",
            "fraudfilterrejectedrecords",
            ask(
                f"sum by (reason) (rate(fraud_filter_rejected_records_total{{{CHOSEN}}}[$__rate_interval]))",
                "{{reason}}",
            ),
            unit="cps",
            stacked=True,
        )
    )
    made.with_panel(
        lines(
            "Duplicates and losses",
            "Decisions on payments that had been decided before, as after a restart: delivery is at-least-once. And "
            "payments that Kafka removed before they were read. `make audit` counts both again from the topics.",
            "duplicates-and-losses",
            ask(
                f"sum by (mode) (increase(fraud_filter_duplicate_records_total{{{CHOSEN}}}[$__rate_interval]))",
                "repeated, {{mode}}",
            ),
            ask(
                f"sum by (mode) (increase(fraud_filter_lost_records_total{{{CHOSEN}}}[$__rate_interval]))",
                "lost, {{mode}}",
            ),
            unit="short",
        )
    )
    made.with_panel(
        lines(
            "Share of the payments that is decided",
            "Flagged and rejected records for each payment that arrived: over the last minute, and what was usual in "
            "the last half hour. A fall without a change in the payments is a part of the filter that has stopped.",
            "fraudfilterfewerdecisions",
            ask(f"mode_query:fraud_filter_decided_records:ratio_rate1m{{{CHOSEN}}}", "last minute, {{mode}}"),
            ask(f"mode_query:fraud_filter_decided_records:ratio_median30m{{{CHOSEN}}}", "usual, {{mode}}"),
            unit="percentunit",
        )
    )


def _progress(made: Dashboard) -> None:
    made.with_row(row("Progress"))
    made.with_panel(
        lines(
            "Consumer lag by partition",
            "Payments between what is read and the end of each partition. One line that only grows is a partition "
            "that nobody reads.",
            "lag",
            ask(f"fraud_filter_consumer_lag_records{{{CHOSEN}}}", "partition {{partition}}, {{mode}}"),
            unit="short",
        )
    )
    made.with_panel(
        lines(
            "Time since progress",
            "Since the newest commit of the query, and since the newest record on its output topics.",
            "commits-and-epochs",
            ask(f"time() - fraud_filter_last_progress_timestamp_seconds{{{CHOSEN}}}", "commit, {{mode}}"),
            ask(f"time() - fraud_filter_last_output_timestamp_seconds{{{CHOSEN}}}", "output, {{mode}}"),
            unit="s",
        )
    )
    made.with_panel(
        lines(
            "Restarts by reason",
            "Restarts of the query from its checkpoint, by what ended the one before.",
            "fraudfilterrestartloop",
            ask(
                f"sum by (reason) (increase(fraud_filter_restarts_total{{{CHOSEN}}}[$__rate_interval]))",
                "{{reason}}",
            ),
            unit="short",
        )
    )
    made.with_panel(
        states(
            "What the filter does",
            "Starting, running, waiting for task slots, backing off before a restart, or stopping.",
            "health",
            ask(f"fraud_filter_state{{{CHOSEN}}} == 1", "{{state}}, {{mode}}"),
            words=("no", "yes"),
        )
    )
    made.with_panel(
        states(
            "Query",
            "When a query was active in which mode. Where one bar ends and the other begins the mode was switched.",
            "health",
            ask(f"fraud_filter_up{{{CHOSEN}}}", "{{mode}}"),
            words=("not active", "active"),
        )
    )
    made.with_panel(
        states(
            "Alerts that fire",
            "Which alert fired when; empty when all is well. The runbook has a section for each.",
            "health",
            ask('ALERTS{alertstate="firing", alertname=~"FraudFilter.*"}', "{{alertname}} {{mode}}{{job}}"),
            words=("quiet", "firing"),
        )
    )
