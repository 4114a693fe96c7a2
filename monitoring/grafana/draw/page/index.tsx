// Draws one dashboard as its JSON and the answers of Prometheus say, and marks the page as drawn.
import 'uplot/dist/uPlot.min.css';

import { createTheme, ThemeContext } from '@grafana/data';
import { GlobalStyles } from '@grafana/ui';
import { createRoot } from 'react-dom/client';

import { Board } from './board';

async function main() {
  const answers = await (await fetch('answers.json')).json();
  const theme = createTheme({ colors: { mode: 'dark' } });
  createRoot(document.getElementById('board')!).render(
    <ThemeContext.Provider value={theme}>
      <GlobalStyles />
      <Board answers={answers} />
    </ThemeContext.Provider>
  );
  await new Promise((done) => setTimeout(done, 500)); // the library's styles name the fonts
  await Promise.all(['400', '500'].map((weight) => document.fonts.load(`${weight} 12px Inter`)));
  // Plots are drawn in the frames after their elements stand.
  setTimeout(() => requestAnimationFrame(() => (document.body.dataset.drawn = 'yes')), 3000);
}

void main();
