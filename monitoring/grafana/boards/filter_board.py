"""Is the filter healthy? One look at mode, latency against its objective, flow, lag and restarts."""

from __future__ import annotations

from objective import judged
from parts import (
    BLUE,
    CHOSEN,
    DARK_RED,
    GREEN,
    GREY,
    ORANGE,
    PURPLE,
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
_SLOW = f"deployment_mode_query:fraud_filter_slow_decisions:ratio_rate%s{{{CHOSEN}}}"
_FIRING = 'deployment=~"$deployment", alertstate="firing", alertname=~"FraudFilter.*"'
#: What the filter does, as it is told and shown: green where payments are decided. Beside an active filter a standby,
#: which comes first, is not shown.
_STATES = {
    "warming-up": ("a standby warms up", PURPLE),
    "standby": ("a standby alone", BLUE),
    "starting": ("starting", YELLOW),
    "running": ("running", GREEN),
    "waiting-for-slots": ("waiting for task slots", ORANGE),
    "backing-off": ("backing off", RED),
    "stopping": ("stopping", GREY),
}
#: The number of the state that each query is in, beginning with 1.
_NUMBERED = " or ".join(
    f'fraud_filter_state{{{CHOSEN}, state="{state}"}} * {at}' for at, state in enumerate(_STATES, start=1)
)
_STATE = f"max by (deployment, mode, query) ({_NUMBERED}) > 0"


def _or_none(expr: str) -> str:
    """The expression, or 0 where no filter answers: what is not there would be drawn grey."""
    return f'{expr} or on () label_replace(vector(0), "mode", "none", "", "")'


def _percentile(share: float, over: str, by: str = "le") -> str:
    return f"histogram_quantile({share}, sum by ({by}) (rate({_BUCKETS}[{over}])))"


_NOW: Content = (
    yes_or_no(
        "Filter",
        "The mode of the running query, and whether it is active and keeps up. Red too where no filter answers.",
        "health",
        _or_none(f"fraud_filter_healthy{{{CHOSEN}}}"),
        "{{mode}}",
        ("unhealthy", "healthy"),
    ),
    number(
        "Alerts",
        "How many alerts are firing; they are named below.",
        "health",
        f"count(ALERTS{{{_FIRING}}}) or vector(0)",
        unit="none",
        levels={0: GREEN, 1: RED},
    ),
    *(
        judged(
            number(
                title,
                f"{share:.0%} of the decisions of the last 5 minutes were appended within this time after their "
                "payment, by the broker's clock. Red is beyond the objective.",
                "latency",
                _percentile(share, "5m"),
                unit="s",
                levels={0: GREEN},
            )
        )
        for title, share in (("Median latency", 0.5), ("99th percentile", 0.99))
    ),
    number(
        "Payments",
        "Payments that arrived a second, over the last minute, by the ends of the input's partitions.",
        "flow",
        f"sum(deployment_mode_query:fraud_filter_arrived_records:rate1m{{{CHOSEN}}})",
        unit="cps",
    ),
    number(
        "Consumer lag",
        "Payments between the newest commit and the end of the input. In real-time mode commits come every few "
        "minutes, and the payments since the last one count as lag although they are decided.",
        "lag",
        f"sum(deployment_mode_query:fraud_filter_consumer_lag_records:sum{{{CHOSEN}}})",
        unit="short",
    ),
    number(
        "Last commit",
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

_ALERTS: Content = (
    states(
        "Alerts that fire",
        "Which alert fired when, critical ones in red; empty while none fires. The runbook has a section for each.",
        "alerts",
        ask(
            f'ALERTS{{{_FIRING}, severity="critical"}} * 2 or ALERTS{{{_FIRING}, severity="warning"}}',
            "{{alertname}} {{mode}} {{job}}",
        ),
        words={1: ("warning", YELLOW), 2: ("critical", RED)},
    ),
    states(
        "What the filter does",
        "Starting, running, waiting for task slots, backing off before a restart, or stopping. Red where nothing is "
        "decided: waiting, backing off, or no filter that answers.",
        "health",
        ask(_or_none(_STATE), "{{deployment}} {{mode}}"),
        words={0: ("no filter", DARK_RED), **dict(enumerate(_STATES.values(), start=1))},
    ),
)

_LATENCY: Content = (
    row("Latency"),
    judged(
        lines(
            "End-to-end latency",
            "From the append of a payment to the append of its decision, both on the broker's clock. Half, 95 % and "
            "99 % of the decisions are within these lines. Dashed: the objective for the 99th percentile.",
            "latency",
            *(
                ask(_percentile(share, "$__rate_interval", "le, mode"), f"{name} {{{{mode}}}}")
                for share, name in ((0.5, "p50"), (0.95, "p95"), (0.99, "p99"))
            ),
            unit="s",
            log=True,
            many=True,
        )
    ),
    spread(
        "Distribution of the latency",
        "How many decisions fell into each span of latency.",
        "latency",
        f"sum by (le) (increase({_BUCKETS}[$__rate_interval]))",
        unit="s",
    ),
    lines(
        "Decisions beyond the objective",
        "Share of the decisions that took longer than the objective. It allows 1 % (dashed); an alert fires "
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
        "Payments that arrive, and those that are flagged, approved or rejected. Approved ones are written, and shown, "
        "with FRAUD_EMIT=all alone.",
        "flow",
        ask(f"deployment_mode_query:fraud_filter_arrived_records:rate1m{{{CHOSEN}}}", "arrived, {{mode}}"),
        per_second("fraud_filter_flagged_records_total", "flagged, {{mode}}"),
        per_second("fraud_filter_approved_records_total", "approved, {{mode}}"),
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
        "Matches by rule",
        "How often each rule flagged a payment, a second; a payment may match several. Told by the probe.",
        "flow",
        per_second("fraud_filter_rule_matches_total", "{{rule}}", by="rule"),
        unit="cps",
    ),
    lines(
        "Duplicates and losses",
        "Decisions on payments that had been decided before, as after a restart: delivery is at-least-once. And "
        "payments that Kafka removed before they were read. `fraud-filter audit --stack` counts both again "
        "from the topics.",
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
        ask(f"deployment_mode_query:fraud_filter_decided_records:ratio_rate1m{{{CHOSEN}}}", "last minute, {{mode}}"),
        ask(f"deployment_mode_query:fraud_filter_decided_records:ratio_median30m{{{CHOSEN}}}", "usual, {{mode}}"),
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
        "Query",
        "When a query was active in which mode. Where one bar ends and the other begins the mode was switched.",
        "health",
        ask(f"fraud_filter_up{{{CHOSEN}}}", "{{mode}}"),
        words={0: ("not active", RED), 1: ("active", GREEN)},
    ),
)

_LIMITS: Content = (
    row("Limits"),
    lines(
        "Error budget left",
        "Of the decisions of three days 1 in 100 may take longer than the objective: the share of these that is left. "
        "Below 0 the objective is missed.",
        "fraudfilterlatencyobjectivemissed",
        ask(f"1 - {_SLOW % '3d'} / 0.01", "{{mode}}"),
        unit="percentunit",
    ),
    lines(
        "Free disk of the checkpoint",
        "Share of the disk that is free. Dashed: below 10 % an alert fires.",
        "fraudfilterdiskfull",
        ask(
            f"fraud_filter_checkpoint_disk_free_bytes{{{CHOSEN}}} / fraud_filter_checkpoint_disk_size_bytes",
            "{{instance}}",
        ),
        unit="percentunit",
        objective=0.1,
    ),
)

#: What few use.
_OPTIONAL: Content = (
    row("Standby", optional=True),
    states(
        "Active and standby",
        "What each filter does: with a standby one runs and the other waits, whichever of the two. Where the bars "
        "change places there was a takeover or a handover.",
        "fraudfilternostandby",
        ask(f"max by (deployment, job, mode) ({_NUMBERED}) > 0", "{{deployment}} {{job}} {{mode}}"),
        words=dict(enumerate(_STATES.values(), start=1)),
    ),
    lines(
        "Takeovers, and a standby that differs",
        "How often a standby began to work in place of another filter; and 1 while a standby has other rules or "
        "settings than the active filter.",
        "fraudfiltertookover",
        increase("fraud_filter_takeovers_total", "takeovers, {{mode}}"),
        ask(f"max by (mode) (fraud_filter_standby_differs{{{CHOSEN}}})", "differs, {{mode}}"),
        unit="short",
    ),
    row("Transactions of producers", optional=True),
    lines(
        "Held back by open transactions",
        "Payments behind the first record of a transaction that is still open. They are no lag: a reader of committed "
        "records gets none of them before the transaction ends.",
        "fraudfilterinputheld",
        ask(f"fraud_filter_held_records{{{CHOSEN}}}", "partition {{partition}}, {{mode}}"),
        unit="short",
    ),
    row("Certificates", optional=True),
    lines(
        "Certificates",
        "Time until each certificate ends with which the filter reaches Kafka. Dashed: below 30 days an alert fires.",
        "fraudfiltercertificateends",
        ask(
            'fraud_filter_certificate_expiry_timestamp_seconds{deployment=~"$deployment"} - time()',
            "{{file}} at {{instance}}",
        ),
        unit="s",
        objective=30 * 86400,
    ),
)

#: The dashboard that Grafana opens with.
BOARD = board(
    "fraud-filter",
    "Fraud filter",
    "Is the filter healthy? Mode, latency, flow, lag, restarts.",
    *_NOW,
    *_ALERTS,
    *_LATENCY,
    *_FLOW,
    *_PROGRESS,
    *_LIMITS,
    *_OPTIONAL,
)
