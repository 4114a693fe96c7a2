"""What the dashboards are made of: every panel has a unit, legends, a description and a link to its runbook section."""

from __future__ import annotations

from collections.abc import Iterable
from string import ascii_uppercase
from typing import Any

from grafana_foundation_sdk.builders import common, dashboard, heatmap, prometheus, stat, statetimeline, timeseries
from grafana_foundation_sdk.cog.builder import Builder
from grafana_foundation_sdk.cog.variants import Dataquery
from grafana_foundation_sdk.models import common as common_model
from grafana_foundation_sdk.models import dashboard as model
from grafana_foundation_sdk.models import heatmap as heatmap_model
from grafana_foundation_sdk.models import prometheus as prometheus_model

#: The data source: the one that is chosen at the top.
SOURCE = model.DataSourceRef(type_val="prometheus", uid="${datasource}")
#: What the variables at the top choose.
CHOSEN = 'deployment=~"$deployment", mode=~"$mode", query=~"$query"'
#: Of programs that are no filters.
TARGETS = 'deployment=~"$deployment", job=~"$job", instance=~"$instance"'

GREEN, YELLOW, RED, GREY = "green", "yellow", "red", "#6e6e6e"
BLUE, PURPLE, ORANGE, DARK_RED = "blue", "purple", "orange", "dark-red"
_WIDTH, HEIGHT, _STAT_WIDTH, _STAT_HEIGHT = 12, 8, 3, 4

#: Without it Grafana draws a number that is not there in the colour of the lowest level, which is mostly green.
_NO_DATA = model.SpecialValueMap(
    options=model.DashboardSpecialValueMapOptions(
        match=model.SpecialValueMatch.NULL_AND_NAN, result=model.ValueMappingResult(text="No data", color=GREY)
    )
)

Levels = dict[float, str]
#: What stands for a value: its text and its colour.
Words = dict[int, tuple[str, str]]
Content = tuple[dashboard.Row | Builder[model.Panel], ...]


def ask(expr: str, legend: str, *, instant: bool = False, form: str = "time_series") -> prometheus.Dataquery:
    """A PromQL query; `legend` may use labels, as in `{{mode}}`."""
    query = prometheus.Dataquery().expr(expr).legend_format(legend).datasource(SOURCE)
    query.format(prometheus_model.PromQueryFormat(form))
    return query.instant() if instant else query.range()


def per_second(metric: str, legend: str, by: str = "mode") -> prometheus.Dataquery:
    """By how much a counter of the filter grows in a second."""
    return ask(f"sum by ({by}) (rate({metric}{{{CHOSEN}}}[$__rate_interval]))", legend)


def increase(metric: str, legend: str, by: str = "mode") -> prometheus.Dataquery:
    """By how much a counter of the filter grows in one step of the panel."""
    return ask(f"sum by ({by}) (increase({metric}{{{CHOSEN}}}[$__rate_interval]))", legend)


def number(
    title: str,
    description: str,
    section: str,
    expr: str,
    *,
    unit: str,
    legend: str = "",
    levels: Levels | None = None,
    height: int = _STAT_HEIGHT,
) -> Builder[model.Panel]:
    """One value of now, coloured by the level that it has reached; `levels` maps lower bounds to colours."""
    panel = stat.Panel().title(title).description(description).datasource(SOURCE).links([_runbook(section)])
    panel.unit(unit).thresholds(_thresholds(levels or {})).span(_STAT_WIDTH).height(height)
    panel.reduce_options(common.ReduceDataOptions().calcs(["lastNotNull"]))
    panel.graph_mode(common_model.BigValueGraphMode.NONE)
    if legend:
        panel.text_mode(common_model.BigValueTextMode.VALUE_AND_NAME)
    panel.color_mode(common_model.BigValueColorMode.BACKGROUND if levels else common_model.BigValueColorMode.NONE)
    panel.mappings([_NO_DATA])
    return panel.targets(_lettered([ask(expr, legend or title, instant=True)]))


def yes_or_no(
    title: str,
    description: str,
    section: str,
    expr: str,
    legend: str,
    words: tuple[str, str],
    height: int = _STAT_HEIGHT,
) -> Builder[model.Panel]:
    """A value that is 0 or 1, in words: the first for 0, red, the second for 1, green."""
    panel = number(
        title, description, section, expr, unit="short", legend=legend, levels={0: RED, 1: GREEN}, height=height
    )
    assert isinstance(panel, stat.Panel)  # noqa: S101 - for the type checker
    return panel.mappings(_mappings({0: (words[0], RED), 1: (words[1], GREEN)}))


