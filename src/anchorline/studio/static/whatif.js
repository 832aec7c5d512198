// The what-if card: per fact, a switch that breaks it and fields for other values; then both answers.

import { fill, h, isolate } from "./dom.js";
import { dateText, percent, shortNumber, valueText, withMinusSign, withSign } from "./format.js";

const DATE = /^\d{4}-\d{2}-\d{2}$/;
const LONG = /^-?[1-9]\d{15,}$/; // an integer that JavaScript cannot represent exactly, exchanged as a text

function editor(column, value, change, fact, refused) {
  const id = `edit-${column.index}-${fact}`; // several facts may be about one column
  const label = h("label", { class: "visually-hidden", for: id }, `${column.name}: value`);
  const isListed = column.kind === "booleans" || (column.kind === "categories" && !column.has_more);
  return [label, isListed ? selectField(id, column, value, change) : textField(id, column, value, change, refused)];
}

// The values of options begin with =, which distinguishes an empty category from a missing value.
function selectField(id, column, value, change) {
  const levels = column.kind === "booleans" ? ["true", "false"] : [...column.levels];
  const isMissing = value === null;
  const current = String(value);
  if (!isMissing && !levels.includes(current)) levels.unshift(current);
  const option = (text, content, selected) => h("option", { value: content, selected }, text);
  const options = levels.map((level) => option(level, `=${level}`, level === current && !isMissing));
  if (column.has_missing || isMissing) options.push(option("missing", "", isMissing));
  const field = h("select", { id, onchange: () => change(selectedValue(column, field.value)) }, options);
  return field;
}

function textField(id, column, value, change, refused) {
  const text = value === null ? "" : dateText(valueText(value));
  const isDay = column.kind === "dates" && (DATE.test(text) || !text);
  const isNumber = column.kind === "numbers" && typeof value !== "string"; // a text is a long or infinite number
  const type = isNumber ? "number" : isDay ? "date" : "text";
  const placeholder = column.has_missing ? "missing" : null;
  const onchange = () => change(typedValue(column, field), { id, text: field.value });
  const isRefused = refused?.id === id;
  const shown = { value: isRefused ? refused.text : text, "aria-invalid": isRefused ? "true" : null, "aria-describedby": isRefused ? `${id}-why` : null };
  const field = h("input", { id, type, step: "any", placeholder, onchange, ...shown });
  return isRefused ? [field, h("span", { class: "refused", id: `${id}-why`, role: "alert" }, isolate(refused.why))] : field;
}

function selectedValue(column, value) {
  if (value === "") return null;
  return column.kind === "booleans" ? value === "=true" : value.slice(1);
}

function typedValue(column, field) {
  const text = field.value.trim();
  if (text === "") return null;
  if (column.kind !== "numbers") return field.value;
  return Number.isFinite(Number(text)) && !LONG.test(text) ? Number(text) : text;
}

function bar(name, value, text, ends, kind) {
  const share = Math.min(1, Math.max(0, (value - ends[0]) / (ends[1] - ends[0] || 1)));
  return h(
    "div",
    { class: `bar ${kind}` },
    h("span", { class: "what" }, name),
    h("span", { class: "rail", "aria-hidden": "true" }, h("i", { style: { width: `${(100 * share).toFixed(2)}%` } })),
    h("b", null, text),
  );
}

export class WhatIf {
  constructor(about, container, { onChange, onExplain }) {
    const isEdited = ({ kind }) => kind !== "texts" && kind !== "images"; // whose facts are parts of the value
    this.columns = new Map(about.columns.filter(isEdited).map((column, index) => [column.name, { ...column, index }]));
    this.canExplain = about.columns[0].kind !== "images"; // a changed image has no place in the list
    this.groups = new Map(Object.entries(about.groups)); // a column may be named like a member of all objects
    this.container = container;
    this.onChange = onChange;
    this.onExplain = onExplain;
    this.isOpen = false;
    this.forget();
  }

  members(key) {
    return this.groups.get(key) ?? [key];
  }

  // While a query is pending, each switch already shows its new position.
  draw(state, view, answer, isPending) {
    this.isPending = isPending;
    const focused = document.activeElement?.id;
    const reasons = new Map(view.sum.terms.map((term) => [term.index, term]));
    const named = new Set(); // a value that several facts are about can be edited once
    const isFirst = (i) => !named.has(view.literals[i].key) && Boolean(named.add(view.literals[i].key));
    const row = (i) => this.row(state, view, answer, i, reasons.get(i), isFirst(i));
    const list = (rows) => h("ul", { class: "facts" }, rows);
    const facts = [reasons.size ? list([...reasons.keys()].map(row)) : null];
    const others = view.literals.map((_, i) => i).filter(isFirst);
    const rest = others.map((i) => this.row(state, view, answer, i, undefined, true));
    if (others.length) facts.push(this.rest(list(rest), others.length));
    const isChanged = Object.keys(state.edits).length || state.broken.length;
    const reset = { type: "button", id: "reset", disabled: !isChanged, onclick: () => { this.forget(); this.onChange({}, []); } };
    const explain = { type: "button", id: "explain-changed", disabled: !isChanged || isPending || !answer };
    const buttons = [
      this.canExplain ? h("button", { ...explain, onclick: () => this.onExplain(answer.row) }, "Explain the changed case") : null,
      h("button", reset, "Undo all changes"),
    ];
    const outcome = [this.answers(view, answer, isChanged), h("div", { class: "inline" }, buttons)];
    const sides = [h("div", null, facts), h("div", { class: "outcomes", "aria-live": "polite" }, outcome)];
    fill(this.container, h("div", { class: "what-if-columns" }, sides));
    if (focused) document.getElementById(focused)?.focus();
  }

