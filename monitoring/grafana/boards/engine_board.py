"""Where the time of a batch goes, how often is committed, and whether there are task slots and executors for it."""

from __future__ import annotations

from parts import CHOSEN, GREEN, HEIGHT, RED, Content, ask, board, increase, lines, number, per_second, row, spread

_OWN = '{deployment=~"$deployment"}'
_FREE = 'sum(spark_worker_cores{state="free", deployment=~"$deployment"})'
_PHASE = "fraud_filter_phase_duration_seconds"


_PHASES: Content = (
    row("Phases of a batch"),
    lines(
        "Where a batch spends its time",
        "Phases of the newest batch, as Spark reports them: finding the end offsets, writing the offset log "
        "(walCommit), planning, running (addBatch), writing the commit log (commitOffsets). Real-time mode reports "
        "only at a batch end, and its addBatch is the batch itself. Continuous mode has no phases.",
        "phases-of-a-batch",
        ask(f'{_PHASE}{{phase!="triggerExecution", {CHOSEN}}}', "{{phase}}, {{mode}}"),
        unit="s",
        many=True,
        stacked=True,
    ),
    lines(
        "Offset log and commit log",
        "Seconds of each batch that go into writing the checkpoint: walCommit and commitOffsets. With asynchronous "
        "progress tracking they are written beside the batch. Empty in continuous mode.",
        "phases-of-a-batch",
        ask(f'{_PHASE}{{phase="walCommit", {CHOSEN}}}', "offset log, {{mode}}"),
        ask(f'{_PHASE}{{phase="commitOffsets", {CHOSEN}}}', "commit log, {{mode}}"),
        unit="s",
    ),
    lines(
        "Whole batch",
        "Duration of the newest batch from its trigger to its commit: in micro-batch modes about half of it, and "
        "all of the next, is what a payment waits at most. Empty in continuous mode.",
        "phases-of-a-batch",
        ask(f'{_PHASE}{{phase="triggerExecution", {CHOSEN}}}', "{{mode}}"),
        unit="s",
    ),
    lines(
        "Share of the logs in a batch",
        "How much of a batch is the writing of the offset log and the commit log: what asynchronous progress "
        "tracking can save. Empty in continuous mode.",
        "phases-of-a-batch",
        ask(
            f'sum by (mode) ({_PHASE}{{phase=~"walCommit|commitOffsets", {CHOSEN}}})'
            f' / sum by (mode) ({_PHASE}{{phase="triggerExecution", {CHOSEN}}})',
            "{{mode}}",
        ),
        unit="percentunit",
    ),
)

_COMMITS: Content = (
    row("Commits and epochs"),
    lines(
        "Commits",
        "Micro-batches, real-time batches or epochs that were committed, a second. Real-time mode commits once in "
        "its batch duration, 5 minutes unless changed.",
        "commits-and-epochs",
        per_second("fraud_filter_commits_total", "{{mode}}"),
        unit="cps",
    ),
    lines(
        "Payments in a commit",
        "Payments read for each commit: what is read again after a crash, at most.",
        "commits-and-epochs",
        ask(
            f"sum by (mode) (increase(fraud_filter_input_records_total{{{CHOSEN}}}[10m]))"
            f" / (sum by (mode) (increase(fraud_filter_commits_total{{{CHOSEN}}}[10m])) > 0)",
            "{{mode}}",
        ),
        unit="short",
    ),
    lines(
        "Offsets",
        "Payments a second by which the offsets that are read up to and the ends of the partitions move on: the "
        "same, unless the filter falls behind or catches up.",
        "lag",
        ask(f"sum by (mode) (deriv(fraud_filter_read_offset{{{CHOSEN}}}[$__rate_interval]))", "read, {{mode}}"),
        ask(f"sum by (mode) (deriv(fraud_filter_latest_offset{{{CHOSEN}}}[$__rate_interval]))", "end, {{mode}}"),
        unit="cps",
    ),
    lines(
        "Throughput of a batch",
        "Payments of the newest batch by the time that it took: how much the engine could do. Empty in continuous "
        "mode, whose epochs have no duration of their own.",
        "phases-of-a-batch",
        ask(f"fraud_filter_input_records_per_second{{{CHOSEN}}}", "{{mode}}"),
        unit="cps",
    ),
)

_VELOCITY: Content = (
    row("State of the features", optional=True),
    lines(
        "Rows in the state",
        "What features are computed from: one row for each key and period, as of the newest batch end. Empty without "
        "features.",
        "state-of-the-features",
        ask(f"fraud_filter_velocity_keys{{{CHOSEN}}}", "{{mode}}"),
        unit="short",
    ),
    lines(
        "Memory and disk of the state",
        "What the rows take on the executors, as Spark reports it at a batch end.",
        "state-of-the-features",
        ask(f"fraud_filter_velocity_memory_bytes{{{CHOSEN}}}", "{{mode}}, memory"),
        ask(f"fraud_filter_velocity_disk_bytes{{{CHOSEN}}}", "{{mode}}, disk"),
        unit="bytes",
    ),
    lines(
        "Writing the state",
        "Time to write the changes of the state at a batch end, over all tasks: the query pauses meanwhile.",
        "state-of-the-features",
        ask(f"fraud_filter_velocity_commit_seconds{{{CHOSEN}}}", "{{mode}}"),
        unit="s",
    ),
    lines(
        "Windows that may be cut short",
        "Windows in flagged payments that hold as many payments as the state keeps of a key (velocity_payments), by "
        "feature; of payments that are not flagged nothing is written. Told by the probe.",
        "state-of-the-features",
        increase("fraud_filter_truncated_windows_total", "{{mode}}, {{feature}}", by="mode, feature"),
        unit="short",
    ),
    lines(
        "Late rows",
        "Rows of payments that lay behind the watermark. These payments are not decided.",
        "fraudfilterpaymentslate",
        increase("fraud_filter_late_records_total", "{{mode}}"),
        unit="short",
    ),
)

