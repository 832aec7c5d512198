// Shows openapi.json to people: every request with its parameters, an example and its answers.

import { get } from "./api.js";
import { byId, fill, h } from "./dom.js";

const typeText = (schema) => {
  if (!schema) return "";
  if (schema.$ref) return schema.$ref.split("/").at(-1);
  if (schema.anyOf) return schema.anyOf.map(typeText).join(" or ");
  if (schema.type === "array") return `list of ${typeText(schema.items) || "values"}`;
  if (schema.const !== undefined) return JSON.stringify(schema.const);
  if (schema.enum) return schema.enum.map((value) => JSON.stringify(value)).join(" or ");
  return Array.isArray(schema.type) ? schema.type.join(" or ") : schema.type ?? "any value";
};

function fields(rows, caption) {
  if (!rows.length) return null;
  const head = ["name", "type", "meaning"].map((text) => h("th", { scope: "col" }, text));
  const body = rows.map(([name, schema, text, isRequired]) => {
    const type = `${typeText(schema)}${isRequired ? ", required" : ""}`;
    const initial = schema?.default === undefined ? "" : ` Default: ${JSON.stringify(schema.default)}.`;
    return h("tr", null, h("th", { scope: "row" }, h("code", null, name)), h("td", null, type), h("td", null, `${text ?? ""}${initial}`));
  });
  const table = h("table", { class: "values-table" }, h("caption", null, caption), h("thead", null, h("tr", null, head)), h("tbody", null, body));
  return h("div", { class: "scroll", tabindex: "0", role: "region", "aria-label": caption }, table);
}

function properties(schema, schemas) {
  const found = schema?.$ref ? schemas[schema.$ref.split("/").at(-1)] : schema;
  const required = new Set(found?.required ?? []);
  return Object.entries(found?.properties ?? {}).map(([name, part]) => [name, part, part.description, required.has(name)]);
}

function example(method, path, schema, schemas) {
  const body = schema?.$ref ? schemas[schema.$ref.split("/").at(-1)]?.examples?.[0] : null;
  const data = body ? ` \\\n     -H 'Content-Type: application/json' -d '${JSON.stringify(body)}'` : "";
  const address = new URL(`.${path}`, location.href);
  const verb = method === "get" ? "" : ` -X ${method.toUpperCase()}`;
  return h("pre", { tabindex: "0" }, h("code", null, `curl${verb} -H "Authorization: Bearer $TOKEN"${data} '${address}'`));
}

function operation(method, path, described, schemas) {
  const content = described.requestBody?.content["application/json"]?.schema;
  const answer = described.responses["200"]?.content?.["application/json"]?.schema;
  const parameters = (described.parameters ?? []).map((part) => [part.name, part.schema, part.description, part.required]);
  const refusals = Object.entries(described.responses).filter(([status]) => status >= "400");
  const id = described.operationId;
  return h(
    "section",
    { class: "card", "aria-labelledby": id },
    h("h2", { id }, h("code", null, `${method.toUpperCase()} ${path}`), ` ${described.summary ?? ""}`),
    h("p", null, described.description ?? ""),
    fields(parameters, "Parameters"),
    fields(properties(content, schemas), "Members of the body"),
    example(method, path, content, schemas),
    fields(properties(answer, schemas), "Members of the answer"),
    h("details", null, h("summary", null, "Refusals (problem+json)"), h("ul", null, refusals.map(([status, { description }]) => h("li", null, `${status}: ${description}`)))),
  );
}

async function start() {
  const described = await get("/openapi.json");
  const { schemas } = described.components;
  const all = Object.entries(described.paths).flatMap(([path, methods]) =>
    Object.entries(methods).map(([method, one]) => [method, path, one]));
  const shown = all.filter(([, , one]) => !one.tags?.includes("page"));
  fill(byId("operations"), shown.map(([method, path, one]) => operation(method, path, one, schemas)));
}

start().catch((error) => {
  byId("error").textContent = error.message;
  byId("error").hidden = false;
});