  rest(list, n) {
    const ontoggle = (event) => {
      this.isOpen = event.target.open;
    };
    return h("details", { class: "rest", open: this.isOpen, ontoggle }, h("summary", null, `Other facts (${n})`), list);
  }

  row(state, view, answer, i, term, isEditable) {
    const literal = view.literals[i];
    const isBroken = state.broken.includes(literal.key) || (!this.isPending && (answer?.is_broken[i] ?? false));
    const toggle = h(
      "button",
      {
        type: "button",
        role: "switch",
        id: `fact-${i}`,
        class: "switch",
        "aria-checked": String(!isBroken),
        "aria-label": `Fact holds: ${literal.text}`,
        onclick: () => this.toggle(state, literal.key, isBroken),
      },
      h("i", { "aria-hidden": "true" }),
    );
    const fields = (isEditable ? this.members(literal.key) : []).map((name) => {
      const column = this.columns.get(name);
      if (!column) return null;
      const change = (next, typed = null) => this.edit(state, literal.key, name, next, typed);
      return h("span", { class: "field" }, editor(column, answer ? answer.row[name] : null, change, i, this.refused));
    });
    const text = isolate(literal.text);
    const newText = isBroken && !this.isPending ? answer?.literals[i] : null;
    const instead = newText ? h("span", { class: "instead" }, isolate(newText)) : null;
    return h(
      "li",
      { class: isBroken ? "broken" : null },
      toggle,
      h("span", { class: "fact" }, isBroken ? h("s", null, text) : text, instead),
      h("span", { class: "adds" }, term ? withSign(term.number) : ""),
      h("span", { class: "fields" }, answer ? fields : null),
    );
  }

  bars(view, answer, ends, format, within) {
    return [
      h("p", { class: "note" }, isolate(view.output)),
      bar("this case", answer.original, format(answer.original), ends, "first"),
      bar("model now", answer.prediction, format(answer.prediction), ends, "model"),
      bar("sum predicts", within, format(within), ends, "expects"),
    ];
  }

  // The sum is a summary of the neighborhood: for one changed case it may point in the wrong direction.
  disagreement(answer, format) {
    const moved = [answer.prediction - answer.original, answer.expected - answer.original];
    if (answer.prediction === null || moved[0] * moved[1] >= 0 || format(answer.prediction) === format(answer.original)) return null;
    const [model, sum] = moved.map((change) => (change > 0 ? "up" : "down"));
    return h("p", { class: "note disagrees" }, `The model\u2019s answer goes ${model}, but the sum predicts that it goes ${sum}: here the sum is wrong.`);
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

  toggle(state, key, isBroken) {
    this.forget();
    const edits = { ...state.edits };
    for (const name of this.members(key)) delete edits[name];
    const broken = state.broken.filter((name) => name !== key);
    if (!isBroken) broken.push(key);
    this.onChange(edits, broken);
  }

  edit(state, key, name, value, typed) {
    Object.assign(this, { typed, refused: null });
    this.onChange({ ...state.edits, [name]: value }, state.broken.filter((broken) => broken !== key));
  }

  answers(view, answer, isChanged) {
    if (!answer) return h("p", { class: "note" }, "Querying the model\u2026");
    const ends = view.range;
    const unit = view.unit ? `\u00a0${view.unit}` : "";
    const format = (value) => (view.is_probability ? percent(value) : `${shortNumber(value, 3)}${unit}`);
    const within = Math.min(ends[1], Math.max(ends[0], answer.expected));
    const expected = withMinusSign(format(answer.expected));
    const bars = this.bars(view, answer, ends, format, within);
    if (this.isPending) return [h("p", { class: "outcome" }, "Querying the model\u2026"), bars];
    let outcome = "Nothing has been changed yet.";
    if (isChanged && answer.decision_stays === true) outcome = "The decision stays the same.";
    if (isChanged && answer.decision_stays === false) outcome = "The decision changes.";
    if (isChanged && answer.decision_stays === null) outcome = "The new answer is shown below.";
    const now = isChanged && answer.decision_stays !== null ? [" Now: ", h("b", null, isolate(answer.answer))] : null;
    const outside = `The sum predicts ${expected}, which is outside the range of the model's answers.`;
    const note = within !== answer.expected ? h("p", { class: "note" }, outside) : null;
    return [h("p", { class: "outcome" }, outcome, now), bars, note, isChanged ? this.disagreement(answer, format) : null];
  }
}