def states(
    title: str, description: str, section: str, *queries: prometheus.Dataquery, words: Words
) -> Builder[model.Panel]:
    """When each series had which value, as coloured bars over time."""
    panel = statetimeline.Panel().title(title).description(description).datasource(SOURCE).links([_runbook(section)])
    panel.unit("short").mappings(_mappings(words)).span(_WIDTH).height(HEIGHT).targets(_lettered(queries))
    panel.legend(common.VizLegendOptions().show_legend(False).display_mode(common_model.LegendDisplayMode.LIST))
    return panel.show_value(common_model.VisibilityMode.AUTO)


def lines(
    title: str,
    description: str,
    section: str,
    *queries: prometheus.Dataquery,
    unit: str,
    stacked: bool = False,
    objective: float | None = None,
    log: bool = False,
    many: bool = False,
) -> Builder[model.Panel]:
    """Values over time, with the newest and the highest in the legend; `objective` draws a red line.

    `many`: the legend is beside the plot, as there is room for three lines below it.
    """
    panel = timeseries.Panel().title(title).description(description).datasource(SOURCE).links([_runbook(section)])
    panel.unit(unit).span(_WIDTH).height(HEIGHT).targets(_lettered(queries))
    panel.legend(
        common.VizLegendOptions()
        .show_legend(True)
        .display_mode(common_model.LegendDisplayMode.TABLE)
        .placement(common_model.LegendPlacement.RIGHT if many else common_model.LegendPlacement.BOTTOM)
        .calcs(["lastNotNull", "max"])
    )
    panel.tooltip(common.VizTooltipOptions().mode(common_model.TooltipDisplayMode.MULTI))
    panel.line_width(1).fill_opacity(40 if stacked else 5).axis_soft_min(0)
    if stacked:
        panel.stacking(common.StackingConfig().mode(common_model.StackingMode.NORMAL).group("A"))
    if log:
        panel.scale_distribution(common.ScaleDistributionConfig().type(common_model.ScaleDistribution.LOG).log(10))
    if objective is not None:
        panel.thresholds(_thresholds({objective: RED}))
        panel.thresholds_style(common.GraphThresholdsStyleConfig().mode(common_model.GraphThresholdsStyleMode.DASHED))
    return panel


def spread(title: str, description: str, section: str, expr: str, *, unit: str) -> Builder[model.Panel]:
    """A histogram over time, as a heat map of its buckets."""
    panel = heatmap.Panel().title(title).description(description).datasource(SOURCE).links([_runbook(section)])
    panel.unit(unit).calculate(False).cell_gap(0).show_legend().show_color_scale(True).span(_WIDTH).height(HEIGHT)
    # One record among thousands has a colour that is seen. Without steps, which the builder sets to 0, there is none.
    colors = heatmap.HeatmapColorOptions().mode(heatmap_model.HeatmapColorMode.SCHEME).scheme("Turbo").steps(64)
    colors.scale(heatmap_model.HeatmapColorScale.EXPONENTIAL).exponent(0.2)
    panel.y_axis(heatmap.YAxisConfig().unit(unit)).color(colors)
    return panel.targets(_lettered([ask(expr, "{{le}}", form="heatmap")]))


class _Mark(Builder[model.AnnotationQuery]):
    """A mark in all panels wherever `expr` has a value; `text` may use its labels."""

    def __init__(self, name: str, text: str, color: str, expr: str) -> None:
        self._made = _Annotation(name=name, datasource=SOURCE, icon_color=color, expr=expr)
        self._made.more = {"titleFormat": text, "step": "10s", "tagKeys": "mode"}

    def build(self) -> model.AnnotationQuery:
        """The annotation."""
        return self._made


class _Annotation(model.AnnotationQuery):
    """With the fields that only Prometheus' annotations have, which the schema leaves to the data source."""

    more: dict[str, Any]

    def to_json(self) -> dict[str, object]:
        """As Grafana reads it."""
        return {**super().to_json(), **self.more}


def _began_to_rule() -> str:
    """Versions of the rules of a filter that is active, and was not so 15 s ago; not those of standbys."""

    def ruling(before: str = "") -> str:
        up = f"fraud_filter_up{{{CHOSEN}}}{before} == 1"
        named = f"fraud_filter_rules_info{{{CHOSEN}}}{before}"
        return f"count by (query, version) ({named} and on (instance, mode, query) {up})"

    return f"{ruling()} unless {ruling(' offset 15s')}"


