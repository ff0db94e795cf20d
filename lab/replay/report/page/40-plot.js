/* A plot of curves over one axis. Each pixel shows the least and the most of its range, so no peak is lost at any zoom. */

const margin = { left: 66, right: 14, top: 12, bottom: 24 };

/* Fills `lo` and `hi` for the pixels that steps [at[i], at[i + 1]) touch. If `replace` is true, earlier
 * values there are dropped first. */
function spread(into, at, low, high, end, view, replace) {
  const width = into.lo.length, scale = width / (view[1] - view[0]);
  let first = 0;
  for (let step = at.length; step > 0; step = Math.floor(step / 2))
    while (first + step < at.length && at[first + step] <= view[0]) first += step;
  const pixel = (x) => Math.floor((x - view[0]) * scale);
  if (replace && at.length) {
    const from = Math.max(0, pixel(at[0]) + 1), to = Math.min(width, pixel(end));
    for (let p = from; p < to; p++) { into.lo[p] = Infinity; into.hi[p] = -Infinity; }
  }
  for (let i = first; i < at.length && at[i] < view[1]; i++) {
    const next = i + 1 < at.length ? at[i + 1] : end;
    const from = Math.max(0, pixel(at[i])), to = Math.min(width - 1, Math.max(from, Math.ceil((next - view[0]) * scale) - 1));
    for (let p = from; p <= to; p++) {
      if (low[i] < into.lo[p]) into.lo[p] = low[i];
      if (high[i] > into.hi[p]) into.hi[p] = high[i];
    }
  }
}

function envelope(line, view, width) {
  const into = { lo: new Float64Array(width).fill(Infinity), hi: new Float64Array(width).fill(-Infinity) };
  spread(into, line.at, line.low, line.high, line.end, view, false);
  for (const finer of line.around || []) spread(into, finer.at, finer.values, finer.values, finer.at[finer.at.length - 1], view, true);
  return into;
}

function drawLine(context, line, box, y) {
  const { lo, hi } = line.pixels, path = (values, backwards) => {
    let open = false;
    for (let i = 0; i < values.length; i++) {
      const p = backwards ? values.length - 1 - i : i;
      if (!isFinite(values[p])) continue;
      const x = box.left + p * box.step;
      if (open || backwards) context.lineTo(x, y(values[p]));
      else context.moveTo(x, y(values[p]));
      open = true;
    }
  };
  context.strokeStyle = context.fillStyle = color(line.color);
  context.globalAlpha = 0.35;
  context.beginPath();
  path(hi, false);
  path(lo, true);
  context.fill();
  context.globalAlpha = 1;
  context.lineWidth = line.width;
  context.setLineDash(line.dash || []);
  context.lineJoin = "round";
  context.beginPath();
  path(hi, false);
  context.stroke();
  if (line.both) {
    context.beginPath();
    path(lo, false);
    context.stroke();
  }
  context.setLineDash([]);
}

/* ---- axes ---- */

/* Returns a step for about `wanted` ticks: 1, 2 or 5 times a power of ten. */
function niceStep(range, wanted) {
  const rough = range / wanted, power = 10 ** Math.floor(Math.log10(rough));
  return [1, 2, 5, 10].map((times) => times * power).find((step) => step >= rough) || 10 * power;
}

function byteTicks(low, high) {
  const most = Math.max(Math.abs(low), Math.abs(high), 1), unit = 1024 ** Math.floor(Math.log(most) / Math.log(1024));
  return niceStep((high - low) / unit, 6) * unit;
}

function axisText(axis, value, step) {
  if (axis === "row") return count(value);
  const seconds = step >= 1e6;
  const decimals = Math.max(0, -Math.floor(Math.log10(step / (seconds ? 1e6 : 1000)) + 1e-9));
  return `${(value / (seconds ? 1e6 : 1000)).toFixed(Math.min(decimals, 3))} ${seconds ? "s" : "ms"}`;
}

function ticks(low, high, step) {
  const values = [];
  for (let value = Math.ceil(low / step - 1e-9) * step; value <= high + step * 1e-6; value += step) values.push(value);
  return values;
}

