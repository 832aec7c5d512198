// The list of cases, which the server searches and sorts; usable by mouse or keyboard.

import { announce, byId, fill, h, isolate } from "./dom.js";
import { percent, shortNumber, truthText, valueText } from "./format.js";
import { get } from "./api.js";

const PAGE_SIZE = 50;

export class Cases {
  constructor(about, { open, compare, onError }) {
    this.about = about;
    this.open = open;
    this.compare = compare;
    this.onError = onError;
    this.offset = 0;
    this.selected = null;
    this.pending = null;
    byId("search").addEventListener("input", () => this.debounce(() => this.restart()));
    byId("search").addEventListener("keydown", (event) => {
      if (event.key === "ArrowDown" || event.key === "Enter") {
        event.preventDefault();
        this.focus(0);
      }
    });
    byId("sort").addEventListener("change", () => this.restart());
    byId("earlier").addEventListener("click", () => this.movePage(-PAGE_SIZE));
    byId("later").addEventListener("click", () => this.movePage(PAGE_SIZE));
    byId("listing").addEventListener("keydown", (event) => this.moveFocus(event));
    if (!about.is_ranked) byId("sort").hidden = true;
  }

  debounce(action) {
    clearTimeout(this.timer);
    clearTimeout(this.polling);
    this.timer = setTimeout(action, 120);
  }

  get search() {
    return byId("search").value.trim();
  }

  restart() {
    this.offset = 0;
    return this.load(true);
  }

  movePage(step) {
    this.offset = Math.max(0, this.offset + step);
    return this.load(true);
  }

  async load(isUserAction = false) {
    this.pending?.abort();
    this.pending = new AbortController();
    const query = { search: this.search, sort: byId("sort").value, offset: this.offset, limit: PAGE_SIZE };
    if (this.output && query.sort !== "position") query.output = this.output; // sorted by the chosen class
    try {
      const page = await get(`/rows?${new URLSearchParams(query)}`, this.pending.signal);
      this.draw(page);
      clearTimeout(this.polling);
      if (page.progress < 1) this.polling = setTimeout(() => this.load(), 300); // the server goes on with each request
      if (isUserAction) this.changed?.();
    } catch (error) {
      if (error.name !== "AbortError") this.onError(error);
    }
  }

  draw(page) {
    const last = page.offset + page.rows.length;
    const total = page.found.toLocaleString("en");
    byId("place").textContent = page.found ? `${page.offset + 1}\u2013${last} of ${total}` : "no matches";
    byId("earlier").disabled = page.offset === 0;
    byId("later").disabled = last >= page.found;
    const names = ["Case", "Answer", "Values", "Compare"].map((name) => h("th", { scope: "col" }, name));
    const table = h(
      "table",
      null,
      h("caption", { class: "visually-hidden" }, "Cases with the model's answers"),
      h("thead", { class: "visually-hidden" }, h("tr", null, names)),
      h("tbody", null, page.rows.map((row) => this.row(row, page.columns))),
    );
    const share = Math.floor(100 * page.progress);
    const unfinished = `The model has answered ${share}% of the cases so far. More cases may match or come first.`;
    const none = page.progress < 1 ? "No case matches so far." : `No case matches all these words.${this.unknown(page.columns)}`;
    const progress = page.progress < 1 ? h("p", { class: "note progress", role: "status" }, unfinished) : null;
    fill(byId("listing"), progress, page.rows.length ? table : h("p", { class: "note" }, none));
    this.mark();
  }

  // A comparison with a name that is not a column is read as a text, which hardly any value contains.
  unknown(columns) {
    const known = new Set(["answer", ...columns.map((name) => name.toLowerCase())]);
    const names = [...this.search.matchAll(/("[^"]*"|[^\s"<>=!]+)\s*(?:[<>]=?|!?=)\s*(?:"[^"]*")?/g)].map(([, name]) => name.replaceAll('"', ""));
    const other = names.find((name) => !known.has(name.toLowerCase()));
    return other === undefined ? "" : ` ${other} is not a column.`;
  }

  row(row, columns) {
    const { position } = row;
    const values = row.values.map((value, i) => {
      const pair = h("span", null, isolate(columns[i]), " ", h("b", null, isolate(valueText(value))));
      return [i ? " \u00b7 " : "", pair];
    });
    const number = row.value === null ? "" : this.about.classes ? percent(row.value, 0) : shortNumber(row.value);
    const isText = this.about.classes || row.value === null;
    const pick = h("button", { type: "button", class: "pick", tabindex: "-1", onclick: () => this.open(position) }, `#${position}`);
    const tone = this.about.classes ? this.about.classes.indexOf(row.answer) % 4 : -1;
    const share = isText && number ? h("span", { class: "share" }, ` ${number}`) : null;
    const truth = row.truth === undefined || row.truth === null || row.truth === row.answer ? null
      : h("span", { class: this.about.classes ? "truth" : "truth number", title: this.about.target }, " true: ", isolate(truthText(row.truth, this.about)));
    const chip = h("span", null, h("span", { class: `chip tone${tone}` }, isText ? isolate(row.answer) : number, share), truth);
    const compare = h(
      "button",
      {
        type: "button",
        class: "compare-button",
        tabindex: "-1", // keyboard users have the form below the sums
        title: "Compare",
        "aria-label": `Compare with case ${position}`,
        onclick: () => this.compare(position),
      },
      "\u21c4",
    );
    const open = (event) => {
      if (!event.target.closest("button")) this.open(position);
    };
    return h(
      "tr",
      { "data-position": position, onclick: open },
      h("td", null, pick),
      h("td", null, chip),
      h("td", { class: "values" }, values),
      h("td", null, compare),
    );
  }

  mark(position = this.selected) {
    this.selected = position;
    for (const row of byId("listing").querySelectorAll("tr[data-position]")) {
      const isSelected = Number(row.dataset.position) === position;
      row.classList.toggle("selected", isSelected);
      row.querySelector(".pick").toggleAttribute("aria-current", isSelected);
      if (isSelected) row.querySelector(".pick").setAttribute("aria-current", "true");
    }
    this.offerFocus(byId("listing").querySelector(".selected .pick") ?? byId("listing").querySelector(".pick"));
  }

  // The list is one stop of the Tab key; the arrow keys move inside.
  offerFocus(pick) {
    for (const other of byId("listing").querySelectorAll(".pick")) other.tabIndex = other === pick ? 0 : -1;
  }

  focus(index) {
    const picks = [...byId("listing").querySelectorAll(".pick")];
    const pick = picks[Math.max(0, Math.min(picks.length - 1, index))];
    this.offerFocus(pick);
    pick?.focus();
  }

  moveFocus(event) {
    const steps = { ArrowDown: 1, ArrowUp: -1, Home: -Infinity, End: Infinity };
    if (!(event.key in steps)) return;
    event.preventDefault();
    const picks = [...byId("listing").querySelectorAll(".pick")];
    const now = picks.indexOf(document.activeElement);
    if (now === 0 && event.key === "ArrowUp") byId("search").focus();
    else this.focus(now + steps[event.key]);
    announce("");
  }
}
