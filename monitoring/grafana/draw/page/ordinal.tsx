// A plot over time whose other axis has named rows. Grafana's own two live in its app and are not published; axes and
// canvas are the library's, the rectangles drawn here.
import { FieldType, TimeRange } from '@grafana/data';
import { AxisPlacement, ScaleDirection, ScaleOrientation } from '@grafana/schema';
import { UPlotChart, UPlotConfigBuilder, useTheme2 } from '@grafana/ui';
import { ReactElement, useMemo } from 'react';

export interface Box {
  from: number;
  to: number;
  row: number;
  color: string;
}

export interface Rows {
  /** Of the rows, from below; or of the borders between them, one more. */
  labels: string[];
  /** How much of its row a box fills. */
  fill: number;
  boxes: Box[];
  count: number;
}

interface Props {
  rows: Rows;
  timeRange: TimeRange;
  width: number;
  height: number;
  extend?: (config: UPlotConfigBuilder) => void;
}

export function Ordinal({ rows, timeRange, width, height, extend }: Props): ReactElement {
  const theme = useTheme2();
  const config = useMemo(() => {
    const between = rows.labels.length > rows.count;
    const range: [number, number] = [timeRange.from.valueOf(), timeRange.to.valueOf()];
    const made = new UPlotConfigBuilder('utc');
    const [across, up] = [ScaleOrientation.Horizontal, ScaleOrientation.Vertical];
    made.addScale({ scaleKey: 'x', isTime: true, orientation: across, direction: ScaleDirection.Right, range: () => range });
    made.addScale({ scaleKey: 'y', orientation: up, direction: ScaleDirection.Up, range: () => [0, rows.count] });
    made.addAxis({ scaleKey: 'x', isTime: true, placement: AxisPlacement.Bottom, timeZone: 'utc', theme, grid: { show: false } });
    const every = between ? Math.ceil(rows.labels.length / (height / 24)) : 1;
    const shown = rows.labels.map((_, number) => number).filter((number) => number % every === 0);
    made.addAxis({
      scaleKey: 'y',
      placement: AxisPlacement.Left,
      theme,
      grid: { show: false },
      splits: () => shown.map((number) => (between ? number : number + 0.5)),
      values: () => shown.map((number) => rows.labels[number]),
    });
    made.setPrepData((frames) => frames[0].fields.map((field) => field.values) as any);
    made.addSeries({ scaleKey: 'y', theme, pathBuilder: () => null, pointsBuilder: () => null as any } as any);
    made.addHook('draw', (plot) => {
      const { left, top, width: wide, height: high } = plot.bbox;
      plot.ctx.save();
      plot.ctx.beginPath();
      plot.ctx.rect(left, top, wide, high);
      plot.ctx.clip();
      for (const { from, to, row, color } of rows.boxes) {
        const [x0, x1] = [from, to].map((at) => Math.round(plot.valToPos(at, 'x', true)));
        const margin = (1 - rows.fill) / 2;
        const [y0, y1] = [row + 1 - margin, row + margin].map((at) => Math.round(plot.valToPos(at, 'y', true)));
        plot.ctx.fillStyle = color;
        plot.ctx.fillRect(x0, y0, Math.max(1, x1 - x0), Math.max(1, y1 - y0));
      }
      plot.ctx.restore();
    });
    extend?.(made);
    return made;
  }, []);
  const ends = [timeRange.from.valueOf(), timeRange.to.valueOf()];
  const fields = [
    { name: 'Time', type: FieldType.time, config: {}, values: ends },
    { name: 'Value', type: FieldType.number, config: {}, values: [0, 0] },
  ];
  const data = config.prepData!([{ fields, length: 2 }]);
  return <UPlotChart config={config} data={data} width={width} height={height} />;
}
