// The page: its state is stored in the address, and its pictures are drawn from the server's answers.

import { AnswerCache, ServerError, get } from "./api.js";
import { Cases } from "./cases.js";
import { Changes } from "./changes.js";
import { compare } from "./compare.js";
import { drawContent } from "./content.js";
import { curve } from "./curve.js";
import { announce, byId, fill, h, isolate } from "./dom.js";
import { drawPicture, report, save } from "./download.js";
import { dateText, joinWithAnd, percent, shortNumber, truthText, valueText, withMinusSign } from "./format.js";
import { trust } from "./gauge.js";
import { NewCase } from "./newcase.js";
import { Overview } from "./overview.js";
import { waterfall } from "./waterfall.js";
import * as urlState from "./state.js";
import { WhatIf } from "./whatif.js";

const SKETCH = { n_samples: 1000, n_certify: 0 }; // a smaller computation while a slider moves
const SETTLE_TIME = 250; // milliseconds without a change before the page requests the certified answer
const HINTS = {
  texts: ["Take out words.", "The fewest words that turn the decision when they are taken out."],
  images: ["Hide regions.", "The fewest regions that turn the decision when they are hidden."],
};
const answers = new AnswerCache();
const state = urlState.read();
let about, cases, whatIf, changes, newCase, overview;
let current = { view: null, sum: null, literals: null, frontier: null, row: null, other: null };
let turn = 0; // counts the opened cases, so that answers for an earlier case are ignored
let settling = null;
let sketching = null;

const isNewCase = () => state.row !== null;
const caseName = () => (isNewCase() ? "New case" : `Case ${state.case}`);
const classChoice = () => (state.output === null ? {} : { output: state.output });
const shownRow = () => (isNewCase() ? state.row : state.case);
const certify = () => (state.measure ? { n_certify: about.most_samples } : {});
const request = (position = shownRow(), k = state.k) => ({ row: position, k, sigma: state.sigma, ...classChoice(), ...certify() });
const frontierRequest = () => ({ row: shownRow(), sigma: state.sigma, ks: ks(), ...classChoice() });
const ks = () => Array.from({ length: about.most_k }, (_, i) => i + 1);

function showError(error) {
  if (error?.name === "AbortError") return;
  const isServerError = error instanceof ServerError;
  byId("error").textContent = isServerError ? error.message : "This page has failed. Reload it to continue.";
  byId("error").hidden = false;
  byId("main").removeAttribute("aria-busy");
  if (!current.view) byId("case-view").hidden = true; // nothing to show yet
  if (!isServerError) throw error;
}

const showErrors = (promise) => promise.catch(showError);

// The headline and the sentence need only the sum, so they follow the sliders immediately.

function headline() {
  const { view, row } = current;
  const answer = row?.answer ?? "";
  if (view.is_probability) {
    const isDecided = view.output === `P(${answer})`;
    const share = percent(view.sum.total.value);
    const shareText = isDecided ? ` ${share} sure` : ` ${share}`;
    return [isolate(isDecided ? answer : view.output), h("span", { class: "share" }, shareText)];
  }
  if (view.label !== null) return [isolate(view.label)];
  return [isolate(view.output), h("span", { class: "share" }, ` ${inUnit(view.sum.total.number)}`)];
}

// A number of the explained output, with its unit if it has one.
function inUnit(number) {
  return [withMinusSign(number), current.view.unit].filter(Boolean).join("\u00a0");
}

function sentence(sum, literals) {
  const marked = (term) => h("b", { class: "fact-mark" }, isolate(literals[term.index].text));
  const facts = (terms) => joinWithAnd(terms.map(marked));
  const { goal, goal_sign: sign, output } = current.view;
  const pro = sum.terms.filter((term) => sign * term.value >= 0);
  const contra = sum.terms.filter((term) => sign * term.value < 0);
  if (!sum.terms.length) return ["With this few terms, no single fact stands out. Allow more terms below."];
  if (goal === null) return addends(pro, contra, marked, output);
  const [up, down, whose] = ["speak for", "speak against", goal];
  const says = (terms, phrase, about) => {
    const [verb, ...rest] = phrase.split(" ");
    return [...facts(terms), ` ${[verb + (terms.length === 1 ? "s" : ""), ...rest].join(" ")} `, about];
  };
  if (!contra.length) return [...says(pro, up, isolate(whose)), "."];
  if (!pro.length) return [...says(contra, down, isolate(whose)), "."];
  return [...says(pro, up, isolate(whose)), "; ", ...says(contra, down, "it"), "."];
}

