// The what-if card: other values of a row, another text, or words and regions to take out; then the model's answer.

import { fill, h, isolate } from "./dom.js";
import { percent, shortNumber, valueText, withMinusSign } from "./format.js";

const DATE = /^\d{4}-\d{2}-\d{2}$/;
const LONG = /^-?[1-9]\d{15,}$/; // an integer that JavaScript cannot represent exactly, exchanged as a text

function editor(column, value, change, refused) {
  const id = `edit-${column.index}`;
  const isListed = column.kind === "booleans" || (column.kind === "categories" && !column.has_more);
  const field = isListed ? selectField(id, column, value, change) : textField(id, column, value, change, refused);
  return h("div", { class: "field" }, h("label", { for: id }, isolate(column.name)), field);
}

// The values of options begin with =, which distinguishes an empty category from a missing value.
function selectField(id, column, value, change) {
  const levels = column.kind === "booleans" ? ["true", "false"] : [...column.levels];
  const isMissing = value === null;
  if (!isMissing && !levels.includes(String(value))) levels.unshift(String(value));
  const options = levels.map((level) => h("option", { value: `=${level}`, selected: !isMissing && level === String(value) }, level));
  if (column.has_missing || isMissing) options.push(h("option", { value: "", selected: isMissing }, "missing"));
  const typed = (text) => (text === "" ? null : column.kind === "booleans" ? text === "=true" : text.slice(1));
  return h("select", { id, onchange: (event) => change(typed(event.target.value)) }, options);
}

function textField(id, column, value, change, refused) {
  const text = value === null ? "" : valueText(value);
  const isDay = column.kind === "dates" && (DATE.test(text) || !text);
  const isNumber = column.kind === "numbers" && typeof value !== "string"; // a text is a long or infinite number
  const type = isNumber ? "number" : isDay ? "date" : "text";
  const onchange = (event) => change(typedValue(column, event.target.value), { id, text: event.target.value });
  const isRefused = refused?.id === id;
  const shown = isRefused ? { value: refused.text, "aria-invalid": "true", "aria-describedby": `${id}-why` } : { value: text };
  const placeholder = column.has_missing ? "missing" : null;
  const field = column.kind === "texts" ? h("textarea", { id, rows: 6, dir: "auto", onchange }, shown.value) : h("input", { id, type, step: "any", placeholder, onchange, ...shown });
  return isRefused ? [field, h("span", { class: "refused", id: `${id}-why`, role: "alert" }, isolate(refused.why))] : field;
}

function typedValue(column, typed) {
  if (column.kind === "texts") return typed;
  const text = typed.trim();
  if (text === "") return null;
  if (column.kind !== "numbers") return typed;
  return Number.isFinite(Number(text)) && !LONG.test(text) ? Number(text) : text;
}

export class WhatIf {
  constructor(about, container, { onChange, onExplain }) {
    this.columns = about.columns.map((column, index) => ({ ...column, index }));
    this.isTable = about.is_table;
    Object.assign(this, { container, onChange, onExplain, isOpen: false });
    this.forget();
  }

  // While a query is pending, the last answer stays.
  draw(state, view, answer, isPending) {
    const focused = document.activeElement?.id;
    const stated = new Set(view.sum.facts.map(({ column }) => column));
    const fields = (columns) => columns.map((column) => editor(column, answer.row[column.name], (value, typed) => this.edit(state, column.name, value, typed), this.refused));
    let form = null;
    if (answer && this.isTable) {
      const others = this.columns.filter(({ name }) => !stated.has(name));
      const rest = { class: "rest", open: this.isOpen || !stated.size, ontoggle: (event) => { this.isOpen = event.target.open; } };
      form = [
        h("div", { class: "fields" }, fields(this.columns.filter(({ name }) => stated.has(name)))),
        others.length ? h("details", rest, h("summary", null, `Other columns (${others.length})`), h("div", { class: "fields" }, fields(others))) : null,
      ];
    } else if (answer) form = [this.parts(state, view), this.columns[0].kind === "texts" ? fields(this.columns) : null];
    const isChanged = Object.keys(state.edits).length || state.broken.length;
    const isImage = this.columns[0].kind === "images"; // a changed image has no place in the list
    const explain = { type: "button", id: "explain-changed", disabled: !isChanged || isPending || !answer, onclick: () => this.onExplain(answer.row) };
    const reset = { type: "button", id: "reset", disabled: !isChanged, onclick: () => { this.forget(); this.onChange({}, []); } };
    const buttons = [isImage ? null : h("button", explain, "Explain the changed case"), h("button", reset, "Undo all changes")];
    const outcome = isPending || !answer ? h("p", { class: "outcome" }, "Asking the model\u2026") : this.outcome(view, answer, isChanged);
    fill(this.container, h("div", { class: "what-if-columns" }, h("div", null, form), h("div", { "aria-live": "polite" }, outcome, h("div", { class: "inline" }, buttons))));
    if (focused) document.getElementById(focused)?.focus();
  }

  // The words or regions of the sum, each of which can be taken out.
  parts(state, view) {
    const box = ({ attribute, text }, i) => {
      const isKept = !state.broken.includes(attribute);
      const broken = isKept ? [...state.broken, attribute] : state.broken.filter((name) => name !== attribute);
      const input = h("input", { type: "checkbox", id: `fact-${i}`, checked: isKept, onchange: () => this.onChange(state.edits, broken) });
      return h("li", null, h("label", null, input, " ", isolate(text)));
    };
    return h("ul", { class: "facts" }, view.sum.facts.map(box));
  }

  outcome(view, answer, isChanged) {
    if (!isChanged) return h("p", { class: "outcome" }, "Nothing has been changed yet.");
    const number = (value) => (view.is_probability ? percent(value) : `${shortNumber(value)}${view.unit ? ` ${view.unit}` : ""}`);
    const says = answer.decision_stays === null ? null : `The decision ${answer.decision_stays ? "stays the same" : "changes"}. Now: `;
    const row = (name, value) => h("div", null, h("dt", null, name), h("dd", null, withMinusSign(number(value))));
    const broken = view.sum.facts.filter((_, i) => answer.is_broken[i]).map(({ text }) => h("li", null, isolate(text)));
    return [
      says ? h("p", { class: "outcome" }, says, h("b", null, isolate(answer.answer))) : null,
      h("p", { class: "note" }, isolate(view.output)),
      h("dl", { class: "values-list" }, row("this case", answer.original), row("changed case", answer.prediction), row("by the sum", answer.expected)),
      broken.length ? [h("p", { class: "note" }, `No longer true:`), h("ul", { class: "note" }, broken)] : h("p", { class: "note" }, `All ${view.facts} of the sum are still true.`),
    ];
  }

  // Says beside the field why its value is refused; returns whether there is such a field.
  refuse(why) {
    this.refused = this.typed ? { ...this.typed, why } : null;
    this.typed = null;
    return this.refused !== null;
  }

  forget() {
    Object.assign(this, { typed: null, refused: null });
  }

  edit(state, name, value, typed) {
    Object.assign(this, { typed: typed ?? null, refused: null });
    this.onChange({ ...state.edits, [name]: value }, state.broken);
  }
}
