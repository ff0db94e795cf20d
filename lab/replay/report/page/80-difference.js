/* The difference of two strategies, over the rows of the trace because they reach a row at different times. */

let difference = null;
let differenceCurve = "reserved";

/* Returns B minus A after the last row of each column. The columns of both have the same rows, since they
 * replay the same trace. */
function differenceLine(a, b) {
  const from = a.run.curves, to = b.run.curves, length = Math.min(from.row.length, to.row.length), less = new Float64Array(length);
  for (let i = 0; i < length; i++) less[i] = to.last[differenceCurve][i] - from.last[differenceCurve][i];
  return { color: b.color, width: 1.6, both: true, at: from.row.slice(0, length), low: less, high: less, end: data.traces[state.trace].rows + 1 };
}

function drawDifference() {
  const group = difference, runs = shownRuns(), view = viewOf(group), a = runs[state.a], b = runs[state.b];
  const line = differenceLine(a, b);
  drawPlot(group.canvas, { axis: "row", view, cursor: group.cursor, selection: group.selection, lines: [line], tickStep: byteTicks,
    tickText: (value) => bytes(value).replace(/\.0+\u00a0/, "\u00a0") });
  group.readout.replaceChildren(differenceWords(group, line, a, b));
}

function differenceWords(group, line, a, b) {
  if (a === b) return "Choose two different strategies.";
  if (group.cursor === null) return `Above zero ${b.label} holds more ${differenceCurve} bytes than ${a.label}, below zero less.`;
  const less = line.low[columnAt(line.at, group.cursor)];
  return `${rowsText(a.run, group.cursor)}, after the last: ${b.label} minus ${a.label}: ${bytes(less)}`;
}

/* ---- the figures ---- */

function differenceRow(name, kind, from, to) {
  const plain = (value) => (kind === "SPREAD" && value ? value.median : value), x = plain(from), y = plain(to);
  if (x === null || y === null || x === undefined || y === undefined || x === y) return null;
  const less = kind === "SPREAD" ? `${(y - x).toFixed(1)} ns` : kind === "COUNT" ? `${y < x ? "−" : "+"}${count(Math.abs(y - x))}`
    : kind === "PART" ? part(y - x) : fieldText(kind, y - x);
  return element("tr", null, element("th", { scope: "row" }, name), element("td", null, fieldText(kind, from)), element("td", null, fieldText(kind, to)),
    element("td", null, less.startsWith("−") || less.startsWith("-") || less.startsWith("+") ? less.replace("-", "−") : `+${less}`), element("td", null, change(x, y)));
}

function differenceRows(a, b) {
  const rows = [];
  for (const field of data.fields) {
    const from = a.figures[field.name], to = b.figures[field.name];
    if (["COUNT", "BYTES", "MS", "PART", "SPREAD"].includes(field.kind)) rows.push(differenceRow(field.name, field.kind, from, to));
    if (field.kind === "CALLS") for (const call of Object.keys(from)) rows.push(differenceRow(call, "COUNT", from[call], to[call]));
  }
  return rows.filter(Boolean);
}

function renderDifference() {
  const runs = shownRuns();
  document.getElementById("difference").hidden = runs.length < 2;
  if (runs.length < 2) return;
  const labels = runs.map((run) => run.label), a = runs[state.a], b = runs[state.b];
  const pick = (which) => choice(labels, state[which], (index) => { state[which] = index; renderDifference(); });
  const group = difference = { extent: () => extentOf(shownRuns(), "row"), view: null, cursor: null, selection: null, frame: 0 };
  group.draw = () => { if (!group.frame) group.frame = requestAnimationFrame(() => { group.frame = 0; if (difference === group) drawDifference(); }); };
  group.canvas = timelineChart("difference-chart", 200, `${b.label} minus ${a.label}, ${differenceCurve} bytes over the rows of the trace.`);
  group.readout = element("div", { class: "readout", "aria-live": "polite" });
  const curves = data.curves.map((curve) => curve.name);
  fill("difference", "Difference between two strategies",
    element("div", { class: "tools" }, element("label", null, "from", pick("a")), element("label", null, "to", pick("b")),
      element("label", null, "of", choice(curves, curves.indexOf(differenceCurve), (index) => { differenceCurve = curves[index]; renderDifference(); }))),
    element("div", { class: "chart" }, group.canvas), group.readout,
    table(["figure", a.label, b.label, "difference", "relative"], differenceRows(a, b)));
  takeHands(group, group.canvas);
  drawDifference();
}
