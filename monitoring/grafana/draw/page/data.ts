// From Prometheus' answers to data frames, with the field config of a panel applied as Grafana does it.
import {
  applyFieldOverrides,
  DataFrame,
  Field,
  FieldConfig,
  FieldConfigOptionsRegistry,
  FieldConfigSource,
  FieldType,
  getFieldDisplayName,
  GrafanaTheme2,
  identityOverrideProcessor,
  ThresholdsMode,
  TimeRange,
} from '@grafana/data';

export interface Target {
  refId: string;
  format: string;
  instant: boolean;
  series: Array<{ name: string; metric: Record<string, string>; values: Array<[number, string]> }>;
}

export interface Panel {
  id: number;
  type: string;
  title: string;
  description: string;
  gridPos: { x: number; y: number; w: number; h: number };
  fieldConfig: FieldConfigSource;
  options: any;
  transformations?: Array<{ id: string; options: any }>;
}

export interface Answers {
  board: { title: string; panels: Panel[] };
  range: { from: number; to: number };
  step: number;
  panels: Record<number, Target[]>;
  marks: Array<{ color: string; step: number; series: number[][] }>;
}

export interface Drawing {
  panel: Panel;
  frames: DataFrame[];
  timeRange: TimeRange;
  answers: Answers;
  width: number;
  height: number;
}

/** What Grafana's panels take where the dashboard's JSON says nothing. */
const DEFAULTS: Record<string, FieldConfig> = {
  timeseries: {
    color: { mode: 'palette-classic' },
    custom: { drawStyle: 'line', showPoints: 'auto', pointSize: 5, lineInterpolation: 'linear', axisGridShow: undefined },
  },
  'state-timeline': { color: { mode: 'thresholds' }, custom: { fillOpacity: 70, lineWidth: 0 } },
  stat: { color: { mode: 'thresholds' } },
  heatmap: {},
};
const THRESHOLDS = { mode: ThresholdsMode.Absolute, steps: [{ value: -Infinity, color: 'green' }, { value: 80, color: 'red' }] };

const STANDARD = ['unit', 'decimals', 'min', 'max', 'displayName', 'noValue', 'color', 'mappings', 'thresholds', 'links'];

/** The panel's field config with Grafana's defaults; JSON has no -Infinity and writes null for it. */
export function configOf(panel: Panel): FieldConfigSource {
  const { thresholds, ...defaults } = panel.fieldConfig.defaults;
  const steps = thresholds?.steps.map((step) => ({ ...step, value: step.value ?? -Infinity }));
  const own = DEFAULTS[panel.type];
  const made = { ...own, ...defaults, custom: { ...own?.custom, ...defaults.custom } };
  return { defaults: { ...made, thresholds: thresholds ? { ...thresholds, steps: steps! } : THRESHOLDS }, overrides: panel.fieldConfig.overrides };
}

function registry(config: FieldConfigSource): FieldConfigOptionsRegistry {
  const made = new FieldConfigOptionsRegistry();
  const item = (id: string, path: string, isCustom: boolean): any => {
    return { id, path, isCustom, name: id, override: () => null, editor: () => null, process: identityOverrideProcessor, shouldApply: () => true };
  };
  STANDARD.forEach((name) => made.register(item(name, name, false)));
  Object.keys(config.defaults.custom ?? {}).forEach((name) => made.register(item(`custom.${name}`, name, true)));
  return made;
}

/** The frames of a panel: a frame a series, or one of all buckets for a heat map. */
export function prepared(panel: Panel, answers: Answers, theme: GrafanaTheme2): DataFrame[] {
  const targets = answers.panels[panel.id] ?? [];
  let frames = targets.flatMap((target) => (target.format === 'heatmap' ? buckets(target) : series(target, answers.step)));
  for (const { id, options } of panel.transformations ?? []) {
    if (id !== 'configFromData') {
      throw new Error(`${panel.title}: nothing here does what the transformation ${id} does`);
    }
    frames = thresholdFromData(frames, options);
  }
  const config = configOf(panel);
  return applyFieldOverrides({
    data: frames,
    fieldConfig: config,
    fieldConfigRegistry: registry(config),
    replaceVariables: (text) => text,
    theme,
    timeZone: 'utc',
  });
}

function series(target: Target, step: number): DataFrame[] {
  return target.series.map(({ name, metric, values }) => ({
    refId: target.refId,
    length: values.length,
    fields: [
      { name: 'Time', type: FieldType.time, config: { interval: step * 1000 }, values: values.map(([at]) => at * 1000) },
      { name: 'Value', type: FieldType.number, labels: metric, config: { displayNameFromDS: name }, values: values.map(([, value]) => Number(value)) },
    ],
  }));
}

/** Prometheus' buckets hold all that is below them; a heat map shows each by itself. */
function buckets(target: Target): DataFrame[] {
  if (!target.series.length) {
    return [];
  }
  const sorted = [...target.series].sort((a, b) => Number(a.metric.le.replace('+Inf', 'Infinity')) - Number(b.metric.le.replace('+Inf', 'Infinity')));
  const times = [...new Set(sorted.flatMap((one) => one.values.map(([at]) => at)))].sort((a, b) => a - b);
  const counts = sorted.map((one) => new Map(one.values.map(([at, value]) => [at, Number(value)])));
  const fields: Field[] = sorted.map((one, number) => ({
    name: one.metric.le,
    type: FieldType.number,
    config: {},
    values: times.map((at) => (counts[number].get(at) ?? 0) - (number ? (counts[number - 1].get(at) ?? 0) : 0)),
  }));
  return [{ refId: target.refId, length: times.length, fields: [{ name: 'Time', type: FieldType.time, config: {}, values: times.map((at) => at * 1000) }, ...fields] }];
}

/** "Config from query results": the app's own, so done again for the one thing that the dashboards ask of it. */
function thresholdFromData(frames: DataFrame[], options: { configRefId: string; mappings: Array<{ fieldName: string; handlerKey: string }> }): DataFrame[] {
  const told = frames.find((frame) => frame.refId === options.configRefId);
  const field = told?.fields.find((each) => options.mappings.some(({ fieldName }) => fieldName === getFieldDisplayName(each, told)));
  const value = field?.values.at(-1);
  return frames
    .filter((frame) => frame !== told)
    .map((frame) => ({
      ...frame,
      fields: frame.fields.map((each) =>
        each.type !== FieldType.number || value === undefined
          ? each
          : { ...each, config: { ...each.config, thresholds: { mode: ThresholdsMode.Absolute, steps: [{ value, color: 'red' }] } } }
      ),
    }));
}
