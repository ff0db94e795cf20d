/* The sections on device calls, failed requests and streams. */

/* ---- device calls ---- */

function callTotals(run) {
  const between = run.run.waits_between_ns, sum = { made: 0, ns: between, waited_ns: between };
  for (const call of run.run.calls) for (const name of Object.keys(sum)) sum[name] += call[name];
  return sum;
}

function callBar(run, most) {
  const sum = callTotals(run), own = element("i"), waits = element("i", { class: "waits" });
  for (const [piece, ns] of [[own, sum.ns - sum.waited_ns], [waits, sum.waited_ns]]) {
    piece.style.width = `${100 * ns / most}%`;
    piece.style.backgroundColor = `var(${run.color})`;
  }
  return element("tr", null, element("th", { scope: "row" }, runKey(run), element("span", { class: "name" }, run.label)),
    element("td", { class: "bar" }, milliseconds(sum.ns / 1e6), element("span", { class: "track", "aria-hidden": "true" }, own, waits)),
    element("td", null, milliseconds((sum.ns - sum.waited_ns) / 1e6)),
    element("td", null, run.run.waits_known ? milliseconds(sum.waited_ns / 1e6) : "–"), element("td", null, count(sum.made)));
}

function callCell(run, name) {
  const call = run.run.calls.find((each) => each.name === name);
  if (!call) return element("td", null, "–");
  const waits = call.waited_ns ? `, waits ${milliseconds(call.waited_ns / 1e6)}` : "";
  return element("td", null, count(call.made), element("br"), element("small", null, `${milliseconds((call.ns - call.waited_ns) / 1e6)}${waits}`));
}

/* Waits for memory that was freed and is still in use. They happen outside device calls. */
function waitsBetween(runs) {
  if (!runs.some((run) => run.run.waits_between_ns)) return null;
  return element("tr", null, element("th", { scope: "row" }, "waits between calls"), runs.map((run) => element("td", null, milliseconds(run.run.waits_between_ns / 1e6))));
}

function renderCalls() {
  const runs = shownRuns(), most = Math.max(1, ...runs.map((run) => callTotals(run).ns)), cost = {};
  for (const run of runs) for (const call of run.run.calls) cost[call.name] = (cost[call.name] || 0) + call.ns;
  const names = Object.keys(cost).sort((a, b) => cost[b] - cost[a]);
  fill("calls", "Device calls and waits",
    table(["strategy", "calls and waits", "calls", "waits", "number of calls"], runs.map((run) => callBar(run, most))),
    element("p", { class: "note" }, "Hatched: the host waits for the device, inside a call or between calls. The program's own calls and waits are excluded; "
      + "calls that device_calls leaves out are included."),
    names.length > 0 && table(["call", ...runs.map((run) => run.label)], [...names.map((name) =>
      element("tr", null, element("th", { scope: "row" }, name), runs.map((run) => callCell(run, name)))), waitsBetween(runs)].filter(Boolean)));
}

/* ---- out of memory ---- */

function refusalItem(refusal, index) {
  const where = `row ${count(refusal.row)} (line ${count(refusal.line)}), ${milliseconds(refusal.time_us / 1000)}: ${bytes(refusal.size)} on stream ${refusal.stream}`
    + (refusal.tag ? `, tag ${refusal.tag}` : "");
  return element("details", index === 0 ? { open: "" } : null, element("summary", null, where), element("pre", null, refusal.text || "(no report)"));
}

function renderMemory() {
  const runs = shownRuns(), failed = runs.filter((run) => run.figures.oom_count > 0), saved = runs.filter((run) => run.figures.recoveries > 0);
  const tell = failed.map((run) => [element("h3", null, runKey(run), run.label), element("p", null,
    `${count(run.figures.oom_count)} of ${count(run.figures.operations)} operations failed for lack of memory; ${count(run.figures.recoveries)} ran the reclaim ladder.`
    + (run.run.refused.length < run.figures.oom_count ? ` The first ${run.run.refused.length}:` : "")), run.run.refused.map(refusalItem)].flat());
  const recovered = saved.filter((run) => !failed.includes(run)).map((run) => `${run.label} ran out of memory ${count(run.figures.recoveries)} times and recovered each time.`);
  fill("memory", "Out of memory", !failed.length && element("p", null, "No request failed for lack of memory."),
    recovered.length > 0 && element("p", null, recovered.join(" ")), tell.flat());
}

/* ---- streams ---- */

function heldCell(run, name) {
  const rows = run.run.map.by_stream.filter((row) => row.stream === name);
  if (!rows.length) return element("td", null, "–");
  const sum = { live: 0, waiting: 0, free: 0 };
  for (const row of rows) for (const kind of Object.keys(sum)) sum[kind] += row[kind];
  return element("td", null, bytes(sum.live + sum.waiting + sum.free), element("br"),
    element("small", null, `${bytes(sum.live)} live, ${bytes(sum.waiting)} waiting`));
}

function renderStreams() {
  const trace = data.traces[state.trace], runs = shownRuns();
  const names = [...new Set(runs.flatMap((run) => run.run.map.by_stream.map((row) => row.stream)))];
  fill("streams", "Streams",
    table(["stream", "device", "allocations", "requested in total", "peak requested", "borrows"], trace.streams.map((stream) => element("tr", null,
      element("th", { scope: "row" }, `stream ${stream.number}`), [stream.device, count(stream.allocs), bytes(stream.bytes), bytes(stream.peak), count(stream.borrows)]
        .map((text) => element("td", null, String(text)))))),
    trace.more_streams > 0 && element("p", { class: "note" }, `${count(trace.more_streams)} streams with smaller requests are left out.`),
    names.length > 0 && element("p", { class: "note" }, "Contents of each stream's chunks at the peak of the strategy:"),
    names.length > 0 && table(["stream", ...runs.map((run) => run.label)], names.map((name) =>
      element("tr", null, element("th", { scope: "row" }, name), runs.map((run) => heldCell(run, name))))));
}