def board(
    uid: str, title: str, description: str, *content: dashboard.Row | Builder[model.Panel]
) -> dashboard.Dashboard:
    """A dashboard of rows and panels, with what all share: variables, annotations and links to the others."""
    made = dashboard.Dashboard(title).uid(uid).description(description).tags(["fraud-filter"]).editable()
    made.tooltip(model.DashboardCursorSync.CROSSHAIR).refresh("30s").time("now-15m", "now").timezone("browser")
    made.variables(
        [
            _data_source(),
            _choice("deployment", "Deployment", "fraud_filter_up", every=".*"),
            _choice("query", "Query", 'fraud_filter_up{deployment=~"$deployment"}', every=".*"),
            _choice("mode", "Mode", 'fraud_filter_up{deployment=~"$deployment"}', every=".*"),
            # "All" are those that are listed: what others have on the same Prometheus is not among them.
            _choice("job", "Job", 'up{deployment!="", deployment=~"$deployment"}'),
            _choice("instance", "Instance", 'up{deployment!="", deployment=~"$deployment", job=~"$job"}'),
            _runbook_address(),
        ]
    )
    known = f"count by (mode, query) (fraud_filter_up{{{CHOSEN}}}"
    made.annotation(_Mark("Mode", "{{query}} begins in {{mode}} mode", "blue", f"{known}) unless {known} offset 15s)"))
    again = f"fraud_filter_up{{{CHOSEN}}} == 1 and min_over_time(fraud_filter_up[15s]) == 0"
    counted = f"changes(fraud_filter_restarts_total{{{CHOSEN}}}[15s]) > 0"
    made.annotation(_Mark("Restart", "{{query}} restarted in {{mode}} mode", "orange", f"{again} or {counted}"))
    made.annotation(_Mark("Rules", "{{query}} decides by rules {{version}}", "green", _began_to_rule()))
    made.link(
        dashboard.DashboardLink("Fraud filter")
        .type(model.DashboardLinkType.DASHBOARDS)
        .tags(["fraud-filter"])
        .include_vars(True)
        .keep_time(True)
    )
    for heading, panels in _by_row(content):
        if heading and heading.build().collapsed:
            for panel in panels:
                heading.with_panel(panel)
            made.with_row(heading)
            continue
        if heading:
            made.with_row(heading)
        for panel in panels:
            made.with_panel(panel)
    return made


def row(title: str, *, optional: bool = False) -> dashboard.Row:
    """A heading above the panels that follow; those of an `optional` one are hidden until it is clicked."""
    return dashboard.Row(title).collapsed(optional)


def _by_row(content: Content) -> list[tuple[dashboard.Row | None, list[Builder[model.Panel]]]]:
    """Each heading with its panels; the first panels have none."""
    found: list[tuple[dashboard.Row | None, list[Builder[model.Panel]]]] = [(None, [])]
    for one in content:
        if isinstance(one, dashboard.Row):
            found.append((one, []))
        else:
            found[-1][1].append(one)
    return found


def _lettered(queries: Iterable[prometheus.Dataquery]) -> list[Builder[Dataquery]]:
    """The queries of a panel, with the names that Grafana tells them apart by."""
    return [query.ref_id(letter) for query, letter in zip(queries, ascii_uppercase, strict=False)]


def _runbook(section: str) -> dashboard.DashboardLink:
    link = dashboard.DashboardLink("Runbook").type(model.DashboardLinkType.LINK)
    return link.url(f"${{runbook}}#{section}").target_blank(True)


def _runbook_address() -> dashboard.TextBoxVariable:
    """Where the browser finds the runbook: a page of the stack's Prometheus, on its usual port."""
    address = "http://127.0.0.1:9090/consoles/runbook.html"
    return (
        dashboard.TextBoxVariable("runbook")
        .label("Runbook")
        .default_value(address)
        .current(model.VariableOption(None, address, address))
    )


def _data_source() -> dashboard.DatasourceVariable:
    """At first the stack's own, by the identity that provisioning gives it; elsewhere Grafana takes another."""
    variable = dashboard.DatasourceVariable("datasource").label("Data source").type("prometheus")
    return variable.current(model.VariableOption(None, "Prometheus", "prometheus"))


def _choice(label: str, text: str, series: str, every: str = "") -> dashboard.QueryVariable:
    """Values of the label in these series; `every` is what "All" asks for, without it all that are listed."""
    asked = f"label_values({series}, {label})"
    variable = dashboard.QueryVariable(label).label(text).datasource(SOURCE).query({"query": asked, "refId": label})
    variable.refresh(model.VariableRefresh.ON_TIME_RANGE_CHANGED).sort(model.VariableSort.ALPHABETICAL_ASC)
    variable.multi(True).include_all(True).current(model.VariableOption(None, "All", "$__all"))
    return variable.all_value(every) if every else variable


def _mappings(words: Words) -> list[model.ValueMapping]:
    results = {str(value): model.ValueMappingResult(text=text, color=color) for value, (text, color) in words.items()}
    return [model.ValueMap(options=results)]


def _thresholds(levels: Levels) -> dashboard.ThresholdsConfig:
    steps = [model.Threshold(value=None, color=levels.get(0, GREEN))]
    steps += [model.Threshold(value=value, color=color) for value, color in levels.items() if value]
    return dashboard.ThresholdsConfig().mode(model.ThresholdsMode.ABSOLUTE).steps(steps)
