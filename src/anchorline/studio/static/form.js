// The controls for the values of a row, and the form for a new case, whose answer follows as one types.

import { fill, h, isolate, percent, postJson, shortNumber, valueText, withMinusSign } from "./base.js";

const DATE = /^\d{4}-\d{2}-\d{2}$/;
const LONG = /^-?[1-9]\d{15,}$/; // an integer that JavaScript cannot represent exactly, exchanged as a text

export function editor(column, value, change, refused) {
  const id = `${column.form ?? "edit"}-${column.index}`;
  const isListed = column.kind === "booleans" || (column.kind === "categories" && !column.has_more);
  const field = isListed ? selectField(id, column, value, change) : textField(id, column, value, change, refused);
  const range = column.ends ? h("small", null, isolate(column.ends.map((end) => (column.kind === "numbers" ? withMinusSign(end) : end)).join(" to "))) : null;
  return h("div", { class: "field" }, h("label", { for: id }, isolate(column.label), column.unit ? [" [", isolate(column.unit), "]"] : null, " ", range), field);
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
  const field = column.kind === "texts" ? h("textarea", { id, rows: 6, dir: "auto", onchange }, shown.value) : h("input", { id, type, step: column.is_whole ? 1 : "any", placeholder, onchange, ...shown });
  return isRefused ? [field, h("span", { class: "refused", id: `${id}-why`, role: "alert" }, isolate(refused.why))] : field;
}

function typedValue(column, typed) {
  if (column.kind === "texts") return typed;
  const text = typed.trim();
  if (text === "") return null;
  if (column.kind !== "numbers") return typed;
  return Number.isFinite(Number(text)) && !LONG.test(text) ? Number(text) : text;
}

const SETTLE_TIME = 200; // milliseconds without typing before the model is asked

export class NewCase {
  constructor(about, card, container, { onExplain, onClose, onTyped, onError }) {
    const columns = about.columns.map((column, index) => ({ ...column, index, form: "new" }));
    Object.assign(this, { about, columns, card, container, onExplain, onClose, onTyped, onError, row: null, turn: 0 });
  }

  // Shows the form with the values of a row; what is typed in a form with the same values stays.
  open(row) {
    this.card.hidden = row === null;
    if (row === null || JSON.stringify(row) === JSON.stringify(this.row)) {
      this.row = row && this.row;
      return;
    }
    this.row = { ...row };
    this.draw();
    this.ask();
  }

  draw() {
    const onsubmit = (event) => {
      event.preventDefault();
      if (!this.isRefused) this.onExplain({ ...this.row });
    };
    const change = (name) => (value) => this.change(name, value);
    const paste = h("textarea", { id: "new-paste", rows: 3, spellcheck: "false" });
    const use = () => this.ask(paste.value);
    this.answer = h("div", { "aria-live": "polite", id: "new-answer" });
    fill(
      this.container,
      h("form", { class: "new-case", novalidate: true, onsubmit, oninput: (event) => this.typed(event) },
        h("div", { class: "fields" }, this.columns.map((column) => editor(column, this.row[column.name], change(column.name)))),
        this.answer,
        h("p", { class: "actions" }, h("button", { type: "submit", class: "primary", id: "new-explain" }, "Explain this case"), h("button", { type: "button", id: "new-close", onclick: this.onClose }, "Close"))),
      this.about.is_table
        ? h("details", null, h("summary", null, "Paste a row"), h("label", { for: "new-paste", class: "note" }, "A JSON object, or two lines of CSV: the titles and the values."), paste, h("p", { class: "actions" }, h("button", { type: "button", id: "new-use", onclick: use }, "Fill in")))
        : null,
    );
  }

  // A field reports its value when it is left; here it is read with every key.
  typed({ target }) {
    if (target.tagName !== "SELECT") target.dispatchEvent(new Event("change"));
  }

  change(name, value) {
    if (value === this.row[name]) return;
    this.row[name] = value;
    this.onTyped();
    clearTimeout(this.timer);
    this.timer = setTimeout(() => this.ask(), SETTLE_TIME);
  }

  async ask(paste = null) {
    const turn = ++this.turn;
    clearTimeout(this.timer);
    const empty = this.columns.find(({ name, has_missing: canMiss, kind }) => this.row[name] === null && !canMiss && kind !== "texts");
    if (empty && paste === null) return this.says(h("p", { class: "refused" }, isolate(empty.label), " needs a value."), true);
    try {
      const answer = await postJson("/v1/answer", { row: this.row, ...(paste === null ? {} : { paste }) });
      if (turn !== this.turn) return undefined;
      if (paste !== null) {
        this.row = answer.row;
        this.draw();
      }
      return this.says(this.outcome(answer), false);
    } catch (error) {
      if (turn !== this.turn) return undefined;
      if (error.status !== 422) return this.onError(error);
      return this.says(h("p", { class: "refused" }, isolate(error.message)), true);
    }
  }

  says(content, isRefused) {
    this.isRefused = isRefused;
    fill(this.answer, content);
    document.getElementById("new-explain").disabled = isRefused;
  }

  outcome({ answer, value, unseen }) {
    const share = this.about.classes && value !== null ? percent(value) : "";
    const number = this.about.classes || value === null ? answer : shortNumber(value, 6);
    const notes = Object.entries(unseen).map(([name, why]) => h("li", null, h("b", null, isolate(name)), ": ", isolate(why)));
    return [
      h("p", { class: "outcome" }, "The model answers: ", h("b", null, isolate(number)), share ? h("span", { class: "note" }, ` ${share}`) : null),
      notes.length ? h("ul", { class: "note" }, notes) : null,
    ];
  }
}
