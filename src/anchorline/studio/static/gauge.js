// Shows how far the facts can be trusted: the verdict, and the measured values with intervals and baselines.

import { h, s } from "./dom.js";
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

// Draws the zones of the verdict, the measured value with its interval, and a mark at the baseline.
function meter(gauge, scaleEnd, baselineText, description) {
  const x = (value) => (WIDTH * Math.min(scaleEnd, Math.max(0, value))) / scaleEnd;
  const cuts = gauge.up ? [0, gauge.fair, gauge.good, scaleEnd] : [0, gauge.good, gauge.fair, scaleEnd];
  const names = gauge.up ? ["bad", "fair", "good"] : ["good", "fair", "bad"];
  const { value, low, high } = gauge.found;
  const parts = names.map((name, i) => {
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

const figure = (number, text) => h("p", { class: "figure" }, h("b", null, number), ` ${text}`);

function stability(gauge, confidence) {
  const { value, low, high, exact } = gauge.found;
  const ends = exact ? "" : `${percent(low)} to ${percent(high)}`;
  const baseline = gauge.baseline ? percent(gauge.baseline.value) : "";
  const description = [
    `${percent(value)} of the neighbors in which these facts hold get the same decision`,
    ends ? `, joint ${percent(confidence, 0)} interval ${ends}.` : ".",
    baseline ? ` Of all neighbors, ${baseline} get the same decision.` : "",
  ].join("");
  return h(
    "div",
    { class: "measure" },
    figure(percent(value), "of similar cases get the same decision while these facts hold"),
    meter(gauge, 1, baseline ? `all neighbors: ${baseline}` : "", description),
    h("p", { class: "note" }, ends ? `joint ${percent(confidence, 0)} interval ${ends}` : "computed exactly over all neighbors"),
  );
}

function change(gauge, confidence, isMain) {
  const typical = gauge.typical_change ?? gauge.found;
  const ends = gauge.found.exact ? "" : `${twoDigits(typical.low)} to ${twoDigits(typical.high)}`;
  const [value, low, high] = ["value", "low", "high"].map((end) => twoDigits(gauge.found[end] ** 2));
  const error = `relevance error ${value}${gauge.found.exact ? "" : ` (${low} to ${high})`}`;
  const sentence = `The number itself typically moves by ${twoDigits(typical.value)}${ends ? ` (${ends})` : ""}`;
  if (!isMain) return h("p", { class: "note" }, `${sentence}; ${error}.`);
  const baseline = gauge.baseline ? percent(gauge.baseline.value, 0) : "";
  const scale = "The scale shows shares of the output range.";
  return h(
    "div",
    { class: "measure" },
    figure(`\u00b1${twoDigits(typical.value)}`, "is how far the answer typically moves while these facts hold"),
    meter(gauge, 0.5, baseline ? `all neighbors: ${baseline}` : "", `${sentence}.`),
    h("p", { class: "note" }, `${ends ? `joint ${percent(confidence, 0)} interval ${ends}; ` : ""}${error}. ${scale}`),
  );
}

export function trust(view) {
  const { name, meaning } = view.verdict;
  const verdict = h(
    "p",
    { class: `verdict ${name}` },
    h("b", null, h("span", { "aria-hidden": "true" }, SIGNS[name]), ` ${name[0].toUpperCase()}${name.slice(1)}.`),
    ` ${meaning}`,
  );
  // For a label, only the stability is meaningful to a reader.
  const gauges = view.label === null ? view.gauges : view.gauges.slice(0, 1);
  const parts = gauges.map((gauge, i) =>
    gauge.kind === "stability" ? stability(gauge, view.confidence) : change(gauge, view.confidence, i === 0),
  );
  return [verdict, ...parts];
}
