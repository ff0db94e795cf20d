/* Zooming and panning in plots that share one axis, by dragging, wheel, two fingers or keys. */

/* A group is {extent(): [from, to], view, cursor, selection, draw()}. All canvases of a group have the same handlers. */
function clampView(group, from, to) {
  const [low, high] = group.extent(), least = (high - low) / 1e6;
  let width = Math.min(high - low, Math.max(to - from, least));
  let begin = Math.min(Math.max(from, low), high - width);
  group.view = width >= (high - low) * 0.9999 ? null : [begin, begin + width];
  group.draw();
}

function viewOf(group) {
  return group.view || group.extent();
}

function zoomAround(group, at, factor) {
  const [from, to] = viewOf(group);
  clampView(group, at - (at - from) * factor, at + (to - at) * factor);
}

function pan(group, share) {
  const [from, to] = viewOf(group), by = (to - from) * share;
  clampView(group, from + by, to + by);
}

function placeOf(group, canvas, clientX) {
  const box = canvas.getBoundingClientRect(), [from, to] = viewOf(group);
  const share = (clientX - box.left - margin.left) / (box.width - margin.left - margin.right);
  return from + Math.min(1, Math.max(0, share)) * (to - from);
}

function onKeys(group, event) {
  const [from, to] = viewOf(group), at = group.cursor === null ? (from + to) / 2 : group.cursor, step = (to - from) / 100;
  const moves = {
    ArrowLeft: () => moveCursor(group, at - step, true), ArrowRight: () => moveCursor(group, at + step, true),
    "+": () => zoomAround(group, at, 0.5), "=": () => zoomAround(group, at, 0.5), "-": () => zoomAround(group, at, 2),
    PageUp: () => pan(group, -0.5), PageDown: () => pan(group, 0.5), Home: () => clampView(group, ...group.extent()),
    0: () => clampView(group, ...group.extent()), Escape: () => clampView(group, ...group.extent()),
  };
  if (!moves[event.key] || event.ctrlKey || event.metaKey || event.altKey) return;
  event.preventDefault();
  moves[event.key]();
}

/* If `follow` is true, the view moves along with a cursor that leaves it. */
function moveCursor(group, to, follow) {
  const [low, high] = group.extent(), [from, end] = viewOf(group);
  group.cursor = Math.min(high, Math.max(low, to));
  if (follow && group.cursor < from) pan(group, -0.25);
  else if (follow && group.cursor > end) pan(group, 0.25);
  else group.draw();
}

/* One finger pans, two fingers zoom. */
function onFingers(group, canvas, fingers, before) {
  const [from, to] = before.view, width = canvas.clientWidth - margin.left - margin.right;
  const xs = [...fingers.values()], was = before.xs;
  if (xs.length === 1) {
    const by = (was[0] - xs[0]) / width * (to - from);
    if (group.view) clampView(group, from + by, to + by);
    moveCursor(group, placeOf(group, canvas, xs[0]), false);
    return;
  }
  const stretch = Math.max(20, Math.abs(was[0] - was[1])) / Math.max(20, Math.abs(xs[0] - xs[1]));
  const middle = ((was[0] + was[1]) / 2 - canvas.getBoundingClientRect().left - margin.left) / width, at = from + middle * (to - from);
  const moved = ((was[0] + was[1]) - (xs[0] + xs[1])) / 2 / width * (to - from) * stretch;
  clampView(group, at - (at - from) * stretch + moved, at + (to - at) * stretch + moved);
}

function onPointers(group, canvas) {
  const fingers = new Map();
  let before = null;
  const note = () => { before = { view: viewOf(group), xs: [...fingers.values()] }; };
  canvas.addEventListener("pointerdown", (event) => {
    if (event.pointerType === "mouse" && event.button !== 0) return;
    canvas.setPointerCapture(event.pointerId);
    if (event.pointerType === "mouse") {
      const at = placeOf(group, canvas, event.clientX);
      group.selection = [at, at];
    } else if (fingers.size < 2) {
      fingers.set(event.pointerId, event.clientX);
      note();
    }
  });
  canvas.addEventListener("pointermove", (event) => {
    if (fingers.has(event.pointerId)) {
      fingers.set(event.pointerId, event.clientX);
      onFingers(group, canvas, fingers, before);
      return;
    }
    const at = placeOf(group, canvas, event.clientX);
    if (group.selection) group.selection[1] = at;
    moveCursor(group, at, false);
  });
  const end = (event) => {
    if (fingers.delete(event.pointerId)) { note(); return; }
    const chosen = group.selection, [from, to] = viewOf(group);
    group.selection = null;
    if (chosen && Math.abs(chosen[1] - chosen[0]) > (to - from) * 0.01) clampView(group, Math.min(...chosen), Math.max(...chosen));
    else group.draw();
  };
  canvas.addEventListener("pointerup", end);
  canvas.addEventListener("pointercancel", end);
  canvas.addEventListener("pointerleave", () => { if (!fingers.size && !group.selection) { group.cursor = null; group.draw(); } });
}

/* The wheel zooms only a plot that has the focus, or with Ctrl. Otherwise the page scrolls. */
function onWheel(group, canvas, event) {
  if (!event.ctrlKey && !event.metaKey && document.activeElement !== canvas) return;
  event.preventDefault();
  if (Math.abs(event.deltaX) > Math.abs(event.deltaY)) pan(group, event.deltaX / 1000);
  else zoomAround(group, placeOf(group, canvas, event.clientX), Math.exp(Math.max(-1, Math.min(1, event.deltaY / 300))));
}

function takeHands(group, canvas) {
  canvas.tabIndex = 0;
  canvas.addEventListener("keydown", (event) => onKeys(group, event));
  canvas.addEventListener("wheel", (event) => onWheel(group, canvas, event), { passive: false });
  canvas.addEventListener("dblclick", () => clampView(group, ...group.extent()));
  onPointers(group, canvas);
}
