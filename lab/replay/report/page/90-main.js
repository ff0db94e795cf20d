/* The page as a whole: its sections, its colors and its size. */

function renderAll() {
  const runs = shownRuns(), order = ranked(runs);
  state.b = order[0].index;
  state.a = (order[1] || runs.find((run) => run.index !== state.b) || order[0]).index;
  renderHeadline();
  renderFigures();
  renderTimeline();
  renderBlocks();
  renderCalls();
  renderMemory();
  renderDifference();
  renderStreams();
  renderFields();
}

function redrawAll() {
  drawTimeline();
  maps.forEach(drawMap);
  if (difference && !document.getElementById("difference").hidden) drawDifference();
}

const parts = [["figures", "Figures"], ["timeline", "Memory"], ["blocks", "Blocks"], ["calls", "Device calls"], ["memory", "Out of memory"],
  ["difference", "Difference"], ["streams", "Streams"], ["fields", "Fields"]];

function renderFrame() {
  document.getElementById("contents").replaceChildren(...parts.filter(([id]) => id !== "difference" || data.candidates > 1)
    .map(([id, name]) => element("a", { href: `#${id}` }, name)));
  document.getElementById("footer").textContent = `Made by strata ${data.version}. The page loads nothing and sends nothing, and contains its figures as JSON `
    + "(the element with the ID data). docs/guide.md explains the page, and docs/records.md how a replay runs.";
}

/* ---- light and dark ---- */

const dark = window.matchMedia("(prefers-color-scheme: dark)");
let theme = "auto";

function showTheme(printing) {
  const shown = printing ? "light" : theme === "auto" ? (dark.matches ? "dark" : "light") : theme;
  document.documentElement.dataset.theme = shown;
  document.getElementById("theme").textContent = { auto: "Colors: as the system", light: "Colors: light", dark: "Colors: dark" }[theme];
}

function followTheme() {
  showTheme(false);
  document.getElementById("theme").addEventListener("click", () => {
    theme = { auto: "light", light: "dark", dark: "auto" }[theme];
    showTheme(false);
    redrawAll();
  });
  dark.addEventListener("change", () => { showTheme(false); redrawAll(); });
  window.addEventListener("beforeprint", () => { showTheme(true); redrawAll(); });
  window.addEventListener("afterprint", () => { showTheme(false); redrawAll(); });
}

/* Redraws the canvases only if the width changes. On phones the address bar changes the height alone, which needs no redraw. */
function followSize() {
  let width = window.innerWidth, waiting = 0;
  window.addEventListener("resize", () => {
    if (window.innerWidth === width) return;
    width = window.innerWidth;
    cancelAnimationFrame(waiting);
    waiting = requestAnimationFrame(redrawAll);
  });
}

window.addEventListener("error", (event) => {
  document.documentElement.dataset.failed = event.message;
  document.getElementById("headline").append(element("p", { class: "alarm" }, `The page has a fault and may be incomplete: ${event.message}`));
});

followTheme();
followSize();
renderFrame();
renderAll();
/* Time until the page was complete, in ms, for tests and measurements. */
document.documentElement.dataset.ready = Math.round(performance.now());
