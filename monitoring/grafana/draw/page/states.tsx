// When each series had which value, near to Grafana's state timeline, whose code is not published.
import { colorManipulator, FieldType, getFieldDisplayName } from '@grafana/data';
import { ReactElement } from 'react';

import { Drawing } from './data';
import { Box, Ordinal } from './ordinal';

export function States({ frames, timeRange, panel, width, height }: Drawing): ReactElement {
  const labels: string[] = [];
  const boxes: Box[] = [];
  [...frames].reverse().forEach((frame, row) => {
    const time = frame.fields.find((field) => field.type === FieldType.time)!;
    const value = frame.fields.find((field) => field.type === FieldType.number)!;
    const step = time.config.interval ?? 0;
    labels.push(getFieldDisplayName(value, frame, frames));
    value.values.forEach((each, number) => {
      const from: number = time.values[number];
      const next: number | undefined = time.values[number + 1];
      const to = Math.min(next ?? Infinity, from + step * (next && next - from < 1.5 * step ? 2 : 1));
      const color = colorManipulator.alpha(value.display!(each).color ?? '#808080', (value.config.custom?.fillOpacity ?? 70) / 100);
      const last = boxes.at(-1);
      if (last && last.row === row && last.color === color && last.to === from) {
        last.to = to;
      } else {
        boxes.push({ from, to, row, color });
      }
    });
  });
  const rows = { labels, boxes, count: labels.length, fill: panel.options.rowHeight };
  return <Ordinal rows={rows} timeRange={timeRange} width={width} height={height} />;
}
