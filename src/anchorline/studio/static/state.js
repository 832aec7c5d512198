// The state of the page, stored in the address, so that a link reproduces the view.

const parseWhole = (text, fallback) => (/^\d{1,15}$/.test(text ?? "") ? Number(text) : fallback);

function parseJson(text) {
  try {
    return JSON.parse(text);
  } catch {
    return null;
  }
}

const isValues = (content) => content !== null && typeof content === "object" && !Array.isArray(content);

export function read() {
  const query = new URLSearchParams(location.search);
  const sigma = Number(query.get("sigma") ?? NaN);
  const [edits, broken, ownRow] = ["edits", "broken", "row"].map((name) => parseJson(query.get(name)));
  return {
    case: parseWhole(query.get("case"), 0),
    k: parseWhole(query.get("k"), null),
    sigma: Number.isFinite(sigma) && sigma >= 0 && sigma <= 4 ? sigma : 1,
    view: query.get("view") === "all" ? "all" : "case",
    compare: parseWhole(query.get("compare"), null),
    output: query.get("output"),
    row: isValues(ownRow) ? ownRow : null,
    search: query.get("search") ?? "",
    sort: ["high", "low"].includes(query.get("sort")) ? query.get("sort") : "position",
    edits: isValues(edits) ? edits : {},
    broken: Array.isArray(broken) ? broken.filter((name) => typeof name === "string") : [],
  };
}

// Addresses have a limited length, so that the values of a very long case are not part of it.
const MAX_ROW = 24_000;
export const isTooLong = (state) => state.row !== null && encodeURIComponent(JSON.stringify(state.row)).length > MAX_ROW;

export function address(state) {
  const query = new URLSearchParams({ case: state.case, k: state.k, sigma: state.sigma });
  if (state.view === "all") query.set("view", "all");
  if (state.compare !== null) query.set("compare", state.compare);
  if (state.output !== null) query.set("output", state.output);
  if (state.row !== null && !isTooLong(state)) query.set("row", JSON.stringify(state.row));
  if (state.search) query.set("search", state.search);
  if (state.sort !== "position") query.set("sort", state.sort);
  if (Object.keys(state.edits).length) query.set("edits", JSON.stringify(state.edits));
  if (state.broken.length) query.set("broken", JSON.stringify(state.broken));
  return `${location.pathname}?${query}`;
}

export function write(state, isNewCase) {
  const url = address(state);
  if (url === location.pathname + location.search) return;
  if (isNewCase) history.pushState(null, "", url);
  else history.replaceState(null, "", url);
}
