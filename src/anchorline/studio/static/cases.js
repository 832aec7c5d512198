// The list of cases: searched and sorted on the server, walked through by mouse or keys.

import { by, fill, h, own, say } from "./dom.js";
import { brief, day, percent, shown } from "./format.js";
import { get } from "./api.js";

const AT_ONCE = 50;

export class Cases {
  constructor(about, { open, compare, failed }) {
    this.about = about;
    this.open = open;
    this.compare = compare;
    this.failed = failed;
    this.offset = 0;
    this.found = 0;
    this.chosen = null;
    this.asking = null;
    by("search").addEventListener("input", () => this.later(() => this.restart()));
    by("search").addEventListener("keydown", (event) => {
      if (event.key === "ArrowDown" || event.key === "Enter") {
        event.preventDefault();
        this.focus(0);
      }
    });
    by("sort").addEventListener("change", () => this.restart());
    by("earlier").addEventListener("click", () => this.turn(-AT_ONCE));
    by("later").addEventListener("click", () => this.turn(AT_ONCE));
    by("listing").addEventListener("keydown", (event) => this.walk(event));
    if (!about.is_ranked) by("sort").hidden = true;
  }

  later(action) {
    clearTimeout(this.timer);
    this.timer = setTimeout(action, 120);
  }

  get search() {
    return by("search").value.trim();
  }

  restart() {
    this.offset = 0;
    return this.load(true);
  }

  turn(step) {
    this.offset = Math.max(0, this.offset + step);
    return this.load(true);
  }

  async load(isByHand = false) {
    this.asking?.abort();
    this.asking = new AbortController();
    const asked = { search: this.search, sort: by("sort").value, offset: this.offset, limit: AT_ONCE };
    try {
      const part = await get(`/rows?${new URLSearchParams(asked)}`, this.asking.signal);
      this.found = part.found;
      this.draw(part);
      if (isByHand) this.changed?.();
    } catch (error) {
      if (error.name !== "AbortError") this.failed(error);
    }
  }

  draw(part) {
    const last = part.offset + part.rows.length;
    const found = part.found.toLocaleString("en");
    by("place").textContent = part.found ? `${part.offset + 1}\u2013${last} of ${found}` : "nothing found";
    by("earlier").disabled = part.offset === 0;
    by("later").disabled = last >= part.found;
    const names = ["Case", "Answer", "Values", "Compare"].map((name) => h("th", { scope: "col" }, name));
    const table = h(
      "table",
      null,
      h("caption", { class: "unseen" }, "Cases with the model's answers"),
      h("thead", { class: "unseen" }, h("tr", null, names)),
      h("tbody", null, part.rows.map((row) => this.row(row, part.columns))),
    );
    fill(by("listing"), part.rows.length ? table : h("p", { class: "note" }, "No case holds all these words."));
    this.mark();
  }

  row(row, columns) {
    const { position } = row;
    const values = row.values.map((value, i) => {
      const pair = h("span", null, own(columns[i]), " ", h("b", null, own(day(shown(value)))));
      return [i ? " \u00b7 " : "", pair];
    });
    const number = row.value === null ? "" : this.about.classes ? percent(row.value, 0) : brief(row.value);
    const isText = this.about.classes || row.value === null;
    const pick = h("button", { type: "button", class: "pick", onclick: () => this.open(position) }, `#${position}`);
    const tone = this.about.classes ? this.about.classes.indexOf(row.answer) % 4 : -1;
    const share = isText && number ? h("span", { class: "share" }, ` ${number}`) : null;
    const chip = h("span", { class: `chip tone${tone}` }, isText ? own(row.answer) : number, share);
    const compare = h(
      "button",
      {
        type: "button",
        class: "beside",
        tabindex: "-1", // by keys, the form below the sums does it
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

  mark(position = this.chosen) {
    this.chosen = position;
    for (const row of by("listing").querySelectorAll("tr[data-position]")) {
      const isChosen = Number(row.dataset.position) === position;
      row.classList.toggle("chosen", isChosen);
      row.querySelector(".pick").toggleAttribute("aria-current", isChosen);
      if (isChosen) row.querySelector(".pick").setAttribute("aria-current", "true");
    }
  }

  focus(index) {
    const picks = [...by("listing").querySelectorAll(".pick")];
    picks[Math.max(0, Math.min(picks.length - 1, index))]?.focus();
  }

  walk(event) {
    const steps = { ArrowDown: 1, ArrowUp: -1, Home: -Infinity, End: Infinity };
    if (!(event.key in steps)) return;
    event.preventDefault();
    const picks = [...by("listing").querySelectorAll(".pick")];
    const now = picks.indexOf(document.activeElement);
    if (now === 0 && event.key === "ArrowUp") by("search").focus();
    else this.focus(now + steps[event.key]);
    say("");
  }
}
