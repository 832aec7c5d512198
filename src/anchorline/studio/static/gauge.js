// How far the reasons can be trusted: the verdict, what was measured, its interval, and what it is without the facts.

import { h, s } from "./dom.js";
import { brief, percent } from "./format.js";

export const SIGNS = { trustworthy: "\u2713", weak: "\u2248", unreliable: "\u2717", unknown: "?" };
const [WIDTH, TOP, HIGH] = [360, 22, 14];
const two = (value) => brief(value, 2);

// The zones of the verdict, the measured value with its interval, and a mark for the same without the facts.
function meter(gauge, most, told, described) {
  const x = (value) => (WIDTH * Math.min(most, Math.max(0, value))) / most;
  const cuts = gauge.up ? [0, gauge.fair, gauge.good, most] : [0, gauge.good, gauge.fair, most];
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
    parts.push(s("text", { x: at + (isLeft ? -6 : 6), y: 13, "text-anchor": isLeft ? "end" : "start" }, told));
  }
  const width = Math.max(2.5, x(high) - x(low));
  parts.push(s("rect", { class: "interval", x: x(low), y: TOP - 3, width, height: HIGH + 6, rx: 2 }));
  parts.push(s("path", { class: "needle", d: `M${x(value)} ${TOP + HIGH + 3}V${TOP - 4}l-5 -8h10l-5 8` }));
  const viewBox = `-6 0 ${WIDTH + 12} ${TOP + HIGH + 24}`;
  return s("svg", { class: "meter", viewBox, role: "img", "aria-label": described }, parts);
}

const figure = (number, text) => h("p", { class: "figure" }, h("b", null, number), ` ${text}`);

function stability(gauge, confidence) {
  const { value, low, high, exact } = gauge.found;
  const ends = exact ? "" : `${percent(low)} to ${percent(high)}`;
  const without = gauge.baseline ? percent(gauge.baseline.value) : "";
  const described = [
    `The decision stays in ${percent(value)} of neighbors while the reasons stay`,
    ends ? `, ${percent(confidence, 0)} interval ${ends}` : "",
    without ? `; over all neighbors in ${without}.` : ".",
  ].join("");
  return h(
    "div",
    { class: "measure" },
    figure(percent(value), "of similar cases get the same decision while these reasons stay"),
    meter(gauge, 1, without ? `over all ${without}` : "", described),
    h("p", { class: "note" }, ends ? `${percent(confidence, 0)} interval ${ends}` : "computed over all cases"),
  );
}

function change(gauge, confidence, isMain) {
  const typical = gauge.typical_change ?? gauge.found;
  const ends = gauge.found.exact ? "" : `${two(typical.low)} to ${two(typical.high)}`;
  const [value, low, high] = ["value", "low", "high"].map((end) => two(gauge.found[end] ** 2));
  const error = `relevance error ${value}${gauge.found.exact ? "" : ` (${low} to ${high})`}`;
  const told = `The number itself then moves by ${two(typical.value)}, typically${ends ? ` (${ends})` : ""}`;
  if (!isMain) return h("p", { class: "note" }, `${told}; ${error}.`);
  const without = gauge.baseline ? percent(gauge.baseline.value, 0) : "";
  return h(
    "div",
    { class: "measure" },
    figure(`\u00b1${two(typical.value)}`, "is how far the answer typically moves while these reasons stay"),
    meter(gauge, 0.5, without ? `over all ${without} of the range` : "", `${told}.`),
    h("p", { class: "note" }, `${ends ? `${percent(confidence, 0)} interval ${ends}; ` : ""}${error}.`),
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
  // Of a label, only whether it stays means anything to a reader.
  const told = view.label === null ? view.gauges : view.gauges.slice(0, 1);
  const parts = told.map((gauge, i) =>
    gauge.kind === "stability" ? stability(gauge, view.confidence) : change(gauge, view.confidence, i === 0),
  );
  return [verdict, ...parts];
}
