// The page: one state, kept in the address; pictures drawn from the server's answers.

import { Memory, Trouble, get } from "./api.js";
import { Cases } from "./cases.js";
import { compare } from "./compare.js";
import { curve } from "./curve.js";
import { by, fill, h, own, say } from "./dom.js";
import { picture, report, save } from "./download.js";
import { brief, listed, minus, percent } from "./format.js";
import { trust } from "./gauge.js";
import { waterfall } from "./picture.js";
import * as place from "./state.js";
import { WhatIf } from "./whatif.js";

const SKETCH = { n_samples: 1000, n_certify: 0 }; // while a slider moves
const SETTLED = 250; // milliseconds without a change before the certified answer is asked for
const memory = new Memory();
const state = place.read();
let about, cases, whatIf;
let shown = { view: null, sum: null, literals: null, frontier: null, row: null, other: null };
let turn = 0; // of the case: answers to an earlier one are let go
let settling = null;
let sketching = null;

const request = (position = state.case, k = state.k) => ({ row: position, k, sigma: state.sigma });
const ks = () => Array.from({ length: about.most_k }, (_, i) => i + 1);

function fail(error) {
  if (error?.name === "AbortError") return;
  const told = error instanceof Trouble ? error.message : "Something went wrong in this page.";
  by("trouble").textContent = told;
  by("trouble").hidden = false;
  by("main").removeAttribute("aria-busy");
  if (!(error instanceof Trouble)) throw error;
}

const guarded = (work) => work.catch(fail);

// What is said: the headline and the sentence need the sum alone, so they follow the sliders at once.

function headline() {
  const { view, row } = shown;
  const answer = row?.answer ?? "";
  if (view.is_probability) {
    const isDecided = view.output === `P(${answer})`;
    const share = percent(view.sum.total.value);
    const told = isDecided ? ` ${share} sure` : ` ${share}`;
    return [own(isDecided ? answer : view.output), h("span", { class: "share" }, told)];
  }
  if (view.label !== null) return [own(view.label)];
  return [own(view.output), h("span", { class: "share" }, ` ${minus(view.sum.total.number)}`)];
}

function sentence(sum, literals) {
  const marked = (term) => h("b", { class: "fact-mark" }, own(literals[term.index].text));
  const facts = (terms) => listed(terms.map(marked));
  const pro = sum.terms.filter((term) => term.value >= 0);
  const contra = sum.terms.filter((term) => term.value < 0);
  if (!sum.terms.length) return ["With so few terms, no single fact stands out. Allow more below."];
  const parts = [];
  if (pro.length) parts.push("Mostly because ", ...facts(pro));
  if (contra.length) parts.push(pro.length ? ", although " : "Although ", ...facts(contra));
  if (!pro.length) parts.push(" speaks against it");
  return [...parts, "."];
}

function drawSum(sum, literals) {
  shown.sum = sum;
  shown.literals = literals;
  fill(by("sentence"), ...sentence(sum, literals));
  fill(by("waterfall"), waterfall(sum, literals, own(shown.view.total), "What adds up to the prediction"));
}

function drawView(view) {
  const row = shown.row;
  by("kicker").textContent = `Case ${state.case}: the model says`;
  fill(by("headline"), ...headline());
  document.title = `Case ${state.case}: ${row?.answer ?? ""} - anchorline Studio`;
  drawSum(view.sum, view.literals);
  fill(by("trust"), ...trust(view));
  by("trust").classList.remove("stale");
  drawRecord(view);
}

function drawRecord(view) {
  const fixed = Object.entries(view.fixed).map(([name, why]) => h("li", null, own(name), ": ", own(why)));
  const questions = view.n_queries.toLocaleString("en");
  fill(
    by("record-body"),
    h("h3", null, "As a rule"), h("p", null, own(view.rule)),
    h("h3", null, "On the sample"), h("p", null, view.on_sample),
    h("h3", null, "In the population"), h("p", null, view.in_population),
    h("h3", null, "By theorem"), view.by_theorem.map((line) => h("p", null, line)),
    fixed.length ? [h("h3", null, "Never changed"), h("ul", null, fixed)] : null,
    h("p", { class: "note" }, `${questions} questions to the model. Whoever has the model can verify the download "Data".`),
  );
}

function drawFrontier() {
  if (shown.frontier) fill(by("frontier"), curve(shown.frontier.points, state.k, (k) => move({ k })));
}