_SCORES: Content = (
    row("Scores of the model", optional=True),
    spread(
        "Scores of flagged payments",
        "How many flagged payments have which score; of payments that are not flagged nothing is written. Told by the "
        "probe.",
        "scores-of-the-model",
        f"sum by (le) (increase(fraud_filter_score_bucket{{{CHOSEN}}}[$__rate_interval]))",
        unit="short",
    ),
    lines(
        "Median score by model",
        "The score that half of the flagged payments exceed, by the version of the model.",
        "scores-of-the-model",
        ask(
            "histogram_quantile(0.5, sum by (le, mode, version)"
            f" (rate(fraud_filter_score_bucket{{{CHOSEN}}}[$__rate_interval])))",
            "{{mode}}, {{version}}",
        ),
        unit="short",
    ),
)

_SLOTS: Content = (
    row("Task slots"),
    number(
        "Task slots missing",
        "Slots that the mode needs for good, one for each partition in continuous and real-time mode, less those "
        "that were granted.",
        "fraudfiltertoofewtaskslots",
        f"clamp_min(max(fraud_filter_task_slots_needed{{{CHOSEN}}} - fraud_filter_task_slots_granted), 0)",
        unit="none",
        levels={0: GREEN, 1: RED},
        height=HEIGHT,
    ),
    *(
        number(title, description, "task-slots-and-executors", expr, unit="none", height=HEIGHT)
        for title, description, expr in (
            (
                "Workers",
                "Workers that the Spark master knows as alive.",
                f"spark_master_alive_workers{_OWN}",
            ),
            (
                "Waiting",
                "Applications that wait for cores.",
                f"spark_master_waiting_applications{_OWN}",
            ),
            (
                "Free cores",
                "Cores that the workers declare and nobody uses.",
                _FREE,
            ),
        )
    ),
    lines(
        "Task slots",
        "Slots needed for good and slots granted, and the tasks that run now. In continuous and real-time mode as "
        "many tasks as partitions never end.",
        "task-slots-and-executors",
        ask(f"fraud_filter_task_slots_needed{{{CHOSEN}}}", "needed, {{mode}}"),
        ask(f"fraud_filter_task_slots_granted{{{CHOSEN}}}", "granted, {{mode}}"),
        ask(f"sum(fraud_filter_executor_active_tasks{{{CHOSEN}}})", "running tasks"),
        unit="none",
    ),
)

_EXECUTORS: Content = (
    row("Executors"),
    lines(
        "Executors",
        "Executors that the driver knows. One that was lost stays for a while: Spark waits two minutes for a sign "
        "of it.",
        "task-slots-and-executors",
        ask(f"count(fraud_filter_executor_cores{{{CHOSEN}}})", "executors"),
        ask(f"sum(fraud_filter_executor_cores{{{CHOSEN}}})", "their cores"),
        unit="none",
    ),
    lines(
        "Tasks",
        "Tasks that ended, a second. Micro-batches have one for each partition; in continuous and real-time mode "
        "a task that ends is the end of a batch or of the query.",
        "task-slots-and-executors",
        per_second("fraud_filter_executor_tasks_total", "{{outcome}}, executor {{executor}}", by="executor, outcome"),
        unit="cps",
        many=True,
    ),
    lines(
        "Jobs and stages of the driver",
        "What the driver's scheduler runs now, and the stages that failed since its start.",
        "task-slots-and-executors",
        ask(f"spark_driver_active_jobs{_OWN}", "running jobs"),
        ask('spark_driver_stages{state="waiting", deployment=~"$deployment"}', "waiting stages"),
        ask('spark_driver_stages{state="failed", deployment=~"$deployment"}', "failed stages"),
        unit="none",
    ),
    lines(
        "Events of the driver",
        "Spark's events that wait for their listeners, and those that were dropped because too many waited: then "
        "progress figures are incomplete.",
        "task-slots-and-executors",
        ask('spark_driver_waiting_events{queue="streams", deployment=~"$deployment"}', "waiting"),
        ask(
            'rate(spark_driver_dropped_events_total{queue="streams", deployment=~"$deployment"}[$__rate_interval])',
            "dropped a second",
        ),
        unit="short",
    ),
)

BOARD = board(
    "fraud-filter-engine",
    "Engine",
    "Phases of a batch, commits and epochs, the state of features, scores, task slots, executors.",
    *_PHASES,
    *_COMMITS,
    *_VELOCITY,
    *_SCORES,
    *_SLOTS,
    *_EXECUTORS,
)
