// Single numbers, as Grafana's stat panel puts the library's pieces together.
import { DisplayValueAlignmentFactors, FieldDisplay, getDisplayValueAlignmentFactors, getFieldDisplayValues, VizOrientation } from '@grafana/data';
import { BigValue, useTheme2, VizRepeater } from '@grafana/ui';
import { ReactElement } from 'react';

import { configOf, Drawing } from './data';

export function Numbers({ panel, frames, width, height }: Drawing): ReactElement {
  const theme = useTheme2();
  const { options } = panel;
  const getValues = () =>
    getFieldDisplayValues({
      fieldConfig: configOf(panel),
      reduceOptions: { values: false, ...options.reduceOptions },
      replaceVariables: (text) => text,
      theme,
      data: frames,
      timeZone: 'utc',
    });
  return (
    <VizRepeater<FieldDisplay, DisplayValueAlignmentFactors>
      getValues={getValues}
      getAlignmentFactors={getDisplayValueAlignmentFactors}
      source={frames}
      itemSpacing={3}
      renderCounter={0}
      autoGrid
      orientation={options.orientation as VizOrientation}
      width={width}
      height={height}
      renderValue={(each) => (
        <BigValue
          value={each.value.display}
          count={each.count}
          colorMode={options.colorMode}
          graphMode={options.graphMode}
          justifyMode={options.justifyMode}
          textMode={options.textMode}
          alignmentFactors={each.alignmentFactors}
          parentOrientation={each.orientation}
          width={each.width}
          height={each.height}
          theme={theme}
          disableWideLayout={!options.wideLayout}
        />
      )}
    />
  );
}
