/* Formats numbers for people. */

function bytes(value) {
  if (value === null || value === undefined) return "–";
  const units = ["B", "KiB", "MiB", "GiB", "TiB", "PiB", "EiB"];
  let unit = 0, scaled = Math.abs(value);
  while (scaled >= 1024 && unit < units.length - 1) { scaled /= 1024; unit++; }
  const digits = unit === 0 ? 0 : scaled < 100 ? 2 : 1;
  return `${value < 0 ? "−" : ""}${scaled.toFixed(digits)}\u00a0${units[unit]}`;
}

function count(value) {
  return value === null || value === undefined ? "–" : Math.round(value).toString().replace(/\B(?=(\d{3})+(?!\d))/g, ",");
}

function milliseconds(value) {
  if (value === null || value === undefined) return "–";
  const size = Math.abs(value), sign = value < 0 ? "−" : "";
  if (size >= 60000) return `${sign}${(size / 60000).toFixed(1)}\u00a0min`;
  if (size >= 10000) return `${sign}${(size / 1000).toFixed(2)}\u00a0s`;
  if (size === 0) return "0\u00a0ms";
  return size < 0.001 ? `${sign}${(size * 1e6).toFixed(0)}\u00a0ns` : size < 1 ? `${sign}${(size * 1000).toPrecision(3)}\u00a0µs`
    : `${sign}${size.toFixed(size < 100 ? 2 : 1)}\u00a0ms`;
}

function part(value) {
  return value === null ? "–" : `${(value * 100).toFixed(1)}\u00a0%`;
}

function times(value) {
  return !isFinite(value) ? "–" : `${value.toFixed(value < 10 ? 2 : 1)}×`;
}

function change(from, to) {
  if (!from) return "";
  const ratio = to / from - 1;
  return `${ratio < 0 ? "−" : "+"}${Math.abs(ratio * 100).toFixed(Math.abs(ratio) < 0.1 ? 1 : 0)}\u00a0%`;
}

/* Formats a field's value by its kind. */
function fieldText(kind, value) {
  if (value === null || value === undefined) return "–";
  switch (kind) {
  case "BYTES": return bytes(value);
  case "COUNT": return count(value);
  case "US": return milliseconds(value / 1000);
  case "MS": return milliseconds(value);
  case "PART": return part(value);
  case "FLAG": return value ? "yes" : "no";
  case "CALLS": return count(Object.values(value).reduce((sum, made) => sum + made, 0));
  case "SPREAD": return `${value.median.toFixed(1)} ns`;
  case "OPTIONS": return Object.entries(value).map(([path, set]) => `${path}=${set}`).join(", ") || "–";
  default: return String(value) || "–";
  }
}

/* ---- elements: text is inserted as text only, never as HTML ---- */

function element(name, attributes, ...children) {
  const made = document.createElement(name);
  for (const [key, value] of Object.entries(attributes || {})) {
    if (key.startsWith("on")) made.addEventListener(key.slice(2), value);
    else if (value !== null && value !== undefined) made.setAttribute(key, value);
  }
  for (const child of children.flat(3)) if (child !== null && child !== undefined) made.append(child);
  return made;
}

function fill(id, title, ...children) {
  const section = document.getElementById(id);
  section.hidden = false;
  section.replaceChildren(...(title ? [element("h2", { id: `${id}-title` }, title)] : []), ...children.flat(3).filter(Boolean));
}

function color(name) {
  return getComputedStyle(document.documentElement).getPropertyValue(name).trim();
}

/* Makes a swatch in the color of a strategy or memory state, shown before its name. */
function key(name, again) {
  const made = element("span", { class: again ? "key again" : "key", "aria-hidden": "true" });
  made.style.backgroundColor = `var(${name})`;
  return made;
}

/* Colors repeat after ten strategies, then in broken lines. */
function runKey(run) {
  return key(run.color, run.again);
}

function table(head, rows) {
  return element("div", { class: "scroll", tabindex: "0", role: "group" }, element("table", null,
    element("thead", null, element("tr", null, head.map((text) => element("th", { scope: "col" }, text)))),
    element("tbody", null, rows)));
}
