/* Memory over time, and the cumulative cost of device calls. */

const looks = {
  requested: { dash: [6, 4], width: 1.4 }, allocated: { width: 1 }, reserved: { width: 2.2 }, deferred: { dash: [2, 3], width: 1.6 },
};
let timeline = null;

function extentOf(runs, axis) {
  if (axis === "row") return [1, data.traces[state.trace].rows + 1];
  return [0, Math.max(1, ...runs.map((run) => Math.max(run.figures.end_ms * 1000, run.run.columns.end_us)))];
}

/* Returns a curve of a run as steps on an axis. */
function curveLine(run, curve, axis) {
  const curves = run.run.curves, end = axis === "row" ? data.traces[state.trace].rows + 1 : Math.max(run.run.columns.end_us, run.figures.end_ms * 1000);
  return {
    color: run.color, ...looks[curve], ...(run.again && curve === "reserved" ? { dash: [9, 3] } : {}), at: curves[axis], low: curves.low[curve], high: curves.high[curve], end,
    around: curves.around.map((stretch) => ({ at: stretch[axis], values: stretch[curve] })),
  };
}

function costLine(run, axis) {
  const curves = run.run.curves, high = curves.cost_us.map((value) => value / 1000);
  const low = high.map((value, i) => (i ? high[i - 1] : 0));
  return { color: run.color, width: 2, dash: run.again ? [9, 3] : [], at: curves[axis], low, high, end: curveLine(run, "reserved", axis).end };
}

/* If no run fails, all strategies get the same requests, so their curve is drawn once. */
function memoryLines(runs) {
  const lines = [], same = runs.every(served);
  for (const { name } of data.curves) {
    if (!state.curves.has(name)) continue;
    const shown = name === "requested" && same ? runs.slice(0, 1) : runs;
    for (const run of shown) lines.push({ ...curveLine(run, name, state.axis), ...(shown !== runs ? { color: "--ink" } : {}) });
  }
  return lines;
}

function peakMarks(runs) {
  const marks = [];
  for (const run of runs) {
    const peak = run.run.peaks.reserved;
    if (state.curves.has("reserved") && peak.bytes) marks.push({ at: peak[state.axis], value: peak.bytes, color: run.color });
    for (const refusal of run.run.refused) marks.push({ at: refusal[state.axis], color: "--alarm" });
  }
  return marks;
}

/* Returns the index of the column that contains a position. */
function columnAt(at, place) {
  let first = 0;
  for (let step = at.length; step > 0; step = Math.floor(step / 2)) while (first + step < at.length && at[first + step] <= place) first += step;
  return first;
}

function valueText(run, curve, place) {
  const curves = run.run.curves;
  for (const stretch of curves.around) {
    const at = stretch[state.axis];
    if (place >= at[0] && place < at[at.length - 1]) return bytes(stretch[curve][columnAt(at, place)]);
  }
  const column = columnAt(curves[state.axis], place), low = curves.low[curve][column], high = curves.high[curve][column];
  return low === high ? bytes(high) : `${bytes(low)} … ${bytes(high)}`;
}

/* Returns "row 120", or "rows 1,024 to 1,279" if the column covers several rows. */
function rowsText(run, place) {
  const at = run.curves.row, column = columnAt(at, place), last = (column + 1 < at.length ? at[column + 1] : data.traces[state.trace].rows + 1) - 1;
  return last <= at[column] ? `row ${count(at[column])}` : `rows ${count(at[column])} to ${count(last)}`;
}

function readout(group) {
  const runs = visibleRuns(), place = group.cursor;
  if (place === null || !runs.length)
    return [element("span", { class: "hint" }, "Point at the curves to read them. Drag over a part to zoom in; the wheel zooms once the chart is clicked, or with Ctrl; "
      + "two fingers on a touch screen; double-click to show all. Keys: ← → read, + − zoom, Page keys move, 0 all.")];
  const where = state.axis === "row" ? rowsText(runs[0].run, place) : milliseconds(place / 1000);
  return [element("b", null, where), element("div", { class: "values" }, runs.map((run) => element("span", null, runKey(run), element("span", null, element("b", null, run.label),
    ` ${data.curves.filter((curve) => state.curves.has(curve.name)).map((curve) => `${curve.name} ${valueText(run, curve.name, place)}`).join(", ")}`
    + `; device ${milliseconds(run.run.curves.cost_us[columnAt(run.run.curves[state.axis], place)] / 1000)}`))))];
}

function drawTimeline() {
  const group = timeline, runs = visibleRuns(), view = viewOf(group);
  const capacity = runs.length ? runs[0].figures.capacity_bytes : null;
  const shared = { axis: state.axis, view, cursor: group.cursor, selection: group.selection };
  drawPlot(group.memory, { ...shared, lines: memoryLines(runs), tickStep: byteTicks, tickText: (value) => bytes(value).replace(/\.0+\u00a0/, "\u00a0"),
    marks: peakMarks(runs), rules: capacity ? [{ value: capacity, text: `capacity ${bytes(capacity)}` }] : [] });
  drawPlot(group.cost, { ...shared, lines: runs.map((run) => costLine(run, state.axis)), tickStep: (low, high) => niceStep(high - low, 2),
    tickText: (value) => milliseconds(value).replace(/\.0+\u00a0/, "\u00a0") });
  group.readout.replaceChildren(...readout(group));
  group.reset.disabled = !group.view;
  state.view = group.view;
}

