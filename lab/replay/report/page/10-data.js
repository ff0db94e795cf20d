"use strict";
/* The data of the page. Numbers are stored as differences, which are summed up here. */

const data = JSON.parse(document.getElementById("data").textContent);

function sums(differences) {
  const values = new Float64Array(differences.length);
  let last = 0;
  for (let i = 0; i < differences.length; i++) values[i] = last += differences[i];
  return values;
}

/* Decodes the columns of a run: their positions on both axes, and for each curve the least, the most and the last value. */
function decodeRun(run) {
  const columns = run.columns;
  const decoded = { row: sums(columns.row), time_us: sums(columns.time_us), cost_us: sums(columns.cost_us), low: {}, high: {}, last: {} };
  for (const curve of data.curves) {
    const low = sums(columns[curve.name].low), more = sums(columns[curve.name].more);
    decoded.low[curve.name] = low;
    decoded.last[curve.name] = sums(columns[curve.name].last).map((value, i) => value + low[i]);
    decoded.high[curve.name] = more.map((value, i) => value + low[i]);
  }
  decoded.around = run.around.map((stretch) => {
    const sample = { row: sums(stretch.row), time_us: sums(stretch.time_us) };
    for (const curve of data.curves) sample[curve.name] = sums(stretch[curve.name]);
    return sample;
  });
  return decoded;
}

/* The current state of the page. */
const state = { trace: 0, hidden: new Set(), curves: new Set(["reserved", "requested"]), axis: "time_us", view: null, a: 0, b: 1 };

/* Returns the verdict on the shown trace, with the order and the text of the command. */
function shownVerdict() {
  return data.figures.verdicts[state.trace];
}

/* Returns the runs of the shown trace, one per strategy. Strategies that cannot differ on the trace share one
 * run. `index` is the position in this list, `candidate` the position in the comparison. */
function shownRuns() {
  const runs = [], shown = new Set(shownVerdict().order.map((labels) => labels[0]));
  for (let i = 0; i < data.candidates; i++) {
    const at = state.trace * data.candidates + i, run = data.runs[at], figures = data.figures.runs[at];
    if (!shown.has(figures.label)) continue;
    run.curves = run.curves || decodeRun(run);
    runs.push({ index: runs.length, candidate: i, label: figures.label, figures, run, color: `--c${i % 10}`, again: i >= 10 });
  }
  return runs;
}

function visibleRuns() {
  return shownRuns().filter((run) => !state.hidden.has(run.candidate));
}

/* Returns the bytes in the chunks by state, at the peak of reserved memory. `pool` is the rest, which a driver pool keeps. */
function heldAtPeak(run) {
  const held = { live: 0, waiting: 0, free: 0 };
  for (const row of run.run.map.by_stream) for (const kind of ["live", "waiting", "free"]) held[kind] += row[kind];
  held.pool = Math.max(0, run.figures.device_calls.malloc_async > 0 ? run.figures.peak_reserved_bytes - held.live - held.waiting - held.free : 0);
  return held;
}

/* Returns the cost of a strategy on the host: device calls and the waits in them. If the waits are unknown,
 * it is the calls only. */
function deviceTime(figures) {
  return figures.stall_ms === null ? figures.device_call_ms : figures.device_call_ms + figures.stall_ms;
}