// Numbers are not decided for or against: each fact adds to the number or takes from it.
function addends(pro, contra, marked, output) {
  const each = (terms, verb) => joinWithAnd(terms.map((term) => h("span", null, marked(term), ` ${verb} ${inUnit(term.number.replace("-", ""))}`)));
  const up = pro.length ? [...each(pro, "adds"), " to ", isolate(output)] : [];
  const down = contra.length ? [...each(contra, "takes"), " from ", up.length ? "it" : isolate(output)] : [];
  return [...up, up.length && down.length ? "; " : "", ...down, "."];
}

function drawSum(sum, literals) {
  current.sum = sum;
  current.literals = literals;
  fill(byId("sentence"), ...sentence(sum, literals));
  drawContent(byId("content-card"), current.view.content, sum, literals);
  const { total, neighbors_mean: neighbors, training_mean: training } = current.view;
  const caption = "Contributions that add up to the prediction";
  fill(byId("waterfall"), waterfall(sum, literals, isolate(total), caption, [], { neighbors, training }));
}

function drawView(view) {
  const row = current.row;
  const truth = row?.truth === undefined || row.truth === null ? "" : ` (true ${about.target}: ${truthText(row.truth, about)})`;
  byId("case-view").hidden = state.view === "all";
  byId("kicker").textContent = `${caseName()}: the model\u2019s answer${truth}`;
  fill(byId("headline"), ...headline());
  document.title = `${caseName()}: ${row?.answer ?? ""} - anchorline Studio`;
  drawValues(row);
  drawSum(view.sum, view.literals);
  fill(byId("legend"), view.legend.map((line) => h("p", null, line)));
  fill(byId("trust"), ...trust(view), measureMore(view));
  byId("trust").classList.remove("stale");
  drawRecord(view);
}

// An undecided verdict may be decided by more neighbors, as many as the server allows.
function measureMore(view) {
  if (view.verdict.name !== "undecided") return null;
  if (state.measure) return h("p", { class: "note" }, `This server measures at most ${about.most_samples.toLocaleString("en")} neighbors.`);
  const more = () => {
    state.measure = true;
    urlState.write(state);
    showErrors(openCase(state.case, false));
  };
  return h("p", null, h("button", { type: "button", id: "measure-more", onclick: more }, "Measure more neighbors"));
}

// All values of the case, in the order of the columns.
function drawValues(shown) {
  const names = about.columns.map((column) => column.name);
  const cells = shown ? names.map((name, i) => [h("dt", null, isolate(name)), h("dd", null, isolate(dateText(valueText(shown.values[i]))))]) : [];
  fill(byId("values"), h("dl", { class: "values-list" }, cells.map((pair) => h("div", null, pair))));
}

// Says in the headline which facts are in some of the equally good sums only.
function drawDoubt(view) {
  const n = view.alternatives.length + 1;
  const shares = new Map(view.shares.map(({ text, share }) => [text, share]));
  const own = view.sum.terms.map((term) => view.literals[term.index].text).filter((text) => (shares.get(text) ?? 1) < 1);
  const parts = own.map((text) => h("span", null, isolate(text), ` (in ${Math.round(shares.get(text) * n)} of ${n})`));
  byId("doubt").hidden = !parts.length || n < 2;
  fill(byId("doubt"), `The evidence does not distinguish ${n} sums. Not in all of them: `, joinWithAnd(parts), ".");
}

function drawRecord(view) {
  const fixed = Object.entries(view.fixed).map(([name, why]) => h("li", null, isolate(name), ": ", isolate(why)));
  const nQueries = view.n_queries.toLocaleString("en");
  fill(
    byId("record-body"),
    h("h3", null, "As a rule"), h("p", null, isolate(view.rule)),
    h("h3", null, "The search"), h("p", null, view.on_sample),
    h("h3", null, "Over all possible neighbors"), h("p", null, view.in_population),
    h("details", null, h("summary", null, "Details for auditors"), view.details.map((line) => h("p", null, line))),
    fixed.length ? [h("h3", null, "Columns that are never changed"), h("ul", null, fixed)] : null,
    h("p", { class: "note" }, `${nQueries} model queries. Anybody who has the model can verify the download "Data".`),
  );
}