function drawAxes(context, plot, box, y) {
  const { range, view } = plot, stepY = plot.tickStep(range[0], range[1]), stepX = niceStep(view[1] - view[0], Math.max(3, box.width / 110));
  context.font = "12px system-ui, sans-serif";
  context.fillStyle = color("--soft");
  context.strokeStyle = color("--line");
  context.lineWidth = 1;
  context.textAlign = "right";
  context.textBaseline = "middle";
  for (const value of ticks(range[0], range[1], stepY)) {
    context.beginPath();
    context.moveTo(box.left, Math.round(y(value)) + 0.5);
    context.lineTo(box.left + box.width, Math.round(y(value)) + 0.5);
    context.stroke();
    context.fillText(plot.tickText(value, stepY), box.left - 7, y(value));
  }
  context.textBaseline = "top";
  context.textAlign = "center";
  for (const value of ticks(view[0], view[1], stepX)) {
    const x = box.left + (value - view[0]) / (view[1] - view[0]) * box.width, text = axisText(plot.axis, value, stepX);
    const half = context.measureText(text).width / 2;
    context.fillText(text, Math.min(box.left + box.width - half + margin.right - 2, Math.max(x, half)), box.top + box.height + 6);
    context.beginPath();
    context.moveTo(Math.round(x) + 0.5, box.top + box.height);
    context.lineTo(Math.round(x) + 0.5, box.top + box.height + 4);
    context.stroke();
  }
}

/* ---- the whole plot ---- */

/* Draws a plot {axis, view, lines, tickStep, tickText, base, marks, rules, cursor, selection}. Returns the
 * box of its curves. */
function drawPlot(canvas, plot) {
  const width = Math.max(120, canvas.clientWidth), height = canvas.clientHeight, ratio = Math.min(3, window.devicePixelRatio || 1);
  canvas.width = Math.round(width * ratio);
  canvas.height = Math.round(height * ratio);
  const context = canvas.getContext("2d");
  context.scale(ratio, ratio);
  const box = { left: margin.left, top: margin.top, width: width - margin.left - margin.right, height: height - margin.top - margin.bottom };
  const pixels = Math.max(1, Math.round(box.width * ratio));
  box.step = box.width / pixels;
  let low = 0, high = 0;
  for (const line of plot.lines) {
    line.pixels = envelope(line, plot.view, pixels);
    for (let p = 0; p < pixels; p++) {
      if (line.pixels.hi[p] > high) high = line.pixels.hi[p];
      if (line.pixels.lo[p] < low) low = line.pixels.lo[p];
    }
  }
  if (high === low) high = low + 1;
  plot.range = [low - (low < 0 ? (high - low) * 0.06 : 0), high + (high - low) * 0.06];
  const y = (value) => box.top + box.height * (1 - (value - plot.range[0]) / (plot.range[1] - plot.range[0]));
  drawAxes(context, plot, box, y);
  context.save();
  context.beginPath();
  context.rect(box.left, 0, box.width, box.top + box.height + 1);
  context.clip();
  for (const rule of plot.rules || []) drawRule(context, rule, box, y, plot.range);
  for (const line of plot.lines) drawLine(context, line, box, y);
  const x = (value) => box.left + (value - plot.view[0]) / (plot.view[1] - plot.view[0]) * box.width;
  for (const mark of plot.marks || []) drawMark(context, mark, x, y, box);
  drawCursor(context, plot, x, box);
  context.restore();
  return box;
}

/* Draws a line at a value that matters, such as the capacity. */
function drawRule(context, rule, box, y, range) {
  if (rule.value > range[1]) return;
  context.strokeStyle = context.fillStyle = color("--alarm");
  context.setLineDash([6, 4]);
  context.beginPath();
  context.moveTo(box.left, y(rule.value));
  context.lineTo(box.left + box.width, y(rule.value));
  context.stroke();
  context.setLineDash([]);
  context.textAlign = "right";
  context.textBaseline = "bottom";
  context.fillText(rule.text, box.left + box.width - 4, y(rule.value) - 2);
}

/* Marks a peak by a ring on the curve, and a refusal by a cross at the top. */
function drawMark(context, mark, x, y, box) {
  context.strokeStyle = color(mark.color);
  context.lineWidth = 2;
  context.beginPath();
  if (mark.value === undefined) {
    context.moveTo(x(mark.at) - 4, box.top - 4);
    context.lineTo(x(mark.at) + 4, box.top + 4);
    context.moveTo(x(mark.at) + 4, box.top - 4);
    context.lineTo(x(mark.at) - 4, box.top + 4);
  } else {
    context.arc(x(mark.at), y(mark.value), 4.5, 0, 2 * Math.PI);
  }
  context.stroke();
}

function drawCursor(context, plot, x, box) {
  if (plot.selection) {
    const [from, to] = plot.selection.map(x);
    context.globalAlpha = 0.18;
    context.fillStyle = color("--accent");
    context.fillRect(Math.min(from, to), box.top, Math.abs(to - from), box.height);
    context.globalAlpha = 1;
  }
  if (plot.cursor === null || plot.cursor === undefined) return;
  context.strokeStyle = color("--strong");
  context.lineWidth = 1;
  context.beginPath();
  context.moveTo(Math.round(x(plot.cursor)) + 0.5, box.top);
  context.lineTo(Math.round(x(plot.cursor)) + 0.5, box.top + box.height);
  context.stroke();
}
