// Elements made by hand: text from data is only ever text.

const SVG = "http://www.w3.org/2000/svg";

function styled(node, settings) {
  for (const [name, value] of Object.entries(settings)) node.style.setProperty(name, value);
}

function filled(node, attributes, children) {
  for (const [name, value] of Object.entries(attributes ?? {})) {
    if (value === null || value === undefined || value === false) continue;
    if (name.startsWith("on")) node.addEventListener(name.slice(2), value);
    else if (name === "style") styled(node, value);
    else node.setAttribute(name, value === true ? "" : String(value));
  }
  node.append(...children.flat(Infinity).filter((child) => child !== null && child !== undefined));
  return node;
}

export const h = (tag, attributes, ...children) => filled(document.createElement(tag), attributes, children);
export const s = (tag, attributes, ...children) => filled(document.createElementNS(SVG, tag), attributes, children);
export const by = (id) => document.getElementById(id);
export const fill = (node, ...children) => node.replaceChildren(...children.flat(Infinity).filter(Boolean));

// Text from data, whose writing direction is its own.
export const own = (text) => h("bdi", null, text);

export function say(text) {
  by("status").textContent = text;
}
