/* What the comparison says, in words, and the figures that matter. */

function served(run) {
  return run.figures.failed_operations === 0;
}

/* Among those that serve everything, if any does: the least reserved first. */
function ranked(runs) {
  const whole = runs.filter(served);
  return (whole.length ? whole : runs).slice().sort((a, b) => a.figures.peak_reserved_bytes - b.figures.peak_reserved_bytes);
}

function costWords(a, b) {
  const own = deviceTime(a.figures), other = deviceTime(b.figures);
  if (own === other) return "at the same device time";
  return other && own ? `at ${times(own / other)} the device time` : `with ${milliseconds(own)} of device time to ${milliseconds(other)}`;
}

/* What the headline rests on, of the best and the next. */
function costSentence(a, b) {
  const end = change(b.figures.end_ms, a.figures.end_ms);
  return `${a.label} spends ${milliseconds(deviceTime(a.figures))} in device calls and waits, ${b.label} ${milliseconds(deviceTime(b.figures))}; the program ends at `
    + `${milliseconds(a.figures.end_ms)} and ${milliseconds(b.figures.end_ms)} (${end}). `;
}

function headlineWords(runs) {
  const order = ranked(runs), best = order[0], next = order[1];
  const reserved = bytes(best.figures.peak_reserved_bytes);
  if (runs.length === 1) {
    const ratio = best.figures.peak_reserved_bytes / best.figures.peak_requested_bytes;
    return `${best.label} reserves ${reserved} for a program that asks for ${bytes(best.figures.peak_requested_bytes)} (${times(ratio)})`;
  }
  if (!runs.some(served)) {
    const fewest = runs.slice().sort((a, b) => a.figures.failed_operations - b.figures.failed_operations)[0];
    return `Every strategy runs out of memory; ${fewest.label} fails least often, ${count(fewest.figures.failed_operations)} times`;
  }
  if (!next) return `Only ${best.label} serves every request; it reserves ${reserved}`;
  const other = bytes(next.figures.peak_reserved_bytes);
  if (best.figures.peak_reserved_bytes === next.figures.peak_reserved_bytes)
    return `${best.label} and ${next.label} reserve the same, ${reserved}, ${best.label} ${costWords(best, next)}`;
  const less = change(next.figures.peak_reserved_bytes, best.figures.peak_reserved_bytes);
  return runs.length === 2
    ? `${best.label} reserves ${reserved} where ${next.label} reserves ${other} (${less}), ${costWords(best, next)}`
    : `${best.label} reserves least: ${reserved}; the next is ${next.label} with ${other} (${less}), ${costWords(best, next)}`;
}

/* Why a strategy reserves what it does: what its chunks hold at the peak. */
function whyWords(run) {
  const held = heldAtPeak(run), all = held.live + held.waiting + held.free + held.pool;
  if (!all) return `${run.label} reserves nothing of a device.`;
  const share = (value) => `${bytes(value)} (${part(value / all)})`, parts = [`${share(held.live)} live`];
  if (held.waiting) parts.push(`${share(held.waiting)} freed and waiting for other streams`);
  parts.push(`${share(held.free)} free`);
  if (held.pool) parts.push(`${share(held.pool)} in a pool of the driver`);
  return `${run.label} holds ${bytes(all)} where it reserves most: ${parts.join(", ")}.`;
}

function failureWords(figures) {
  const others = figures.failed_operations - figures.oom_count, memory = `${count(figures.oom_count)} requests fail for memory`;
  if (!others) return memory;
  return figures.oom_count ? `${memory}, ${count(others)} operations for other reasons` : `${count(others)} operations fail`;
}

