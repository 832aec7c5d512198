// Formats numbers and dates for people. The numbers of an explanation come printed from the server.

export const withMinusSign = (number) => String(number).replace("-", "\u2212");
export const percent = (share, digits = 1) => `${(100 * share).toFixed(digits)}%`;
export const count = (number) => number.toLocaleString("en");

export function shortNumber(value, digits = 4) {
  if (!Number.isFinite(value)) return "";
  const size = Math.abs(value);
  if (size >= 1e6 || (size > 0 && size < 1e-4)) return withMinusSign(value.toPrecision(Math.min(3, digits)));
  return withMinusSign(String(Number(value.toPrecision(digits))));
}

// A true outcome; of a number, as many digits as a reader compares.
export const truthText = (text, about) => (about.classes || text.trim() === "" || !Number.isFinite(Number(text)) ? text : shortNumber(Number(text), 6));

// Shortens a timestamp: a time of midnight, zero seconds and zero microseconds are omitted, as in the facts.
const TIMESTAMP = /^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{6}$/;
const dateText = (text) =>
  TIMESTAMP.test(text) ? text.replace(".000000", "").replace(/:00$/, "").replace(/T00:00$/, "").replace("T", " ") : text;

export const valueText = (value) => (value === null ? "missing" : dateText(String(value)));
