// Shows how far the facts can be trusted: the verdict, and the measured values with intervals and baselines.

import { h, isolate, s } from "./dom.js";
import { percent, shortNumber } from "./format.js";

export const SIGNS = {
  trustworthy: "\u2713",
  robust: "\u2261",
  weak: "\u2248",
  unreliable: "\u2717",
  undecided: "\u2026",
  unknown: "?",
};
const [WIDTH, TOP, HIGH] = [360, 22, 14];
const twoDigits = (value) => shortNumber(value, 2);

// Draws the zones of the verdict, the measured share with its interval, and a mark at the baseline.
function meter(gauge, baselineText, description) {
  const x = (value) => WIDTH * Math.min(1, Math.max(0, value));
  const cuts = [0, gauge.fair, gauge.good, 1];
  const { value, low, high } = gauge.found;
  const parts = ["bad", "fair", "good"].map((name, i) => {
    const width = Math.max(0, x(cuts[i + 1]) - x(cuts[i]) - 1.5);
    return s("rect", { class: `zone ${name}`, x: x(cuts[i]), y: TOP, width, height: HIGH, rx: 2 });
  });
  for (const cut of cuts.slice(0, 3)) {
    const anchor = cut === 0 ? "start" : "middle";
    parts.push(s("text", { x: x(cut), y: TOP + HIGH + 18, "text-anchor": anchor }, percent(cut, 0)));
  }
  if (gauge.baseline) {
    const at = x(gauge.baseline.value);
    const isLeft = at > WIDTH / 2;
    parts.push(s("path", { class: "baseline", d: `M${at} 4V${TOP + HIGH + 3}` }));
    parts.push(s("text", { x: at + (isLeft ? -6 : 6), y: 13, "text-anchor": isLeft ? "end" : "start" }, baselineText));
  }
  const width = Math.max(2.5, x(high) - x(low));
  parts.push(s("rect", { class: "interval", x: x(low), y: TOP - 3, width, height: HIGH + 6, rx: 2 }));
  parts.push(s("path", { class: "needle", d: `M${x(value)} ${TOP + HIGH + 3}V${TOP - 4}l-5 -8h10l-5 8` }));
  const viewBox = `-6 0 ${WIDTH + 12} ${TOP + HIGH + 24}`;
  return s("svg", { class: "meter", viewBox, role: "img", "aria-label": description }, parts);
}

function stability(gauge, confidence) {
  const { value, low, high, exact } = gauge.found;
  const ends = exact ? "" : `${percent(low)} to ${percent(high)}`;
  const baseline = gauge.baseline ? percent(gauge.baseline.value) : "";
  const description = [
    `In ${percent(value)} of the neighbors in which these facts hold, ${gauge.claim}`,
    ends ? `, joint ${percent(confidence, 0)} interval ${ends}.` : ".",
    baseline ? ` Of all neighbors, it is ${baseline}.` : "",
  ].join("");
  return h(
    "div",
    { class: "measure" },
    h("p", { class: "figure" }, h("b", null, percent(value)), " of neighbors: while these facts hold, ", isolate(gauge.claim)),
    meter(gauge, baseline ? `all neighbors: ${baseline}` : "", description),
    h("p", { class: "note" }, ends ? `joint ${percent(confidence, 0)} interval ${ends}` : "computed exactly over all neighbors"),
  );
}

// How far the number itself moves, which is a root mean square.
function change(gauge) {
  const range = ({ value, low, high, exact }) =>
    `${twoDigits(value)}${exact ? "" : ` (${twoDigits(low)} to ${twoDigits(high)})`}`;
  const moves = `While these facts hold, the number itself moves by ${range(gauge.found)}, as a root mean square`;
  const clipped = gauge.is_clipped ? ", understated, because outputs were clipped" : "";
  return h("p", { class: "note" }, `${moves}${clipped}; relevance error ${range(gauge.relevance_error)}.`);
}

export function trust(view) {
  const { name, title, meaning } = view.verdict;
  const verdict = h(
    "p",
    { class: `verdict ${name}` },
    h("b", null, h("span", { "aria-hidden": "true" }, SIGNS[name]), ` ${title[0].toUpperCase()}${title.slice(1)}.`),
    ` ${meaning}`,
  );
  // For a label, only the stability is meaningful to a reader.
  const gauges = view.label === null ? view.gauges : view.gauges.slice(0, 1);
  return [verdict, ...gauges.map((gauge) => (gauge.kind === "stability" ? stability(gauge, view.confidence) : change(gauge)))];
}
