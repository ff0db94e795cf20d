/* Maps of each strategy's chunks at the peak of reserved memory. */

const states = [
  { name: "free", color: "--free" }, { name: "live", color: "--live" }, { name: "waiting", color: "--waiting" }, { name: "merged" },
];
const lineHeight = 15;
const lines = { most: 14 };

/* Lays the rows of a map out as pieces [line, x, width, color, chunk, row]. A chunk begins with an edge of two pixels. */
function layOut(map, width, scale) {
  const pieces = [];
  let at = 0;
  const put = (size, name, chunk, row) => {
    let left = size / scale;
    while (left > 1e-9) {
      const line = Math.floor(at / width + 1e-9), x = at - line * width, piece = Math.min(left, width - x);
      pieces.push({ line, x, width: piece, color: name, chunk, row });
      at += piece;
      left -= piece;
      if (piece <= 0) break;
    }
  };
  map.chunks.forEach((chunk) => {
    put(2 * scale, "--edge", chunk, null);
    for (const row of chunk.rows) {
      if (row[1] !== 3) { put(row[0], states[row[1]].color, chunk, row); continue; }
      put(row[3], "--live", chunk, row);
      put(row[4], "--waiting", chunk, row);
      put(row[2], "--free", chunk, row);
    }
  });
  return { pieces, lines: Math.ceil(at / width - 1e-9) || 1 };
}

function mapBytes(map) {
  return map.chunks.reduce((sum, chunk) => sum + chunk.rows.reduce((inner, row) => inner + row[0], 0), 0);
}

/* Returns one scale for all strategies, so that equal areas are equal bytes. */
function mapScale(runs, width) {
  const most = Math.max(1, ...runs.map((run) => mapBytes(run.run.map))), chunks = Math.max(...runs.map((run) => run.run.map.chunks.length));
  return most / Math.max(width, width * lines.most - 2 * Math.min(chunks, width * 4));
}

function drawMap(map) {
  const canvas = map.canvas, width = Math.max(100, canvas.clientWidth), ratio = Math.min(3, window.devicePixelRatio || 1);
  map.laid = layOut(map.run.run.map, width, mapScale(visibleRuns(), width));
  canvas.style.height = `${map.laid.lines * lineHeight}px`;
  canvas.width = Math.round(width * ratio);
  canvas.height = Math.round(map.laid.lines * lineHeight * ratio);
  const context = canvas.getContext("2d"), colors = {};
  context.scale(ratio, ratio);
  for (const piece of map.laid.pieces) {
    context.fillStyle = colors[piece.color] = colors[piece.color] || color(piece.color);
    context.fillRect(piece.x, piece.line * lineHeight, Math.max(piece.width, 0.4), lineHeight - 2);
  }
  context.fillStyle = color("--paper");
  for (const piece of map.laid.pieces)
    if (piece.row && piece.row[1] === 1 && piece.width > 3) context.fillRect(piece.x, piece.line * lineHeight, 0.7, lineHeight - 2);
  if (map.chosen) outline(context, map);
}

function outline(context, map) {
  context.strokeStyle = color("--ink");
  context.lineWidth = 2;
  for (const piece of map.laid.pieces)
    if (piece.row === map.chosen.row) context.strokeRect(piece.x, piece.line * lineHeight, Math.max(2, piece.width), lineHeight - 2);
}

/* ---- the text of a row ---- */

function lifeWords(map, row) {
  const [, , requested, born, died, stream, tag] = row;
  const parts = [`requested ${bytes(requested)}`, `stream ${stream}`, `allocated at row ${count(born)}`, died ? `freed at row ${count(died)}` : "never freed"];
  if (tag) parts.push(`tag ${map.tags[tag]}`);
  return parts.join(", ");
}

