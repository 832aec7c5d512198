// Numbers and texts as people read them.

export const minus = (number) => String(number).replace("-", "\u2212");
export const signed = (number) => (String(number).startsWith("-") ? minus(number) : `+${number}`);
export const percent = (share, digits = 1) => `${(100 * share).toFixed(digits)}%`;

export function brief(value, digits = 4) {
  if (!Number.isFinite(value)) return "";
  const size = Math.abs(value);
  if (size >= 1e6 || (size > 0 && size < 1e-4)) return minus(value.toPrecision(Math.min(3, digits)));
  return minus(String(Number(value.toPrecision(digits))));
}

export const shown = (value) => (value === null ? "missing" : String(value));

// A date in a short text, as facts tell it: without a time, where it has none.
const MOMENT = /^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{6}$/;
export const day = (text) =>
  MOMENT.test(text) ? text.replace(".000000", "").replace(/:00$/, "").replace(/T00:00$/, "").replace("T", " ") : text;

export function listed(parts) {
  // ["a", "b", "c"] -> a, b and c; parts are nodes.
  const found = [];
  parts.forEach((part, i) => {
    if (i > 0) found.push(i === parts.length - 1 ? " and " : ", ");
    found.push(part);
  });
  return found;
}