function renderHeadline() {
  const runs = shownRuns(), trace = data.traces[state.trace], order = ranked(runs);
  const failed = runs.filter((run) => !served(run));
  const picker = data.traces.length > 1 && element("div", { class: "tools" }, element("label", null, "Trace",
    choice(data.traces.map((each) => each.name), state.trace, (index) => { state.trace = index; state.view = null; renderAll(); })));
  const told = order.length > 3 ? [order[0], order[order.length - 1]] : order;
  fill("headline", null, picker,
    element("h1", null, headlineWords(runs)),
    failed.length > 0 && element("p", { class: "alarm" }, failed.map((run) =>
      `${run.label}: ${failureWords(run.figures)}.`).join(" ")),
    failed.length > 0 && failed.length < runs.length && element("p", { class: "note" }, "A run that refuses requests does less: its other figures are those of a smaller "
      + "program."),
    order.length > 1 && element("p", null, costSentence(order[0], order[1]) + cheapestWords(order)),
    element("ul", null, told.map((run) => element("li", null, whyWords(run)))),
    element("p", { class: "note" }, `${trace.name}: ${count(trace.rows)} rows, ${count(trace.allocs)} allocations, at most `
      + `${bytes(runs[0].figures.peak_requested_bytes)} asked for at once. On ${runs[0].figures.device}, of which a strategy may use `
      + `${bytes(runs[0].figures.capacity_bytes)}.`
      + (runs.some((run) => run.figures.modelled) ? " Some figures rest on a model of the driver's pools, or of a card that nobody measured." : "")));
  document.title = `${trace.name} – Strata report`;
}

/* Of many, the one that costs least, if it is another. */
function cheapestWords(order) {
  if (order.length < 3 || order.some((run) => !served(run))) return "";
  const cheapest = order.slice().sort((a, b) => deviceTime(a.figures) - deviceTime(b.figures))[0];
  return cheapest === order[0] ? "" : ` ${cheapest.label} has the least device time, ${milliseconds(deviceTime(cheapest.figures))}, and reserves `
    + `${bytes(cheapest.figures.peak_reserved_bytes)}.`;
}

/* ---- the figures ---- */

const measures = [
  { name: "peak_reserved_bytes", title: "reserved, peak", bar: true, best: true },
  { name: "over", title: "over requested", value: (f) => f.peak_reserved_bytes / f.peak_requested_bytes, text: times },
  { name: "fragmentation", title: "free or waiting there" },
  { name: "device", title: "device calls and waits", value: deviceTime, text: milliseconds, best: true },
  { name: "device_calls", title: "device calls" },
  { name: "stall_ms", title: "waits" },
  { name: "end_ms", title: "program ends", best: true },
  { name: "deferred_peak_bytes", title: "deferred, peak" },
  { name: "oom_count", title: "out of memory" },
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
  const values = runs.filter(served).map((each) => measured(measure, each.figures));
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
  fill("figures", "The figures that matter",
    table(["strategy", ...measures.map((measure) => measure.title)], runs.map((run) => element("tr", null,
      element("th", { scope: "row" }, runKey(run), element("span", { class: "name" }, run.label)),
      measures.map((measure) => measureCell(measure, run, runs))))),
    element("p", { class: "note" }, "✓ the best of those that serve every request. A program that ends later waited for its "
      + "strategy. "), data.traces.length > 1 && everyTrace());
}

/* One row a trace: what each strategy reserves, over what is asked for. */
function everyTrace() {
  const labels = shownRuns().map((run) => run.label);
  return element("details", null, element("summary", null, `All ${data.traces.length} traces: reserved over requested, at the peaks`),
    table(["trace", ...labels], data.traces.map((trace, at) => element("tr", null, element("th", { scope: "row" }, trace.name),
      labels.map((_, i) => {
        const figures = data.figures.runs[at * data.contenders + i];
        return element("td", figures.failed_operations ? { class: "alarm" } : null,
          times(figures.peak_reserved_bytes / figures.peak_requested_bytes));
      })))));
}

/* Every field of the comparison, with what it means. */
function renderFields() {
  const runs = shownRuns();
  fill("fields", "Every field", element("details", null, element("summary", null, "All figures of the comparison, and what each means"),
    table(["field", ...runs.map((run) => run.label), "meaning"], data.fields.filter((field) => field.name !== "trace").map((field) => element("tr", null,
      element("th", { scope: "row" }, field.name),
      runs.map((run) => element("td", null, fieldText(field.kind, run.figures[field.name]))),
      element("td", { class: "left" }, element("small", null, field.meaning)))))));
}

function choice(names, chosen, take) {
  return element("select", { onchange: (event) => take(event.target.selectedIndex) },
    names.map((name, i) => element("option", i === chosen ? { selected: "" } : null, name)));
}