function drawOthers(view) {
  const n = view.alternatives.length;
  const sums = n + 1;
  const shares = view.shares.map(({ text, share }) => {
    const rail = h("span", { class: "rail", "aria-hidden": "true" }, h("i", { style: { width: `${100 * share}%` } }));
    return h("li", null, h("span", null, own(text)), rail, h("b", null, `${Math.round(share * sums)} of ${sums}`));
  });
  const others = n === 1 ? "one other sum" : `${n} other sums`;
  const told = n
    ? `The evidence cannot tell ${others} from this one. A fact in all of them is the surest:`
    : "Yes: the evidence tells it from every other sum of this length.";
  const rows = view.alternatives.map(({ sum, excess }) => {
    const parts = sum.terms.map((term) => own(`${minus(term.number)} [${view.literals[term.index].text}]`));
    const worse = ` fits worse by ${brief(excess.value)} (${brief(excess.low)} to ${brief(excess.high)})`;
    return h("li", null, listed(parts), h("span", { class: "note" }, worse));
  });
  const fold = n ? h("details", null, h("summary", null, "The other sums"), h("ol", null, rows)) : null;
  fill(by("others"), h("p", null, told), h("ul", { class: "shares" }, shares), fold);
}

function drawSliders() {
  by("k").value = state.k;
  by("sigma").value = state.sigma;
  by("k-told").textContent = `at most ${state.k}`;
  by("k").setAttribute("aria-valuetext", `at most ${state.k} terms, the starting level included`);
  const share = percent(1 / (1 + Math.exp(state.sigma)), 0);
  by("sigma-told").textContent = `${share} of facts differ`;
  by("sigma").setAttribute("aria-valuetext", `each fact differs in ${share} of the compared cases`);
}

// What is asked: everything for a new case; sketches while sliders move, the certified answer when they rest.

async function openCase(position, isNew = true) {
  const mine = ++turn;
  state.case = position;
  if (isNew) Object.assign(state, { edits: {}, broken: [] });
  place.write(state, isNew);
  by("main").setAttribute("aria-busy", "true");
  by("trouble").hidden = true;
  cases.mark(position);
  const [view, rows] = await Promise.all([memory.ask("/page/explain", request()), rowOf(position)]);
  if (mine !== turn) return;
  shown = { ...shown, view, row: rows, frontier: null };
  drawView(view);
  drawSliders();
  by("main").removeAttribute("aria-busy");
  say(`Case ${position}: ${rows?.answer ?? ""}. ${view.in_population} Verdict: ${view.verdict.name}.`);
  guarded(askWhatIf());
  guarded(askCompare());
  await askRest(mine);
}

async function askRest(mine) {
  const frontier = await memory.ask("/page/frontier", { row: state.case, sigma: state.sigma, ks: ks() });
  if (mine !== turn) return;
  shown.frontier = frontier;
  drawFrontier();
  const others = await memory.ask("/page/explain", { ...request(), alternatives: 4 });
  if (mine === turn) drawOthers(others);
}

