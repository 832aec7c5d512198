// Shows how far the facts can be trusted: the verdict, and the measured values with intervals and baselines.

import { h, isolate, s } from "./dom.js";
import { percent } from "./format.js";

export const SIGNS = {
  trustworthy: "\u2713",
  robust: "\u2261",
  weak: "\u2248",
  unreliable: "\u2717",
  undecided: "\u2026",
  unknown: "?",
};
const [WIDTH, TOP, HIGH] = [360, 22, 14];

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
  const { value, exact } = gauge.found;
  const ends = exact ? "" : `joint ${percent(confidence, 0)} interval ${gauge.limits}%`;
  const baseline = gauge.baseline ? percent(gauge.baseline.value) : "";
  const isAll = value === 1 && !exact; // others, which were not drawn, may differ
  const [share, neighbors] = isAll ? ["All", " neighbors drawn"] : [percent(value), " of neighbors"];
  const description = [
    `${share}${neighbors}: ${gauge.condition}, ${gauge.claim}`,
    ends ? `, ${ends}.` : ".",
    baseline ? ` Of all neighbors, it is ${baseline}.` : "",
  ].join("");
  return h(
    "div",
    { class: "measure" },
    h("p", { class: "figure" }, h("b", null, share), `${neighbors}: ${gauge.condition}, `, isolate(gauge.claim)),
    meter(gauge, baseline ? `all neighbors: ${baseline}` : "", description),
    h("p", { class: "note" }, ends || "computed exactly over all neighbors"),
  );
}

export function trust(view) {
  const { name, title, meaning } = view.verdict;
  const verdict = h(
    "p",
    { class: `verdict ${name}` },
    h("b", null, h("span", { "aria-hidden": "true" }, SIGNS[name]), ` ${title[0].toUpperCase()}${title.slice(1)}.`),
    ` ${meaning}`,
  );
  const shares = view.gauges.filter((gauge) => gauge.kind === "stability");
  const clipping = view.clipping ? h("p", { class: "note clipping" }, view.clipping) : null;
  return [verdict, clipping, ...shares.map((gauge) => stability(gauge, view.confidence))];
}
