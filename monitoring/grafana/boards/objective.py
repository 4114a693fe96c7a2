"""Panels that are judged by the latency objective: FRAUD_LATENCY_OBJECTIVE_MS, which the probe tells."""

from __future__ import annotations

from grafana_foundation_sdk.builders import common, stat, timeseries
from grafana_foundation_sdk.cog.builder import Builder
from grafana_foundation_sdk.models import common as common_model
from grafana_foundation_sdk.models import dashboard as model
from parts import CHOSEN, ask

#: In seconds; of several modes the shortest.
_TOLD = f"min(fraud_filter_latency_objective_seconds{{{CHOSEN}}})"
_NAME = "objective"


def judged(panel: Builder[model.Panel]) -> Builder[model.Panel]:
    """The panel, green below the objective and red beyond it, by Grafana's "Config from query results"."""
    assert isinstance(panel, stat.Panel | timeseries.Panel)  # noqa: S101 - for the type checker
    if isinstance(panel, timeseries.Panel):
        panel.thresholds_style(common.GraphThresholdsStyleConfig().mode(common_model.GraphThresholdsStyleMode.DASHED))
    options = {"configRefId": _NAME, "mappings": [{"fieldName": _NAME, "handlerKey": "threshold1"}]}
    panel.with_transformation(model.DataTransformerConfig(id_val="configFromData", options=options))
    return panel.with_target(ask(_TOLD, _NAME, instant=True).ref_id(_NAME))
