// Two cases side by side: their answers, their sums on one scale, and where their values differ.

import { fill, h, own } from "./dom.js";
import { day, shown } from "./format.js";
import { levels, waterfall } from "./picture.js";

function side(one, range) {
  const { view, row, position } = one;
  return h(
    "div",
    { class: "side" },
    h("h3", null, `Case ${position}: `, own(row.answer)),
    waterfall(view.sum, view.literals, own(view.total), `Sum of case ${position}`, range),
  );
}

function extent(view) {
  const { base, steps } = levels(view.sum);
  return [base, view.sum.total.value, ...steps.map((step) => step.after)];
}

export function compare(place, columns, one, two) {
  if (!two) {
    fill(place, h("p", { class: "note" }, "Type a number, or choose \u21c4 beside a case in the list."));
    return;
  }
  // One scale only where both explain the same number.
  const range = one.view.output === two.view.output ? [...extent(one.view), ...extent(two.view)] : [];
  const rows = columns.map((name, i) => {
    const [a, b] = [one.row.values[i], two.row.values[i]];
    const differs = a !== b;
    return h(
      "tr",
      { class: differs ? "differs" : null },
      h("th", { scope: "row" }, own(name)),
      h("td", null, own(day(shown(a)))),
      h("td", { class: "sign" }, differs ? "\u2260" : "="),
      h("td", null, own(day(shown(b)))),
    );
  });
  const column = (text) => h("th", { scope: "col" }, text);
  const names = [column("value"), column(`case ${one.position}`), h("td"), column(`case ${two.position}`)];
  const caption = "Values of both cases";
  const table = h(
    "table",
    { class: "values-table" },
    h("caption", { class: "unseen" }, caption),
    h("thead", null, h("tr", null, names)),
    h("tbody", null, rows),
  );
  const scroll = h("div", { class: "scroll", tabindex: "0", role: "region", "aria-label": caption }, table);
  fill(
    place,
    h("div", { class: "sides" }, side(one, range), side(two, range)),
    range.length ? null : h("p", { class: "note" }, "The two sums explain different outputs: each case its own."),
    h("details", { open: true }, h("summary", null, "Values"), scroll),
  );
}
