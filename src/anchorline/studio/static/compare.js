// Shows two cases side by side: their sums on one scale, and their values.

import { fill, h, isolate } from "./dom.js";
import { valueText } from "./format.js";
import { levels, waterfall } from "./waterfall.js";

const extent = ({ sum }) => [...levels(sum), sum.total.value];

export function compare(container, columns, first, second) {
  if (!second) {
    fill(container, h("p", { class: "note" }, "Type a case number, or click \u21c4 next to a case in the list."));
    return;
  }
  // The sums share a scale only if both explain the same output.
  const isShared = first.view.output === second.view.output;
  const range = isShared ? [...extent(first.view), ...extent(second.view)] : [];
  const side = ({ view, name }) => h("div", { class: "side" }, h("h3", null, `Case ${name}`), h("p", null, isolate(view.decision)), waterfall(view, range));
  const rows = columns.map((name, i) => {
    const [a, b] = [first.row.values[i], second.row.values[i]];
    const cells = [h("td", null, isolate(valueText(a))), h("td", { class: "sign" }, a === b ? "=" : "\u2260"), h("td", null, isolate(valueText(b)))];
    return h("tr", { class: a === b ? null : "differs" }, h("th", { scope: "row" }, isolate(name)), cells);
  });
  const column = (text) => h("th", { scope: "col" }, text);
  const head = h("thead", null, h("tr", null, column("column"), column(`case ${first.name}`), h("td"), column(`case ${second.name}`)));
  const table = h("table", { class: "values-table" }, h("caption", { class: "visually-hidden" }, "Values of both cases"), head, h("tbody", null, rows));
  fill(
    container,
    h("div", { class: "sides" }, side(first), side(second)),
    isShared ? null : h("p", { class: "note" }, "The two sums explain different outputs, so each has its own scale."),
    h("div", { class: "scroll", tabindex: "0", role: "region", "aria-label": "Values of both cases" }, table),
  );
}
