// Draws each dashboard as a PNG, with Grafana's UI library in a headless Chromium and what a Prometheus answers.
import { execFileSync } from 'node:child_process';
import { readFileSync, readdirSync, mkdirSync } from 'node:fs';
import { createRequire } from 'node:module';
import path from 'node:path';
import { fileURLToPath } from 'node:url';
import { parseArgs } from 'node:util';

import { build } from 'esbuild';
import { chromium } from 'playwright-core';

import { ask, labelled, stepOf } from './prometheus.mjs';

const HERE = path.dirname(fileURLToPath(import.meta.url));
const BOARDS = path.join(HERE, '../dashboards');
const ICONS = path.join(path.dirname(createRequire(import.meta.url).resolve('@grafana/ui/package.json')), 'dist/public');
/** The fonts that the library's styles ask Grafana for. */
const FONTS = path.join(path.dirname(createRequire(import.meta.url).resolve('@fontsource/inter/package.json')), 'files');
const WEIGHTS = { Regular: 400, Medium: 500 };
/** Nothing is served there: every request of the page is answered here. */
const PAGE = 'http://dashboards.invalid/';
const WIDTH = 1600;
/** On a busy machine a page takes minutes. */
const PATIENCE_MS = 300_000;

const { values: given } = parseArgs({
  options: {
    prometheus: { type: 'string', default: 'http://127.0.0.1:9090' },
    minutes: { type: 'string', default: '15' },
    end: { type: 'string' },
    output: { type: 'string', default: '.' },
  },
});

function browser() {
  const names = process.env.FRAUD_TEST_BROWSER ? [process.env.FRAUD_TEST_BROWSER] : ['chromium', 'google-chrome', 'chromium-browser'];
  for (const name of names) {
    try {
      return execFileSync('/bin/sh', ['-c', 'command -v "$1"', 'sh', name], { encoding: 'utf8' }).trim();
    } catch {
      // the next one
    }
  }
  throw new Error(`drawing the dashboards needs a Chromium, and there is no ${names.join(' or ')}: install it, or name one in FRAUD_TEST_BROWSER`);
}

/**
 * The dashboard with its collapsed rows open: their panels have a place below them.
 * @param {any} board
 */
function opened(board) {
  return { ...board, panels: board.panels.flatMap((/** @type {any} */ panel) => [panel, ...(panel.panels ?? [])]) };
}

/**
 * What all queries of a dashboard answer.
 * @param {any} board
 * @param {{from: number, to: number}} range
 */
async function answers(board, range) {
  const step = stepOf(range);
  /** @type {Record<number, object[]>} */
  const panels = {};
  for (const panel of board.panels.filter((/** @type {any} */ each) => each.type !== 'row')) {
    panels[panel.id] = await Promise.all(
      panel.targets.map(async (/** @type {any} */ target) => ({
        refId: target.refId,
        format: target.format,
        instant: target.instant,
        series: (await ask(given.prometheus, target.expr, { range, step, instant: target.instant })).map((one) => ({
          ...one,
          name: labelled(target.legendFormat, one.metric),
        })),
      }))
    );
  }
  const marks = [];
  for (const mark of board.annotations.list) {
    const found = await ask(given.prometheus, mark.expr, { range, step: Number.parseInt(mark.step, 10) });
    marks.push({ color: mark.iconColor, series: found.map((one) => one.values.map(([at]) => at)), step: Number.parseInt(mark.step, 10) });
  }
  return { board, range, step, panels, marks };
}

/** The page's program in one file. */
async function bundle() {
  const made = await build({
    absWorkingDir: HERE,
    entryPoints: ['page/index.tsx'],
    bundle: true,
    write: false,
    format: 'esm',
    jsx: 'automatic',
    minify: true,
    outfile: 'page.js',
    loader: { '.svg': 'dataurl', '.ttf': 'empty' },
    define: { 'process.env.NODE_ENV': '"production"', global: 'globalThis' },
    logLevel: 'error',
  });
  return Object.fromEntries(made.outputFiles.map((file) => [path.basename(file.path), file.text]));
}

async function main() {
  const program = browser();
  const to = Math.floor(given.end ? Date.parse(given.end) / 1000 : Date.now() / 1000);
  const range = { from: to - 60 * Number(given.minutes), to };
  const files = readdirSync(BOARDS).filter((name) => name.endsWith('.json')).sort();
  const told = [];
  for (const name of files) {
    told.push({ name, data: await answers(opened(JSON.parse(readFileSync(path.join(BOARDS, name), 'utf8'))), range) });
  }
  const code = await bundle();
  mkdirSync(given.output, { recursive: true });
  const flags = ['--no-sandbox', '--disable-gpu', '--disable-quic', '--no-first-run', '--disable-background-networking', '--disable-component-update', '--disable-sync'];
  const running = await chromium.launch({ executablePath: program, args: flags, timeout: PATIENCE_MS });
  try {
    for (const { name, data } of told) {
      const page = await running.newPage({ viewport: { width: WIDTH, height: 900 }, timezoneId: 'UTC' });
      /** @type {string[]} */
      const complaints = [];
      page.on('pageerror', (error) => complaints.push(error.stack ?? error.message));
      page.on('console', (message) => message.type() === 'error' && complaints.push(`${message.text()} ${message.location().url}`));
      await page.route('**/*', (route) => {
        const { pathname } = new URL(route.request().url());
        if (pathname === '/') {
          const head = '<!doctype html><meta charset="utf-8"><link rel="stylesheet" href="page.css">';
          return route.fulfill({ contentType: 'text/html', body: `${head}<div id="board"></div><script type="module" src="page.js"></script>` });
        }
        if (pathname === '/answers.json') {
          return route.fulfill({ json: data });
        }
        if (pathname.slice(1) in code) {
          return route.fulfill({ contentType: pathname.endsWith('.css') ? 'text/css' : 'text/javascript', body: code[pathname.slice(1)] });
        }
        const font = pathname.match(/\/Inter-(Regular|Medium)\.woff2$/);
        if (font) {
          const weight = WEIGHTS[/** @type {'Regular' | 'Medium'} */ (font[1])];
          return route.fulfill({ path: path.join(FONTS, `inter-latin-${weight}-normal.woff2`) });
        }
        const icon = pathname.match(/\/(img\/icons\/.+\.svg)$/);
        return icon ? route.fulfill({ path: path.join(ICONS, icon[1]) }) : route.abort();
      });
      page.setDefaultTimeout(PATIENCE_MS);
      await page.goto(PAGE);
      await page.waitForFunction(() => document.body.dataset.drawn, null).catch(() => {
        throw new Error(`${name} was not drawn within ${PATIENCE_MS / 1000} s: ${complaints.join('\n') || 'the page says nothing'}`);
      });
      const file = path.join(given.output, name.replace('.json', '.png'));
      await page.screenshot({ path: file, fullPage: true });
      console.log(file);
      if (complaints.length) {
        throw new Error(`${name} was drawn with complaints:\n${complaints.join('\n')}`);
      }
      await page.close();
    }
  } finally {
    await running.close();
  }
}

main().catch((error) => {
  console.error(error.message);
  process.exitCode = 1;
});
