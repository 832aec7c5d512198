// What if: every fact with a switch that breaks it and fields for other values; two answers side by side.

import { fill, h, own } from "./dom.js";
import { brief, day, minus, percent, shown, signed } from "./format.js";

const DATE = /^\d{4}-\d{2}-\d{2}$/;
const LONG = /^-?[1-9]\d{15,}$/; // a number of which JavaScript loses digits: it comes and goes as a text

function editor(column, value, change) {
  const id = `edit-${column.index}`;
  const label = h("label", { class: "unseen", for: id }, `${column.name}: value`);
  const isListed = column.kind === "booleans" || (column.kind === "categories" && !column.has_more);
  return [label, isListed ? chooser(id, column, value, change) : typer(id, column, value, change)];
}

// Options carry a sign before their text, so that an empty category is not a missing one.
function chooser(id, column, value, change) {
  const levels = column.kind === "booleans" ? ["true", "false"] : [...column.levels];
  const isMissing = value === null;
  const now = String(value);
  if (!isMissing && !levels.includes(now)) levels.unshift(now);
  const option = (text, content, selected) => h("option", { value: content, selected }, text);
  const options = levels.map((level) => option(level, `=${level}`, level === now && !isMissing));
  if (column.has_missing || isMissing) options.push(option("missing", "", isMissing));
  const field = h("select", { id, onchange: () => change(chosen(column, field.value)) }, options);
  return field;
}

function typer(id, column, value, change) {
  const text = value === null ? "" : day(shown(value));
  const isDay = column.kind === "dates" && (DATE.test(text) || !text);
  const isNumber = column.kind === "numbers" && typeof value !== "string"; // else too long, or infinite
  const type = isNumber ? "number" : isDay ? "date" : "text";
  const placeholder = column.has_missing ? "missing" : null;
  const onchange = () => change(typed(column, field));
  const field = h("input", { id, type, step: "any", value: text, placeholder, onchange });
  return field;
}

function chosen(column, value) {
  if (value === "") return null;
  return column.kind === "booleans" ? value === "=true" : value.slice(1);
}

function typed(column, field) {
  const text = field.value.trim();
  if (text === "") return null;
  if (column.kind !== "numbers") return field.value;
  return Number.isFinite(Number(text)) && !LONG.test(text) ? Number(text) : text;
}

function bar(name, value, told, ends, kind) {
  const share = Math.min(1, Math.max(0, (value - ends[0]) / (ends[1] - ends[0] || 1)));
  return h(
    "div",
    { class: `bar ${kind}` },
    h("span", { class: "what" }, name),
    h("span", { class: "rail", "aria-hidden": "true" }, h("i", { style: { width: `${(100 * share).toFixed(2)}%` } })),
    h("b", null, told),
  );
}

export class WhatIf {
  constructor(about, place, { changed }) {
    this.columns = new Map(about.columns.map((column, index) => [column.name, { ...column, index }]));
    this.groups = about.groups;
    this.place = place;
    this.changed = changed;
    this.isOpen = false;
  }

  members(key) {
    return this.groups[key] ?? [key];
  }

  // While the model is being asked, switches already stand where they were put.
  draw(state, view, answer, isAsking) {
    this.isAsking = isAsking;
    const focused = document.activeElement?.id;
    const reasons = new Map(view.sum.terms.map((term) => [term.index, term]));
    const others = view.literals.map((_, i) => i).filter((i) => !reasons.has(i));
    const list = (indices) =>
      h("ul", { class: "facts" }, indices.map((i) => this.row(state, view, answer, i, reasons.get(i))));
    const facts = [reasons.size ? list([...reasons.keys()]) : null];
    if (others.length) facts.push(this.rest(list(others), others.length));
    const isChanged = Object.keys(state.edits).length || state.broken.length;
    const back = { type: "button", id: "reset", disabled: !isChanged, onclick: () => this.changed({}, []) };
    const verso = [this.answers(view, answer, isChanged), h("button", back, "Back to the case")];
    const sides = [h("div", null, facts), h("div", { class: "verso", "aria-live": "polite" }, verso)];
    fill(this.place, h("div", { class: "otherwise" }, sides));
    if (focused) document.getElementById(focused)?.focus();
  }

  rest(list, n) {
    const ontoggle = (event) => {
      this.isOpen = event.target.open;
    };
    return h("details", { class: "rest", open: this.isOpen, ontoggle }, h("summary", null, `Other facts (${n})`), list);
  }

  row(state, view, answer, i, term) {
    const literal = view.literals[i];
    const isBroken = state.broken.includes(literal.key) || (!this.isAsking && (answer?.is_broken[i] ?? false));
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
    const fields = this.members(literal.key).map((name) => {
      const column = this.columns.get(name);
      if (!column) return null;
      const change = (next) => this.edit(state, literal.key, name, next);
      return h("span", { class: "field" }, editor(column, answer ? answer.row[name] : null, change));
    });
    const text = own(literal.text);
    const now = isBroken && !this.isAsking ? answer?.literals[i] : null;
    const instead = now ? h("span", { class: "instead" }, own(now)) : null;
    return h(
      "li",
      { class: isBroken ? "broken" : null },
      toggle,
      h("span", { class: "fact" }, isBroken ? h("s", null, text) : text, instead),
      h("span", { class: "adds" }, term ? signed(term.number) : ""),
      h("span", { class: "fields" }, answer ? fields : null),
    );
  }

  bars(view, answer, ends, told, within) {
    return [
      h("p", { class: "note" }, own(view.output)),
      bar("this case", answer.original, told(answer.original), ends, "first"),
      bar("the model now", answer.prediction, told(answer.prediction), ends, "model"),
      bar("the sum expects", within, told(within), ends, "expects"),
    ];
  }

  toggle(state, key, isBroken) {
    const edits = { ...state.edits };
    for (const name of this.members(key)) delete edits[name];
    const broken = state.broken.filter((name) => name !== key);
    if (!isBroken) broken.push(key);
    this.changed(edits, broken);
  }

  edit(state, key, name, value) {
    this.changed({ ...state.edits, [name]: value }, state.broken.filter((one) => one !== key));
  }

  answers(view, answer, isChanged) {
    if (!answer) return h("p", { class: "note" }, "Asking the model\u2026");
    const ends = view.range;
    const told = (value) => (view.is_probability ? percent(value) : brief(value, 3));
    const within = Math.min(ends[1], Math.max(ends[0], answer.expected));
    const beyond = within !== answer.expected ? ` (here it says ${minus(told(answer.expected))})` : "";
    const bars = this.bars(view, answer, ends, told, within);
    if (this.isAsking) return [h("p", { class: "outcome" }, "Asking the model\u2026"), bars];
    let outcome = "Nothing is changed yet.";
    if (isChanged && answer.decision_stays === true) outcome = "The decision stays.";
    if (isChanged && answer.decision_stays === false) outcome = "The decision changes.";
    if (isChanged && answer.decision_stays === null) outcome = "The answer is another one.";
    const now = isChanged && answer.decision_stays !== null ? [" Now: ", h("b", null, own(answer.answer))] : null;
    const left = beyond ? h("p", { class: "note" }, `A sum can leave the range of the model's answers${beyond}.`) : null;
    return [h("p", { class: "outcome" }, outcome, now), bars, left];
  }
}