function rowWords(map, { chunk, row }) {
  const size = chunk.rows.reduce((sum, each) => sum + each[0], 0), where = ` In a chunk of ${bytes(size)}, ${chunk.place}, ${chunk.stream}.`;
  if (row[1] === 3)
    return [element("b", null, `${count(row[5])} blocks of ${bytes(row[0])}`), ` live ${bytes(row[3])}, waiting ${bytes(row[4])}, free ${bytes(row[2])}.${where}`];
  const what = states[row[1]].name, words = row.length > 2 ? `, ${lifeWords(map, row)}` : row[1] === 2 ? " for other streams" : "";
  return [element("b", null, `${bytes(row[0])} ${what}`), `${words}.${where}`];
}

function choose(map, piece) {
  map.chosen = piece && piece.row ? piece : null;
  map.readout.replaceChildren(...(map.chosen ? rowWords(map.run.run.map, map.chosen) : [mapWords(map.run)]));
  drawMap(map);
}

function mapWords(run) {
  const held = heldAtPeak(run), map = run.run.map, chunks = map.chunks.length + map.rest.chunks;
  const rest = map.rest.chunks ? ` ${count(map.rest.chunks)} chunks below ${bytes(map.scale)} are not drawn: ${bytes(map.rest.live)} live, `
    + `${bytes(map.rest.waiting)} waiting, ${bytes(map.rest.free)} free.` : "";
  const together = map.scale > 1 ? ` Neighbors below ${bytes(map.scale)} are merged.` : "";
  return `After row ${count(map.row)}: ${bytes(held.live + held.waiting + held.free)} in ${count(chunks)} chunk${chunks === 1 ? "" : "s"}, ${bytes(held.live)} live, `
    + `${bytes(held.waiting)} waiting, ${bytes(held.free)} free.${rest}${together}`;
}

function pieceAt(map, event) {
  const box = map.canvas.getBoundingClientRect(), line = Math.floor((event.clientY - box.top) / lineHeight), x = event.clientX - box.left;
  let found = null;
  for (const piece of map.laid.pieces) {
    if (piece.line === line && piece.x <= x + 0.5) found = piece;
    if (piece.line > line) break;
  }
  return found;
}

/* The left and right keys move from block to block. */
function onMapKey(map, event) {
  const by = { ArrowLeft: -1, ArrowRight: 1 }[event.key], pieces = map.laid.pieces.filter((piece) => piece.row);
  if (event.key === "Escape") choose(map, null);
  if (!by || !pieces.length) return;
  event.preventDefault();
  let at = map.chosen ? pieces.findIndex((piece) => piece.row === map.chosen.row) : by > 0 ? -1 : pieces.length;
  const row = map.chosen && map.chosen.row;
  do at += by; while (pieces[at] && pieces[at].row === row);
  if (pieces[at]) choose(map, pieces[at]);
}

let maps = [];

function makeMap(run) {
  const map = { run, chosen: null };
  map.canvas = element("canvas", { tabindex: "0", role: "img", "aria-label": `Blocks of ${run.label}. ${mapWords(run)} Arrow keys move from block to block.` });
  map.readout = element("div", { class: "readout", "aria-live": "polite" }, mapWords(run));
  map.canvas.addEventListener("pointermove", (event) => choose(map, pieceAt(map, event)));
  map.canvas.addEventListener("pointerdown", (event) => choose(map, pieceAt(map, event)));
  map.canvas.addEventListener("pointerleave", () => choose(map, null));
  map.canvas.addEventListener("keydown", (event) => onMapKey(map, event));
  return map;
}

function renderBlocks() {
  maps = visibleRuns().filter((run) => run.run.map.row > 0).map(makeMap);
  const legend = states.filter((each) => each.color).map((each) => element("span", null, key(each.color),
    { live: "live", waiting: "freed but still in use by other streams", free: "free" }[each.name]));
  fill("blocks", "Memory at the peak",
    element("p", { class: "note" }, "The chunks of each strategy at its first peak of reserved memory, ordered by address. "
      + "All maps have the same scale. Point at a block to see its details."),
    element("div", { class: "legend" }, legend, element("span", null, key("--edge"), "a chunk begins")),
    element("div", { class: "maps" }, maps.map((map) => element("div", { class: "map" },
      element("h3", null, runKey(map.run), map.run.label), map.canvas, map.readout))));
  maps.forEach(drawMap);
}
