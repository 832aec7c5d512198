// Builds DOM elements. Text from data is always inserted as text, never as markup.

const SVG = "http://www.w3.org/2000/svg";

function applyStyles(node, settings) {
  for (const [name, value] of Object.entries(settings)) node.style.setProperty(name, value);
}

function assemble(node, attributes, children) {
  for (const [name, value] of Object.entries(attributes ?? {})) {
    if (value === null || value === undefined || value === false) continue;
    if (name.startsWith("on")) node.addEventListener(name.slice(2), value);
    else if (name === "style") applyStyles(node, value);
    else node.setAttribute(name, value === true ? "" : String(value));
  }
  node.append(...children.flat(Infinity).filter((child) => child !== null && child !== undefined));
  return node;
}

export const h = (tag, attributes, ...children) => assemble(document.createElement(tag), attributes, children);
export const s = (tag, attributes, ...children) => assemble(document.createElementNS(SVG, tag), attributes, children);
export const byId = (id) => document.getElementById(id);
export const fill = (node, ...children) => node.replaceChildren(...children.flat(Infinity).filter(Boolean));

// Isolates text from data, so that its writing direction does not affect the text around it.
export const isolate = (text) => h("bdi", null, text);

export function announce(text) {
  byId("status").textContent = text;
}
