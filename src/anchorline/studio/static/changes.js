// The card that finds what would change the decision; one click applies an example to the what-if card.

import { fill, h, isolate } from "./dom.js";

const LIMITS = [[">=", "at least"], ["<=", "at most"]];

export class Changes {
  constructor(about, container, { search, apply }) {
    Object.assign(this, { about, container, search, apply });
  }

  // A new case: nothing is searched until it is asked for.
  open(view) {
    Object.assign(this, { view, fixed: [], answer: null, isPending: false, wanted: "", sign: ">=", limit: "" });
    this.draw();
  }

  async find(fixed = this.fixed) {
    const { view } = this;
    Object.assign(this, { fixed, isPending: true });
    this.draw();
    try {
      const target = this.wanted || (this.limit === "" ? null : `${this.sign} ${this.limit}`);
      const answer = await this.search({ target, fixed });
      if (view === this.view) this.answer = answer;
    } finally {
      if (view === this.view) this.isPending = false;
      this.draw();
    }
  }

  draw() {
    const focused = document.activeElement?.id;
    const onsubmit = (event) => {
      event.preventDefault();
      this.find();
    };
    const button = h("button", { type: "submit", id: "changes-find", disabled: this.isPending }, "Find the fewest changes");
    fill(this.container, h("form", { class: "inline", onsubmit }, this.fields(), button), this.held(), h("div", { "aria-live": "polite" }, this.results()));
    if (focused && this.container.querySelector(`#${focused}`)) document.getElementById(focused).focus();
  }

  // Two classes need no choice; numbers need a limit.
  fields() {
    const select = (id, options, name) => {
      const onchange = (event) => {
        this[name] = event.target.value;
      };
      const choices = options.map(([key, label]) => h("option", { value: key, selected: key === this[name] }, label));
      return [h("label", { for: id }, "Wanted"), h("select", { id, onchange }, choices)];
    };
    const classes = this.about.classes;
    if (classes?.length > 2) return select("changes-wanted", [["", "any other decision"], ...classes.map((label) => [label, label])], "wanted");
    if (!this.view.is_number) return null;
    const oninput = (event) => {
      this.limit = event.target.value;
    };
    const field = { id: "changes-limit", type: "number", step: "any", value: this.limit, oninput, "aria-label": "Limit" };
    return [select("changes-sign", LIMITS, "sign"), h("input", field)];
  }

  held() {
    if (!this.fixed.length) return null;
    return h("p", { class: "note" }, "Not changed: ", isolate(this.fixed.join(", ")), " ", h("button", { type: "button", id: "changes-allow", onclick: () => this.find([]) }, "Allow again"));
  }

  results() {
    if (this.isPending) return h("p", { class: "note" }, "Asking the model\u2026");
    if (!this.answer) return null;
    const { headline, options, notes, details } = this.answer;
    return [
      headline ? h("p", null, isolate(headline)) : null,
      options.length ? h("ul", null, options.map((option, i) => this.option(option, i))) : null,
      notes.map((line) => h("p", null, isolate(line))),
      h("details", null, h("summary", null, "How we know"), details.map((line) => h("p", { class: "note" }, isolate(line)))),
    ];
  }

  option({ text, edits, names }, i) {
    const ruleOut = () => this.find([...new Set([...this.fixed, ...names])]);
    const button = (id, label, onclick) => h("button", { type: "button", id: `${id}-${i}`, "aria-label": `${label}: ${text}`, onclick }, label);
    return h("li", null, isolate(text), h("p", { class: "actions" }, button("apply", "Apply", () => this.apply(edits, names)), button("rule-out", "Not possible", ruleOut)));
  }
}