function toggle(label, pressed, take, mark) {
  return element("button", { type: "button", "aria-pressed": String(pressed), onclick: (event) => {
    const on = event.currentTarget.getAttribute("aria-pressed") !== "true";
    event.currentTarget.setAttribute("aria-pressed", String(on));
    take(on);
  } }, mark || null, element("span", { class: "name" }, label));
}

function curveKey(curve) {
  const size = { width: 26, height: 12 }, made = element("canvas", { class: "key", "aria-hidden": "true", ...size });
  made.style.width = "26px";
  const context = made.getContext("2d");
  context.strokeStyle = color("--ink");
  context.lineWidth = looks[curve].width;
  context.setLineDash(looks[curve].dash || []);
  context.moveTo(0, 6);
  context.lineTo(26, 6);
  context.stroke();
  return made;
}

function timelineTools(group, redraw) {
  const runs = shownRuns();
  const axes = element("label", null, "over", choice(["time", "rows of the trace"], state.axis === "row" ? 1 : 0, (index) => {
    state.axis = index ? "row" : "time_us";
    group.view = group.cursor = null;
    redraw();
  }));
  const strategies = runs.map((run) => toggle(run.label, !state.hidden.has(run.candidate), (on) => {
    if (on) state.hidden.delete(run.candidate); else state.hidden.add(run.candidate);
    redraw();
  }, runKey(run)));
  const curves = data.curves.map((curve) => {
    const made = toggle(curve.name, state.curves.has(curve.name), (on) => {
      if (on) state.curves.add(curve.name); else state.curves.delete(curve.name);
      redraw();
    }, curveKey(curve.name));
    made.title = curve.meaning;
    return made;
  });
  const middle = () => (group.cursor === null ? (viewOf(group)[0] + viewOf(group)[1]) / 2 : group.cursor);
  const zoom = [["+", "Zoom in", () => zoomAround(group, middle(), 0.5)], ["−", "Zoom out", () => zoomAround(group, middle(), 2)]].map(
    ([text, name, act]) => element("button", { type: "button", "aria-label": name, onclick: act }, text));
  group.reset = element("button", { type: "button", onclick: () => clampView(group, ...group.extent()) }, "All");
  return [element("div", { class: "tools" }, element("div", { class: "group", role: "group", "aria-label": "Strategies" }, strategies)),
    element("div", { class: "tools" }, element("div", { class: "group", role: "group", "aria-label": "Curves" }, curves),
      element("div", { class: "group" }, zoom, group.reset), axes)];
}

/* Explains the resolution of the curves. */
function resolutionWords(runs) {
  const rows = Math.max(...runs.map((run) => run.run.columns.rows));
  return rows === 1 ? "The curves show every row." : `A column of the curves shows the minimum and maximum of ${count(rows)} rows; `
    + "around the peaks, every row is shown. Peaks are exact at every zoom.";
}

function timelineChart(name, height, label) {
  const canvas = element("canvas", { role: "img", "aria-label": label, id: name });
  canvas.style.height = `${height}px`;
  return canvas;
}

function renderTimeline() {
  const runs = shownRuns();
  const told = runs.map((run) => `${run.label} reserves at most ${bytes(run.figures.peak_reserved_bytes)} at row ${count(run.run.peaks.reserved.row)}`).join("; ");
  const group = timeline = { extent: () => extentOf(shownRuns(), state.axis), view: state.view, cursor: null, selection: null, frame: 0 };
  group.draw = () => { if (!group.frame) group.frame = requestAnimationFrame(() => { group.frame = 0; if (timeline === group) drawTimeline(); }); };
  group.memory = timelineChart("memory-chart", 320, `Device memory over ${state.axis === "row" ? "rows" : "time"}. ${told}.`);
  group.cost = timelineChart("cost-chart", 130, `Time of device calls and waits so far. ${runs.map((run) => `${run.label}: ${milliseconds(deviceTime(run.figures))}`).join("; ")}.`);
  group.readout = element("div", { class: "readout", "aria-live": "polite" });
  fill("timeline", "Memory over time", timelineTools(group, group.draw), element("div", { class: "chart" }, group.memory), group.readout,
    element("p", { class: "note" }, "Time of device calls and of the waits in them so far:"), element("div", { class: "chart" }, group.cost),
    element("p", { class: "note" }, `Rings mark the first peak of each strategy${runs.some((run) => run.run.refused.length) ? ", crosses mark the first requests that failed for lack of memory" : ""}. ${resolutionWords(runs)}`));
  takeHands(group, group.memory);
  takeHands(group, group.cost);
  drawTimeline();
}
