// Places panels where the dashboard's grid has them, each in the frame that Grafana gives it.
import { useTheme2, PanelChrome } from '@grafana/ui';
import { dateTime, dateTimeFormat } from '@grafana/data';
import { LoadingState } from '@grafana/data';
import { ReactElement } from 'react';

import { Answers, Panel, prepared } from './data';
import { Heat } from './heat';
import { Lines } from './lines';
import { Numbers } from './numbers';
import { States } from './states';

const CELL = 30;
const GAP = 8;
const EDGE = 16;
const WIDTH = 1600;
const COLUMN = (WIDTH - 2 * EDGE - 23 * GAP) / 24;

const across = (cells: number) => cells * COLUMN + (cells - 1) * GAP;
const down = (cells: number) => cells * CELL + (cells - 1) * GAP;

/** How each type of panel is drawn. */
const DRAWN: Record<string, typeof Lines> = {
  timeseries: Lines,
  stat: Numbers,
  'state-timeline': States,
  heatmap: Heat,
};

export function Board({ answers }: { answers: Answers }): ReactElement {
  const theme = useTheme2();
  const { board, range } = answers;
  const rows = Math.max(...board.panels.map((panel) => panel.gridPos.y + panel.gridPos.h));
  const time = (at: number) => dateTimeFormat(at * 1000, { timeZone: 'utc', format: 'YYYY-MM-DD HH:mm:ss' });
  return (
    <div style={{ width: WIDTH, background: theme.colors.background.canvas, padding: EDGE, boxSizing: 'border-box', overflow: 'hidden' }}>
      <div style={{ display: 'flex', justifyContent: 'space-between', marginBottom: GAP, color: theme.colors.text.secondary }}>
        <span style={{ ...theme.typography.h4, color: theme.colors.text.primary }}>{board.title}</span>
        <span>
          {time(range.from)} to {time(range.to)} UTC · drawn with @grafana/ui from the dashboard&apos;s JSON, not by Grafana
        </span>
      </div>
      <div style={{ position: 'relative', height: down(rows) }}>
        {board.panels.map((panel) => (
          <div
            key={panel.id}
            style={{
              position: 'absolute',
              left: panel.gridPos.x * (COLUMN + GAP),
              top: panel.gridPos.y * (CELL + GAP),
              width: across(panel.gridPos.w),
              height: down(panel.gridPos.h),
            }}
          >
            {panel.type === 'row' ? <Row title={panel.title} /> : <Framed panel={panel} answers={answers} />}
          </div>
        ))}
      </div>
    </div>
  );
}

function Row({ title }: { title: string }): ReactElement {
  const theme = useTheme2();
  return <div style={{ ...theme.typography.h6, color: theme.colors.text.primary, padding: '4px 8px' }}>⌄ {title}</div>;
}

function Framed({ panel, answers }: { panel: Panel; answers: Answers }): ReactElement {
  const theme = useTheme2();
  const Drawn = DRAWN[panel.type] as typeof Lines | undefined;
  const frames = prepared(panel, answers, theme);
  const to = dateTime(answers.range.to * 1000);
  const from = dateTime(answers.range.from * 1000);
  const timeRange = { from, to, raw: { from, to } };
  const empty = frames.length === 0 && panel.type !== 'stat';
  return (
    <PanelChrome
      title={panel.title}
      description={panel.description}
      width={across(panel.gridPos.w)}
      height={down(panel.gridPos.h)}
      loadingState={LoadingState.Done}
    >
      {(width, height) =>
        empty || !Drawn ? (
          <div style={{ height, display: 'grid', placeItems: 'center', ...theme.typography.h3 }}>
            {Drawn ? 'No data' : `no ${panel.type} here`}
          </div>
        ) : (
          <Drawn panel={panel} frames={frames} timeRange={timeRange} answers={answers} width={width} height={height} />
        )
      }
    </PanelChrome>
  );
}
