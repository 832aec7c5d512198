// Shows two cases side by side: their answers, their sums on one scale, and their differing values.

import { fill, h, isolate } from "./dom.js";
import { dateText, valueText } from "./format.js";
import { levels, waterfall } from "./waterfall.js";

function side(shownCase, range) {
  const { view, row, position } = shownCase;
  return h(
    "div",
    { class: "side" },
    h("h3", null, `Case ${position}: `, isolate(row.answer)),
    waterfall(view.sum, view.literals, isolate(view.total), `Sum of case ${position}`, range),
  );
}

function extent(view) {
  const { base, steps } = levels(view.sum);
  return [base, view.sum.total.value, ...steps.map((step) => step.after)];
}

// The fewest values of the second case that give the first one another decision.
function separating(second, answer) {
  const sentences = answer.options.map(({ lines }) => h("li", null, isolate(lines[0])));
  const none = h("p", { class: "note" }, "No three values of the other case, or fewer, change the decision of this one.");
  const title = `Values of case ${second.position} that change the decision`;
  return [h("h3", null, title), sentences.length ? h("ol", { class: "separating" }, sentences) : none];
}

// ``separate`` asks for the facts that separate two cases, which the model decides differently.
export async function compare(container, columns, first, second, separate) {
  draw(container, columns, first, second);
  if (!second || !separate || first.row.answer === second.row.answer || first.view.class === null) return;
  const part = h("div", { class: "facts-apart", "aria-live": "polite" });
  container.querySelector("details").before(part);
  const answer = await separate();
  if (answer && part.isConnected) fill(part, separating(second, answer));
}

function draw(container, columns, first, second) {
  if (!second) {
    fill(container, h("p", { class: "note" }, "Type a case number, or click \u21c4 next to a case in the list."));
    return;
  }
  // The sums share a scale only if both explain the same output.
  const range = first.view.output === second.view.output ? [...extent(first.view), ...extent(second.view)] : [];
  const rows = columns.map((name, i) => {
    const [a, b] = [first.row.values[i], second.row.values[i]];
    const differs = a !== b;
    return h(
      "tr",
      { class: differs ? "differs" : null },
      h("th", { scope: "row" }, isolate(name)),
      h("td", null, isolate(dateText(valueText(a)))),
      h("td", { class: "sign" }, differs ? "\u2260" : "="),
      h("td", null, isolate(dateText(valueText(b)))),
    );
  });
  const column = (text) => h("th", { scope: "col" }, text);
  const names = [column("column"), column(`case ${first.position}`), h("td"), column(`case ${second.position}`)];
  const caption = "Values of both cases";
  const table = h(
    "table",
    { class: "values-table" },
    h("caption", { class: "visually-hidden" }, caption),
    h("thead", null, h("tr", null, names)),
    h("tbody", null, rows),
  );
  const scroll = h("div", { class: "scroll", tabindex: "0", role: "region", "aria-label": caption }, table);
  fill(
    container,
    h("div", { class: "sides" }, side(first, range), side(second, range)),
    range.length ? null : h("p", { class: "note" }, "The two sums explain different outputs, so each has its own scale."),
    h("details", { open: true }, h("summary", null, "Values"), scroll),
  );
}