function drawFrontier() {
  if (current.frontier) fill(byId("frontier"), curve(current.frontier.points, state.k, (k) => move({ k })));
}

function drawOthers(view) {
  const n = view.alternatives.length;
  const sums = n + 1;
  const shares = view.shares.map(({ text, share }) => {
    const rail = h("span", { class: "rail", "aria-hidden": "true" }, h("i", { style: { width: `${100 * share}%` } }));
    return h("li", null, h("span", null, isolate(text)), rail, h("b", null, `${Math.round(share * sums)} of ${sums}`));
  });
  const others = n === 1 ? "one other sum" : `${n} other sums`;
  const cut = view.alternatives_complete === false;
  const more = cut ? " The list is not complete: more sums may be as good." : "";
  const alone = cut
    ? "No other sum was found that the evidence cannot distinguish from this one, but the search was not complete."
    : "Yes. The evidence distinguishes this sum from every other sum of this length.";
  const message = n
    ? `The evidence cannot distinguish ${others} from this one.${more} A fact that all of them contain is the most certain:`
    : alone;
  const rows = view.alternatives.map(({ sum, excess }) => {
    const parts = sum.terms.map((term) => isolate(`${withMinusSign(term.number)} [${view.literals[term.index].text}]`));
    const worse = ` fits worse by ${shortNumber(excess.value)} (${shortNumber(excess.low)} to ${shortNumber(excess.high)})`;
    return h("li", null, joinWithAnd(parts), h("span", { class: "note" }, worse));
  });
  const fold = n ? h("details", null, h("summary", null, "The other sums"), h("ol", null, rows)) : null;
  fill(byId("others"), h("p", null, message), h("ul", { class: "shares" }, shares), fold);
}

function drawSliders() {
  byId("k").value = state.k;
  byId("sigma").value = state.sigma;
  byId("k-text").textContent = `at most ${state.k}`;
  byId("k").setAttribute("aria-valuetext", `at most ${state.k} terms, including the starting level`);
  const share = percent(1 / (1 + Math.exp(state.sigma)), 0);
  byId("sigma-text").textContent = `${share} of facts change`;
  byId("sigma").setAttribute("aria-valuetext", `each fact changes in ${share} of the compared cases`);
}

// A new case requests everything. A moving slider requests a sketch, a resting one the certified answer.

async function openCase(position, isNew = true, ownRow = null) {
  const ownTurn = ++turn;
  state.case = position;
  if (isNew) Object.assign(state, { edits: {}, broken: [], row: ownRow });
  current.accepted = null;
  urlState.write(state, isNew);
  byId("main").setAttribute("aria-busy", "true");
  byId("error").hidden = true;
  byId("doubt").hidden = true;
  cases.mark(isNewCase() ? null : position);
  const loaded = isNewCase() ? loadNewRow() : loadRow(position);
  const [view, row] = await Promise.all([answers.post("/page/explain", request()), loaded]);
  if (ownTurn !== turn) return;
  current = { ...current, view, row, frontier: null, others: null };
  whatIf.forget();
  drawView(view);
  drawSliders();
  changes.open(view);
  byId("main").removeAttribute("aria-busy");
  announce(`${caseName()}: ${row?.answer ?? ""}. ${view.in_population} Verdict: ${view.verdict.title}.`);
  showErrors(loadWhatIf());
  showErrors(loadComparison());
  await loadRest(ownTurn);
}

async function loadRest(ownTurn) {
  const frontier = await answers.post("/page/frontier", frontierRequest());
  if (ownTurn !== turn) return;
  current.frontier = frontier;
  drawFrontier();
  const others = await answers.post("/page/explain", { ...request(), alternatives: 4 });
  if (ownTurn !== turn) return;
  current.others = others;
  drawOthers(others);
  drawDoubt(others);
}

// The model's answer to a case that is not in the table, in the form of a row of the table.
async function loadNewRow() {
  const answer = await answers.post("/what-if", request());
  return { position: null, values: about.columns.map(({ name }) => answer.row[name]), answer: answer.answer, value: answer.prediction };
}

