// A histogram over time, near to Grafana's heat map, whose code is not published.
import { FieldType, getDisplayProcessor, formattedValueToString } from '@grafana/data';
import { useTheme2 } from '@grafana/ui';
import { interpolateTurbo } from 'd3';
import { ReactElement } from 'react';

import { Drawing } from './data';
import { Box, Ordinal } from './ordinal';

const SCALE = 34;

export function Heat({ frames, timeRange, panel, answers, width, height }: Drawing): ReactElement {
  const theme = useTheme2();
  const { scheme, steps, scale, exponent } = panel.options.color;
  if (scheme !== 'Turbo') {
    throw new Error(`${panel.title}: only the colours of Turbo are known here, not ${scheme}`);
  }
  const [frame] = frames;
  const [time, ...buckets] = frame.fields;
  const unit = getDisplayProcessor({ field: { type: FieldType.number, config: { unit: panel.options.yAxis.unit } }, theme });
  const shown = (le: string) => (le === '+Inf' ? le : formattedValueToString(unit(Number(le))));
  const most = Math.max(1, ...buckets.flatMap((bucket) => bucket.values as number[]));
  const scaled = (share: number) => (scale === 'exponential' ? share ** exponent : share);
  const color = (share: number) => interpolateTurbo(Math.round(scaled(share) * (steps - 1)) / (steps - 1));
  const boxes: Box[] = buckets.flatMap((bucket, row) =>
    (bucket.values as number[]).flatMap((value, number) =>
      value > 1e-9 ? [{ from: time.values[number] - answers.step * 1000, to: time.values[number], row, color: color(value / most) }] : []
    )
  );
  const rows = { labels: ['', ...buckets.map((bucket) => shown(bucket.name))], boxes, count: buckets.length, fill: 1 };
  const stops = Array.from({ length: 16 }, (_, number) => interpolateTurbo(number / 15));
  return (
    <div style={{ width, height }}>
      <Ordinal rows={rows} timeRange={timeRange} width={width} height={height - SCALE} />
      <div style={{ display: 'flex', gap: 8, alignItems: 'center', width: 320, height: SCALE, ...theme.typography.bodySmall }}>
        <span>0</span>
        <div style={{ flex: 1, height: 8, background: `linear-gradient(90deg, ${stops.join(', ')})` }} />
        <span>{formattedValueToString(getDisplayProcessor({ field: { type: FieldType.number, config: { unit: 'short' } }, theme })(most))}</span>
      </div>
    </div>
  );
}
