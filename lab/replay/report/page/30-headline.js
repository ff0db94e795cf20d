/* The verdict in words, and the main figures. */

function served(run) {
  return run.figures.failed_operations === 0;
}

/* Returns the runs in the order of the verdict, best first. */
function ranked(runs) {
  return shownVerdict().order.map((labels) => runs.find((run) => run.label === labels[0]));
}

/* Compares the best run and the next in the figures that the headline rests on. */
function costSentence(a, b) {
  const end = change(b.figures.end_ms, a.figures.end_ms);
  return `${a.label} spends ${milliseconds(deviceTime(a.figures))} in device calls and waits, ${b.label} ${milliseconds(deviceTime(b.figures))}; the program ends at `
    + `${milliseconds(a.figures.end_ms)} and ${milliseconds(b.figures.end_ms)} (${end}). `;
}

/* Splits the verdict into its first sentence and the rest. */
function verdictWords(trace) {
  const text = shownVerdict().text, from = text.startsWith(`${trace.name}: `) ? trace.name.length + 2 : 0;
  const end = text.indexOf(". ", from), first = end < 0 ? text.slice(from) : text.slice(from, end + 1);
  const named = first.startsWith(shownVerdict().order[0][0]);
  return [named ? first : first.charAt(0).toUpperCase() + first.slice(1), end < 0 ? "" : text.slice(end + 2)];
}

/* Explains a strategy's reserved bytes by the contents of its chunks at the peak. */
function whyWords(run) {
  const held = heldAtPeak(run), all = held.live + held.waiting + held.free + held.pool;
  if (!all) return `${run.label} reserves no device memory.`;
  const share = (value) => `${bytes(value)} (${part(value / all)})`, parts = [`${share(held.live)} live`];
  if (held.waiting) parts.push(`${share(held.waiting)} freed but still in use by other streams`);
  parts.push(`${share(held.free)} free`);
  if (held.pool) parts.push(`${share(held.pool)} in a pool of the driver`);
  return `${run.label} holds ${bytes(all)} at its peak: ${parts.join(", ")}.`;
}

function failureWords(figures) {
  const others = figures.failed_operations - figures.oom_count, memory = `${count(figures.oom_count)} requests fail for lack of memory`;
  if (!others) return memory;
  return figures.oom_count ? `${memory}, ${count(others)} operations for other reasons` : `${count(others)} operations fail`;
}

function renderHeadline() {
  const runs = shownRuns(), trace = data.traces[state.trace], order = ranked(runs);
  const failed = runs.filter((run) => !served(run));
  const picker = data.traces.length > 1 && element("div", { class: "tools" }, element("label", null, "Trace",
    choice(data.traces.map((each) => each.name), state.trace, (index) => { state.trace = index; state.view = null; renderAll(); })));
  const [first, rest] = verdictWords(trace), next = shownVerdict().next;
  const told = order.length > 3 ? [order[0], order[order.length - 1]] : order;
  fill("headline", null, picker,
    element("h1", null, first),
    rest && element("p", null, rest),
    failed.length > 0 && element("p", { class: "alarm" }, failed.map((run) =>
      `${run.label}: ${failureWords(run.figures)}.`).join(" ")),
    failed.length > 0 && failed.length < runs.length && element("p", { class: "note" }, "A run with failed requests does less work, so its other figures are those of a smaller "
      + "program."),
    order.length > 1 && element("p", null, costSentence(order[0], order[1])),
    element("ul", null, told.map((run) => element("li", null, whyWords(run)))),
    element("p", { class: "note" }, `${trace.name}: ${count(trace.rows)} rows, ${count(trace.allocs)} allocations, peak requested `
      + `${bytes(runs[0].figures.peak_requested_bytes)}. Device: ${runs[0].figures.device}, of which a strategy may use `
      + `${bytes(runs[0].figures.capacity_bytes)}.`
      + (runs.some((run) => run.figures.modelled) ? " Some figures rest on a model of the driver's pools, or of a card without measurements." : "")),
    next && element("p", { class: "note" }, "To see its memory: ", element("code", null, next)));
  document.title = `${trace.name} – Strata report`;
}

/* ---- the figures ---- */