const rows = new Map();
async function loadRow(position) {
  if (!rows.has(position)) {
    const page = await get(`/rows?${new URLSearchParams({ search: `#${position}`, limit: 1 })}`);
    rows.set(position, page.rows[0] ?? null);
  }
  return rows.get(position);
}

async function loadWhatIf() {
  const ownTurn = turn;
  const body = { ...request(), edits: state.edits, broken: state.broken };
  whatIf.draw(state, current.view, current.answer ?? null, true);
  try {
    const answer = await answers.post("/what-if", body);
    if (ownTurn === turn && body.edits === state.edits && body.broken === state.broken) {
      current.answer = answer;
      current.accepted = { edits: body.edits, broken: body.broken };
      whatIf.draw(state, current.view, answer, false);
    }
  } catch (error) {
    if (ownTurn !== turn || body.edits !== state.edits || body.broken !== state.broken) return; // about other changes
    if (error.status === 422 && (Object.keys(body.edits).length || body.broken.length)) await refuseEdits(error);
    else throw error;
  }
}

// Returns to the last changes that were accepted. What was typed stays in its field, with the reason beside it.
async function refuseEdits(error) {
  if (!whatIf.refuse(error.message)) showError(error);
  const accepted = current.accepted ?? { edits: {}, broken: [] };
  Object.assign(state, accepted.edits === state.edits ? { edits: {}, broken: [] } : accepted);
  urlState.write(state);
  await loadWhatIf();
}

async function loadComparison() {
  byId("compare-none").hidden = state.compare === null;
  byId("other").value = state.compare ?? "";
  const columns = about.columns.map((column) => column.name);
  if (state.compare === null) return compare(byId("compare"), columns, null, null);
  const position = state.compare;
  // Both sums explain the same class, so that they can share a scale.
  const output = current.view.class === null ? {} : { output: current.view.class };
  const body = { ...request(position), ...output };
  const [view, row] = await Promise.all([answers.post("/page/explain", body), loadRow(position)]);
  if (position !== state.compare) return undefined;
  if (!row) throw new ServerError(404, `Case ${position} does not exist.`);
  const first = { view: current.view, row: current.row, position: isNewCase() ? "new" : state.case };
  const target = about.classes?.length > 2 ? row.answer : null;
  const separate = !about.is_table ? null : () => answers.post("/page/changes", { row: shownRow(), toward: position, target });
  return compare(byId("compare"), columns, first, { view, row, position }, separate);
}

function setCompare(position) {
  byId("error").hidden = true;
  state.compare = position;
  urlState.write(state);
  const show = () => position !== null && byId("compare-title").scrollIntoView({ block: "start" });
  showErrors(loadComparison().then(show));
}

function setOutput(output) {
  state.output = output;
  urlState.write(state);
  byId("output").value = output ?? "";
  cases.output = output;
  if (byId("sort").value !== "position") cases.restart();
  showErrors(openCase(state.case, false));
}

// Sliders. One sample yields the sums for all k, so a new k needs no request. A new sigma first requests a sketch
// from a small sample.

function recordSpeed(start) {
  const measure = () => performance.measure("slider-to-picture", { start, end: performance.now() });
  requestAnimationFrame(() => setTimeout(measure));
}

function move(change, start = performance.now()) {
  Object.assign(state, change);
  urlState.write(state);
  drawSliders();
  if (change.k) drawFrontier();
  byId("trust").classList.add("stale");
  sketch(start);
  clearTimeout(settling);
  settling = setTimeout(() => showErrors(settle()), SETTLE_TIME);
}

async function sketch(start) {
  const whole = frontierRequest();
  const quick = { ...whole, ...SKETCH };
  let frontier = answers.peek("/page/frontier", whole) ?? answers.peek("/page/frontier", quick);
  if (!frontier) {
    if (sketching) {
      sketching.next = start; // only the last position is drawn; those in between are skipped
      return;
    }
    sketching = { next: null };
    try {
      frontier = await answers.post("/page/frontier", quick);
    } catch (error) {
      showError(error);
    } finally {
      const { next } = sketching;
      sketching = null;
      if (next !== null) sketch(next);
    }
    if (!frontier || quick.sigma !== state.sigma || quick.row !== shownRow()) return;
  }
  const point = frontier.points.find(({ k }) => k === state.k);
  if (point) drawSum(point.sum, frontier.literals);
  recordSpeed(start);
}

async function settle() {
  const ownTurn = turn;
  const body = request();
  const view = await answers.post("/page/explain", body);
  if (ownTurn !== turn || body.k !== state.k || body.sigma !== state.sigma) return;
  current.view = view;
  drawView(view);
  drawFrontier();
  announce(`${view.in_population} Verdict: ${view.verdict.title}.`);
  showErrors(loadWhatIf());
  showErrors(loadComparison());
  await loadRest(ownTurn);
}

async function download(format) {
  const name = isNewCase() ? "new-case" : `case-${state.case}`;
  if (format === "html") return report(request(), `${name}.html`);
  if (format === "json") return save(new Blob([current.view.json], { type: "application/json" }), `${name}.json`);
  const [headlineText, sentenceText] = [byId("headline").textContent.trim(), byId("sentence").textContent];
  const shown = (i) => dateText(valueText(current.row?.values[i] ?? null)).slice(0, 100); // a text may be long
  const values = about.columns.map((column, i) => `${column.name} ${shown(i)}`).join(", ");
  const model = about.model_fingerprint === null ? about.name : `${about.name} (${about.model_fingerprint})`;
  const n = current.others?.alternatives.length ?? 0;
  const cut = current.others?.alternatives_complete === false ? " or more" : "";
  const doubt = n ? `${n}${cut} other sums fit as well. ` : "";
  const truth = current.row?.truth ? `True ${about.target}: ${current.row.truth}. ` : "";
  const footer = `${doubt}${truth}${values}. Model ${model}, data ${about.fingerprint}, ${new Date().toISOString().slice(0, 10)}.`;
  const picture = await drawPicture(current.view, headlineText, sentenceText, byId("kicker").textContent, footer);
  return save(picture, `${name}.png`);
}

async function copyLink() {
  const link = location.origin + urlState.address(state);
  if (urlState.isTooLong(state)) {
    announce("This case is too long for a link.");
    byId("copy-link").textContent = "Too long";
    setTimeout(() => { byId("copy-link").textContent = "Copy link"; }, 1500);
    return;
  }
  try {
    await navigator.clipboard.writeText(link);
    announce("The link was copied. It contains no token.");
    byId("copy-link").textContent = "Copied";
    setTimeout(() => { byId("copy-link").textContent = "Copy link"; }, 1500);
  } catch {
    window.prompt("The link to this view:", link);
  }
}

// The page shows one case, or the summary of all cases that match the search.
function showView(view, isUserAction = true) {
  state.view = about.is_table ? view : "case";
  const isAll = state.view === "all";
  byId("overview").hidden = !isAll;
  byId("case-view").hidden = isAll;
  byId("view").textContent = isAll ? "One case" : "All cases";
  if (isUserAction) urlState.write(state, true);
  if (!isAll) {
    overview.stop();
    return;
  }
  document.title = "All cases - anchorline Studio";
  overview.load(cases.search, { k: state.k, sigma: state.sigma, ...classChoice() });
}

function setTheme(selected) {
  const system = matchMedia("(prefers-color-scheme: dark)").matches ? "dark" : "light";
  const name = selected ?? localStorage.getItem("anchorline-theme") ?? system;
  document.documentElement.dataset.theme = name;
  byId("theme").textContent = name === "dark" ? "Light" : "Dark";
  byId("theme").setAttribute("aria-label", name === "dark" ? "Use light colors" : "Use dark colors");
  if (selected) localStorage.setItem("anchorline-theme", selected);
}

function wire() {
  byId("k").max = about.most_k;
  state.k = Math.min(state.k, about.most_k);
  byId("k").addEventListener("input", (event) => move({ k: Number(event.target.value) }, event.timeStamp));
  byId("sigma").addEventListener("input", (event) => move({ sigma: Number(event.target.value) }, event.timeStamp));
  byId("view").hidden = !about.is_table;
  byId("view").addEventListener("click", () => {
    showView(state.view === "all" ? "case" : "all");
    if (state.view === "case" && !current.view) showErrors(openCase(state.case, false));
    byId("main").focus();
  });
  byId("copy-link").addEventListener("click", () => showErrors(copyLink()));
  const other = () => (document.documentElement.dataset.theme === "dark" ? "light" : "dark");
  byId("theme").addEventListener("click", () => setTheme(other()));
  for (const button of document.querySelectorAll("[data-format]")) {
    button.addEventListener("click", () => showErrors(download(button.dataset.format)));
  }
  byId("compare-form").addEventListener("submit", (event) => {
    event.preventDefault();
    if (byId("other").value !== "") setCompare(Number(byId("other").value));
  });
  byId("compare-none").addEventListener("click", () => setCompare(null));
  byId("output").addEventListener("change", (event) => setOutput(event.target.value || null));
  document.addEventListener("keydown", (event) => {
    if (event.key === "/" && !/^(INPUT|SELECT|TEXTAREA)$/.test(document.activeElement.tagName)) {
      event.preventDefault();
      byId("drawer").open = true;
      byId("search").focus();
    }
  });
  window.addEventListener("popstate", () => {
    Object.assign(state, urlState.read());
    current.answer = null;
    showView(state.view, false);
    if (state.view === "case") showErrors(openCase(state.case, false));
  });
}

async function start() {
  setTheme();
  about = await get("/page/about");
  byId("model").textContent = `${about.name} \u00b7 ${about.rows.toLocaleString("en")} case${about.rows === 1 ? "" : "s"}`;
  byId("drawer-title").textContent = `Cases (${about.rows.toLocaleString("en")})`;
  byId("notices").append(...about.notices.map((text) => h("p", {}, text)));
  byId("notices").hidden = !about.notices.length;
  byId("new-card").hidden = about.columns[0].kind === "images";
  byId("values-card").hidden = about.columns[0].kind === "texts"; // the text is shown above
  if (!about.is_table) [byId("what-if-hint").textContent, byId("changes-hint").textContent] = HINTS[about.columns[0].kind];
  if (matchMedia("(max-width: 60rem)").matches) byId("drawer").open = false;
  const open = (position) => {
    if (matchMedia("(max-width: 60rem)").matches) {
      byId("drawer").open = false;
      byId("main").focus();
    }
    current.answer = null;
    if (state.view === "all") showView("case", false);
    showErrors(openCase(position));
  };
  cases = new Cases(about, { open, compare: setCompare, onError: showError });
  cases.changed = () => {
    const isOther = state.search !== cases.search;
    Object.assign(state, { search: cases.search, sort: byId("sort").value });
    urlState.write(state);
    if (state.view === "all" && isOther) showView("all", false);
  };
  overview = new Overview(about, byId("overview"), { open, onError: showError });
  const edit = (edits, broken) => {
    byId("error").hidden = true;
    Object.assign(state, { edits, broken });
    urlState.write(state);
    showErrors(loadWhatIf());
  };
  const openNew = (values) => {
    const before = { row: state.row, edits: state.edits, broken: state.broken };
    current.answer = null;
    byId("main").scrollIntoView({ block: "start" });
    showErrors(openCase(state.case, true, values).catch((error) => {
      if (error.status !== 422 || !current.view) throw error;
      newCase.complain([error.message]); // beside the text, which stays; the case before is shown again
      byId("new-card").scrollIntoView({ block: "nearest" });
      Object.assign(state, before);
      return openCase(state.case, false);
    }));
  };
  whatIf = new WhatIf(about, byId("what-if"), { onChange: edit, onExplain: openNew });
  newCase = new NewCase(about, { open: openNew });
  if (about.classes && about.classes.length > 1 && about.explains === null) {
    const option = (label) => h("option", { value: label, selected: label === state.output }, label);
    byId("output").append(h("option", { value: "" }, "the model\u2019s decision"), ...about.classes.map(option));
    byId("class-choice").hidden = false;
  } else state.output = null;
  changes = new Changes(about, byId("changes"), {
    search: async (wishes) => {
      byId("error").hidden = true;
      try {
        return await answers.post("/page/changes", { row: shownRow(), ...classChoice(), ...wishes });
      } catch (error) {
        showError(error);
        return null;
      }
    },
    apply: (edits, names) => {
      if (about.is_table) edit(edits, []);
      else edit({}, names);
      byId("what-if-title").scrollIntoView({ block: "nearest" });
    },
  });
  cases.output = state.output;
  byId("search").value = state.search;
  byId("sort").value = state.sort;
  wire();
  showView(state.view, false);
  await Promise.all([cases.load(), state.view === "case" ? openCase(state.case, false) : null]);
}

showErrors(start());