const rows = new Map();
async function rowOf(position) {
  if (!rows.has(position)) {
    const found = await get(`/rows?${new URLSearchParams({ search: `#${position}`, limit: 1 })}`);
    rows.set(position, found.rows[0] ?? null);
  }
  return rows.get(position);
}

async function askWhatIf() {
  const mine = turn;
  const asked = { ...request(), edits: state.edits, broken: state.broken };
  whatIf.draw(state, shown.view, shown.answer ?? null, true);
  try {
    const answer = await memory.ask("/what-if", asked);
    if (mine === turn && asked.edits === state.edits && asked.broken === state.broken) {
      shown.answer = answer;
      whatIf.draw(state, shown.view, answer, false);
    }
  } catch (error) {
    if (error.status === 422 && (Object.keys(state.edits).length || state.broken.length)) {
      fail(error);
      Object.assign(state, { edits: {}, broken: [] });
      place.write(state);
      await askWhatIf();
    } else throw error;
  }
}

async function askCompare() {
  by("compare-none").hidden = state.compare === null;
  by("other").value = state.compare ?? "";
  const columns = about.columns.map((column) => column.name);
  if (state.compare === null) return compare(by("compare"), columns, null, null);
  const position = state.compare;
  // Both sums are of the same class, so that they can be put on one scale.
  const same = shown.view.class === null ? {} : { output: shown.view.class };
  const asked = { ...request(position), ...same };
  const [view, row] = await Promise.all([memory.ask("/page/explain", asked), rowOf(position)]);
  if (position !== state.compare) return undefined;
  if (!row) throw new Trouble(404, `There is no case ${position}.`);
  const one = { view: shown.view, row: shown.row, position: state.case };
  return compare(by("compare"), columns, one, { view, row, position });
}

function setCompare(position) {
  state.compare = position;
  place.write(state);
  guarded(askCompare());
}

// Sliders. A sum for every k is known from one sample: k needs no question at all. For another sigma a small
// sample is drawn first.

function noteSpeed(began) {
  const drawn = () => performance.measure("slider-to-picture", { start: began, end: performance.now() });
  requestAnimationFrame(() => setTimeout(drawn));
}

function move(change, began = performance.now()) {
  Object.assign(state, change);
  place.write(state);
  drawSliders();
  if (change.k) drawFrontier();
  by("trust").classList.add("stale");
  sketch(began);
  clearTimeout(settling);
  settling = setTimeout(() => guarded(settle()), SETTLED);
}

async function sketch(began) {
  const whole = { row: state.case, sigma: state.sigma, ks: ks() };
  const quick = { ...whole, ...SKETCH };
  let found = memory.has("/page/frontier", whole) ?? memory.has("/page/frontier", quick);
  if (!found) {
    if (sketching) {
      sketching.next = began; // the last position wins; the ones between are skipped
      return;
    }
    sketching = { next: null };
    try {
      found = await memory.ask("/page/frontier", quick);
    } catch (error) {
      fail(error);
    } finally {
      const { next } = sketching;
      sketching = null;
      if (next !== null) sketch(next);
    }
    if (!found || quick.sigma !== state.sigma || quick.row !== state.case) return;
  }
  const point = found.points.find((one) => one.k === state.k);
  if (point) drawSum(point.sum, found.literals);
  noteSpeed(began);
}

async function settle() {
  const mine = turn;
  const asked = request();
  const view = await memory.ask("/page/explain", asked);
  if (mine !== turn || asked.k !== state.k || asked.sigma !== state.sigma) return;
  shown.view = view;
  drawView(view);
  drawFrontier();
  say(`${view.in_population} Verdict: ${view.verdict.name}.`);
  guarded(askWhatIf());
  guarded(askCompare());
  await askRest(mine);
}

async function download(format) {
  const name = `case-${state.case}`;
  if (format === "html") return report(request(), `${name}.html`);
  if (format === "json") return save(new Blob([shown.view.json], { type: "application/json" }), `${name}.json`);
  const [top, why] = [by("headline").textContent.trim(), by("sentence").textContent];
  return save(await picture(shown.view, top, why, by("kicker").textContent), `${name}.png`);
}

async function copyLink() {
  const link = location.origin + place.address(state);
  try {
    await navigator.clipboard.writeText(link);
    say("The link was copied. It holds no token.");
    by("copy-link").textContent = "Copied";
    setTimeout(() => { by("copy-link").textContent = "Copy link"; }, 1500);
  } catch {
    window.prompt("The link to this view:", link);
  }
}

function theme(chosen) {
  const system = matchMedia("(prefers-color-scheme: dark)").matches ? "dark" : "light";
  const now = chosen ?? localStorage.getItem("anchorline-theme") ?? system;
  document.documentElement.dataset.theme = now;
  by("theme").textContent = now === "dark" ? "Light" : "Dark";
  by("theme").setAttribute("aria-label", now === "dark" ? "Use light colours" : "Use dark colours");
  if (chosen) localStorage.setItem("anchorline-theme", chosen);
}

function wire() {
  by("k").max = about.most_k;
  state.k = Math.min(state.k, about.most_k);
  by("k").addEventListener("input", (event) => move({ k: Number(event.target.value) }, event.timeStamp));
  by("sigma").addEventListener("input", (event) => move({ sigma: Number(event.target.value) }, event.timeStamp));
  by("copy-link").addEventListener("click", () => guarded(copyLink()));
  const other = () => (document.documentElement.dataset.theme === "dark" ? "light" : "dark");
  by("theme").addEventListener("click", () => theme(other()));
  for (const button of document.querySelectorAll("[data-format]")) {
    button.addEventListener("click", () => guarded(download(button.dataset.format)));
  }
  by("compare-form").addEventListener("submit", (event) => {
    event.preventDefault();
    if (by("other").value !== "") setCompare(Number(by("other").value));
  });
  by("compare-none").addEventListener("click", () => setCompare(null));
  document.addEventListener("keydown", (event) => {
    if (event.key === "/" && !/^(INPUT|SELECT|TEXTAREA)$/.test(document.activeElement.tagName)) {
      event.preventDefault();
      by("drawer").open = true;
      by("search").focus();
    }
  });
  window.addEventListener("popstate", () => {
    Object.assign(state, place.read());
    shown.answer = null;
    guarded(openCase(state.case, false));
  });
}

async function start() {
  theme();
  about = await get("/page/about");
  by("model").textContent = `${about.name} \u00b7 ${about.rows.toLocaleString("en")} cases`;
  by("drawer-title").textContent = `Cases (${about.rows.toLocaleString("en")})`;
  if (matchMedia("(max-width: 60rem)").matches) by("drawer").open = false;
  const open = (position) => {
    if (matchMedia("(max-width: 60rem)").matches) {
      by("drawer").open = false;
      by("main").focus();
    }
    shown.answer = null;
    guarded(openCase(position));
  };
  cases = new Cases(about, { open, compare: setCompare, failed: fail });
  cases.changed = () => {
    Object.assign(state, { search: cases.search, sort: by("sort").value });
    place.write(state);
  };
  whatIf = new WhatIf(about, by("what-if"), {
    changed: (edits, broken) => {
      by("trouble").hidden = true;
      Object.assign(state, { edits, broken });
      place.write(state);
      guarded(askWhatIf());
    },
  });
  by("search").value = state.search;
  by("sort").value = state.sort;
  wire();
  await Promise.all([cases.load(), openCase(state.case, false)]);
}

guarded(start());
