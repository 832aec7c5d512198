// The card for a case that is not in the table: pasted or uploaded rows as CSV or JSON, of which one is explained.

import { byId, fill, h, isolate } from "./dom.js";

const MAX_BYTES = 1_000_000;
const MAX_ROWS = 200;

// Reads CSV with quotes; the first line holds the names of the columns.
function csvRows(text) {
  const separator = (text.split("\n", 1)[0].match(/[,;\t]/) ?? [","])[0];
  const lines = [[""]];
  let isQuoted = false;
  for (let i = 0; i < text.length; i += 1) {
    const sign = text[i];
    const line = lines.at(-1);
    if (sign === '"' && isQuoted && text[i + 1] === '"') line[line.length - 1] += text[(i += 1)];
    else if (sign === '"') isQuoted = !isQuoted;
    else if (sign === separator && !isQuoted) line.push("");
    else if (sign === "\n" && !isQuoted) lines.push([""]);
    else if (sign !== "\r" || isQuoted) line[line.length - 1] += sign;
  }
  if (isQuoted) throw new Error("A quote is not closed. Each text in quotes needs a quote at its end.");
  const [names, ...cells] = lines.filter((line) => line.length > 1 || line[0].trim() !== "");
  return cells.map((line, i) => {
    if (line.length !== names.length) {
      throw new Error(`Row ${i + 1} has ${line.length} values, but the first line names ${names.length} columns.`);
    }
    return new Map(line.map((value, j) => [names[j].trim(), value]));
  });
}

function jsonRows(text) {
  let content;
  try {
    content = JSON.parse(text);
  } catch (error) {
    throw new Error(`The text is not valid JSON (${error.message}). Rows look like [{"age": 35}].`);
  }
  const rows = Array.isArray(content) ? content : [content];
  if (!rows.every((row) => row && typeof row === "object" && !Array.isArray(row))) {
    throw new Error("Each row must be an object with a value per column, such as {\"age\": 35}.");
  }
  return rows.map((row) => new Map(Object.entries(row)));
}

// Turns the texts of a CSV file into values of the column's kind; an empty text is a missing value.
function typed(column, value, problems) {
  if (typeof value !== "string" || column.kind === "categories") return value === "" ? null : value;
  const text = value.trim();
  if (text === "") return null;
  if (column.kind === "numbers" && Number.isNaN(Number(text)) && !/^-?Infinity$/.test(text)) {
    problems.push(`${column.name} is "${text}", but it must be a number.`);
  }
  if (column.kind === "booleans") {
    if (!/^(true|false|0|1)$/i.test(text)) problems.push(`${column.name} is "${text}", but it must be true or false.`);
    return /^(true|1)$/i.test(text);
  }
  if (column.kind === "numbers" && Number.isFinite(Number(text)) && !/^-?[1-9]\d{15,}$/.test(text)) return Number(text);
  return text;
}

export class NewCase {
  constructor(about, { open }) {
    this.columns = about.columns;
    this.open = open;
    this.isText = about.columns[0].kind === "texts";
    byId("new-example").textContent = about.columns.map(({ name }) => name).join(",");
    if (this.isText) {
      byId("new-label").textContent = "A text";
      byId("new-names").hidden = true;
    }
    byId("new-form").addEventListener("submit", (event) => {
      event.preventDefault();
      this.read(byId("new-text").value);
    });
    byId("new-file").addEventListener("change", async () => {
      const [file] = byId("new-file").files;
      if (!file) return;
      if (file.size > MAX_BYTES) return this.complain([`The file has ${file.size} bytes; the maximum is ${MAX_BYTES}.`]);
      byId("new-text").value = await file.text();
      return this.read(byId("new-text").value);
    });
  }

  complain(problems) {
    fill(byId("new-rows"), h("ul", { class: "error" }, problems.slice(0, 10).map((text) => h("li", null, text))));
    byId("new-text").setAttribute("aria-invalid", "true");
  }

  // Names every unknown column and every impossible value; the text stays as it was typed.
  read(text) {
    if (this.isText) return this.open({ [this.columns[0].name]: text });
    let rows;
    try {
      if (text.length > MAX_BYTES) throw new Error(`The text is longer than ${MAX_BYTES} characters.`);
      rows = /^\s*[[{]/.test(text) ? jsonRows(text) : csvRows(text);
      if (!rows.length) throw new Error("There is no row below the names of the columns.");
      if (rows.length > MAX_ROWS) throw new Error(`There are ${rows.length} rows; the maximum is ${MAX_ROWS}.`);
    } catch (error) {
      return this.complain([error.message]);
    }
    const problems = [];
    const known = new Set(this.columns.map(({ name }) => name));
    for (const name of rows[0].keys()) if (!known.has(name)) problems.push(`${name} is not a column of the table.`);
    for (const { name } of this.columns) if (!rows[0].has(name)) problems.push(`The column ${name} is missing.`);
    const read = rows.map((row) => {
      const cells = this.columns.map((column) => [column.name, typed(column, row.get(column.name) ?? null, problems)]);
      return Object.fromEntries(cells);
    });
    if (problems.length) return this.complain([...new Set(problems)]);
    byId("new-text").removeAttribute("aria-invalid");
    fill(byId("new-rows"));
    if (read.length === 1) return this.open(read[0]);
    const button = (row, i) => h("button", { type: "button", onclick: () => this.open(row) }, isolate(`Explain row ${i + 1}`));
    return fill(byId("new-rows"), h("div", { class: "inline" }, read.map(button)));
  }
}