/* Measures without a value in any run are left out. */
const measures = [
  { name: "peak_device_used_bytes", title: "device memory, peak", best: true },
  { name: "peak_reserved_bytes", title: "reserved, peak", bar: true, best: true },
  { name: "over", title: "over requested", value: (f) => f.peak_reserved_bytes / f.peak_requested_bytes, text: times },
  { name: "fragmentation", title: "free or waiting at the peak" },
  { name: "device", title: "device calls and waits", value: deviceTime, text: milliseconds, best: true },
  { name: "device_calls", title: "device calls" },
  { name: "stall_ms", title: "waits" },
  { name: "end_ms", title: "program ends", best: true },
  { name: "deferred_peak_bytes", title: "deferred, peak" },
  { name: "oom_count", title: "out of memory" },
  { name: "pinned_requested_bytes", title: "pinned requested, peak" },
  { name: "pinned_reserved_bytes", title: "pinned reserved, peak" },
  { name: "host_requested_bytes", title: "host requested, peak" },
  { name: "host_reserved_bytes", title: "host reserved, peak" },
  { name: "smallest_device_bytes", title: "minimum capacity", best: true },
];

function measured(measure, figures) {
  return measure.value ? measure.value(figures) : figures[measure.name];
}

function measureText(measure, figures) {
  const field = data.fields.find((each) => each.name === measure.name);
  return measure.text ? measure.text(measured(measure, figures)) : fieldText(field.kind, figures[measure.name]);
}

function measureCell(measure, run, runs) {
  const value = measured(measure, run.figures);
  const values = runs.filter(served).map((each) => measured(measure, each.figures)).filter((each) => each !== null);
  const least = Math.min(...values), best = measure.best && runs.length > 1 && served(run) && value === least && values.some((v) => v > least);
  const cell = element("td", measure.bar ? { class: "bar" } : null, element("span", best ? { class: "best" } : null, measureText(measure, run.figures)));
  if (measure.name === "oom_count" && value > 0) cell.className = "alarm";
  if (!measure.bar) return cell;
  const most = Math.max(...runs.map((each) => measured(measure, each.figures)), 1), bar = element("i");
  bar.style.width = `${100 * value / most}%`;
  bar.style.background = `var(${run.color})`;
  cell.append(element("span", { class: "track", "aria-hidden": "true" }, bar));
  return cell;
}

function renderFigures() {
  const runs = shownRuns();
  const shown = measures.filter((measure) => runs.some((run) => measured(measure, run.figures) !== null));
  fill("figures", "Main figures",
    table(["strategy", ...shown.map((measure) => measure.title)], runs.map((run) => element("tr", null,
      element("th", { scope: "row" }, runKey(run), element("span", { class: "name" }, run.label)),
      shown.map((measure) => measureCell(measure, run, runs))))),
    element("p", { class: "note" }, "✓ marks the best of the strategies that serve every request. A program that ends later "
      + "waited for its strategy. "), data.traces.length > 1 && everyTrace());
}

/* Builds one row per trace with the reserved over the requested bytes of each strategy. */
function everyTrace() {
  const labels = data.figures.runs.slice(0, data.candidates).map((figures) => figures.label);
  return element("details", null, element("summary", null, `All ${data.traces.length} traces: reserved over requested, at the peaks`),
    table(["trace", ...labels], data.traces.map((trace, at) => element("tr", null, element("th", { scope: "row" }, trace.name),
      labels.map((_, i) => {
        const figures = data.figures.runs[at * data.candidates + i];
        return element("td", figures.failed_operations ? { class: "alarm" } : null,
          times(figures.peak_reserved_bytes / figures.peak_requested_bytes));
      })))));
}

/* Lists every field of the comparison with its meaning. */
function renderFields() {
  const runs = shownRuns();
  fill("fields", "Every field", element("details", null, element("summary", null, "All figures of the comparison and their meaning"),
    table(["field", ...runs.map((run) => run.label), "meaning"], data.fields.filter((field) => field.name !== "trace").map((field) => element("tr", null,
      element("th", { scope: "row" }, field.name),
      runs.map((run) => element("td", null, fieldText(field.kind, run.figures[field.name]))),
      element("td", { class: "left" }, element("small", null, field.meaning)))))));
}

function choice(names, chosen, take) {
  return element("select", { onchange: (event) => take(event.target.selectedIndex) },
    names.map((name, i) => element("option", i === chosen ? { selected: "" } : null, name)));
}
