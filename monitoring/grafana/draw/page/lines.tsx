// Time series: the library's own, and the dashboard's marks over it.
import { EventBusSrv } from '@grafana/data';
import { PanelContextProvider, TimeSeries, UPlotConfigBuilder, useTheme2 } from '@grafana/ui';
import { ReactElement } from 'react';

import { Answers, Drawing } from './data';

export function Lines({ panel, frames, timeRange, answers, width, height }: Drawing): ReactElement {
  const theme = useTheme2();
  return (
    <PanelContextProvider value={{ eventsScope: 'draw', eventBus: new EventBusSrv() }}>
      <TimeSeries
        frames={frames}
        structureRev={1}
        timeRange={timeRange}
        timeZone="utc"
        width={width}
        height={height}
        legend={panel.options.legend}
        options={panel.options}
      >
        {(config: UPlotConfigBuilder) => {
          markEvents(config, answers, (name) => theme.visualization.getColorByName(name));
          return null;
        }}
      </TimeSeries>
    </PanelContextProvider>
  );
}

/** Dashed lines where something happened; neighbouring values of an annotation are one event, from its first. */
export function markEvents(config: UPlotConfigBuilder, answers: Answers, color: (name: string) => string): void {
  const marks = answers.marks.flatMap(({ color: name, step, series }) =>
    series.flatMap((times) => times.filter((at, number) => number === 0 || at - times[number - 1] > step).map((at) => ({ at, name })))
  );
  config.addHook('draw', (plot) => {
    const { left, top, width, height } = plot.bbox;
    plot.ctx.save();
    plot.ctx.setLineDash([5, 5]);
    for (const { at, name } of marks) {
      const x = plot.valToPos(at * 1000, 'x', true);
      if (x >= left && x <= left + width) {
        plot.ctx.strokeStyle = color(name);
        plot.ctx.beginPath();
        plot.ctx.moveTo(x, top);
        plot.ctx.lineTo(x, top + height);
        plot.ctx.stroke();
      }
    }
    plot.ctx.restore();
  });
}
