// Asks Prometheus what Grafana would ask: the queries of panels and annotations, with variables replaced.

/** The scrape interval, as provisioning/datasources/prometheus.yml tells Grafana. */
const SCRAPE_S = 5;
/** Panels of half the width have about as many pixels, which is how many values Grafana asks for at most. */
const MOST_VALUES = 760;

/**
 * @typedef {{metric: Record<string, string>, values: [number, string][]}} Series
 * @typedef {{from: number, to: number}} Range seconds since 1970
 */

/**
 * The step in seconds that Grafana takes: no shorter than a scrape, and one of its round ones.
 * @param {Range} range
 */
export function stepOf(range) {
  const round = [5, 10, 15, 20, 30, 60, 120, 300, 600, 900, 1800, 3600];
  const wanted = Math.max(SCRAPE_S, (range.to - range.from) / MOST_VALUES);
  return round.find((step) => step >= wanted) ?? 3600;
}

/**
 * The expression with "All" chosen and Grafana's own variables replaced.
 * @param {string} expr
 * @param {Range} range
 * @param {number} step
 */
export function filledIn(expr, range, step) {
  const rate = Math.max(step + SCRAPE_S, 4 * SCRAPE_S);
  const own = { __rate_interval: `${rate}s`, __range: `${range.to - range.from}s`, __interval: `${step}s` };
  const names = { ...own, deployment: '.*', mode: '.*', query: '.*', job: '.*', instance: '.*' };
  return expr.replace(/\$\{?(\w+)\}?/g, (text, name) => names[/** @type {keyof typeof names} */ (name)] ?? text);
}

/**
 * @param {string} address
 * @param {string} expr
 * @param {{range: Range, step: number, instant?: boolean}} how
 * @returns {Promise<Series[]>}
 */
export async function ask(address, expr, { range, step, instant = false }) {
  const query = filledIn(expr, range, step);
  const words = instant
    ? { query, time: range.to }
    : { query, start: Math.floor(range.from / step) * step, end: Math.floor(range.to / step) * step, step };
  const asked = new URLSearchParams(Object.entries(words).map(([name, value]) => [name, String(value)]));
  const page = `${address}/api/v1/query${instant ? '' : '_range'}?${asked}`;
  const answer = await fetch(page).catch((error) => {
    throw new Error(`Prometheus at ${address} does not answer (${error.cause?.code ?? error.message}): name one that does`);
  });
  const told = await answer.json().catch(() => ({ status: 'error', error: `HTTP ${answer.status}` }));
  if (told.status !== 'success') {
    throw new Error(`Prometheus at ${address} refused ${query}: ${told.error}`);
  }
  return told.data.result.map((/** @type {any} */ one) => ({ ...one, values: one.values ?? [one.value] }));
}

/**
 * The text with labels in the place of {{names}}.
 * @param {string} text
 * @param {Record<string, string>} labels
 */
export function labelled(text, labels) {
  return text.replace(/\{\{\s*(\w+)\s*\}\}/g, (_, name) => labels[name] ?? '');
}
