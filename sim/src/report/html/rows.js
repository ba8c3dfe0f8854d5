// The timeline: the critical path, engines and queues with their stalls, rates.

const AXIS = 22, PATH = 12, STALL = 6, GAP = 9, RATE = 30, CORE = 18;
const nameWidth = () => narrow.matches ? 78 : 104;
let bands = [], pathList = null, hover = null;

/** What is drawn from the top: `kind`, place and height. */
function layout() {
  const cores = new Set(data.rows.map((r) => r.core)).size;
  let y = AXIS, core = -1;
  bands = [];
  const add = (band, height) => { bands.push({ ...band, y, height }); y += height; };
  pathList = spanList(P.event, P.from, P.to);
  add({ kind: "path" }, PATH + GAP);
  data.rows.forEach((row, r) => {
    if (!row.engine && !row.count) return;
    if (cores > 1 && row.core !== core) { core = row.core; add({ kind: "core", core }, CORE); }
    const lanes = Math.max(1, lists[r].lanes.length), lane = !row.count ? 5 : lanes <= 3 ? 18 : Math.max(4, Math.min(14, Math.floor(130 / lanes)));
    add({ kind: "row", r, lane }, lanes * lane + STALL + GAP);
  });
  counters.forEach((counter) => add({ kind: "rate", counter }, RATE + GAP));
  return y;
}
const bandOf = (r) => bands.find((b) => b.kind === "row" && b.r === r);

function drawTimeline() {
  const height = layout(), f = frame(byId("timeline"), height, state, nameWidth()), { g } = f;
  const fade = css("--fade");
  let drawn = 0;
  drawAxis(f, 0, height);
  for (const band of bands) {
    g.save();
    g.beginPath(); g.rect(f.left, band.y, f.width - f.left, band.height); g.clip();
    if (band.kind === "path") drawn += drawSpans(f, pathList, band.y + 1, PATH, (i) => opcodeColor(C.opcode[E.statement[P.event[i]]]), fade);
    if (band.kind === "row") drawn += drawRow(f, band, fade);
    if (band.kind === "rate") { g.fillStyle = css("--grid"); g.fillRect(f.left, band.y + RATE, f.width, 1); drawRate(f, band.counter.rate, band.y + 1, RATE, band.counter.top, css(band.counter.color)); }
    g.restore();
    drawName(f, band);
  }
  outlines(f);
  arrow(f);
  if (state.range) drawRange(f, height);
  document.body.dataset.drawn = String(drawn);
}

function drawRow(f, band, fade) {
  const { g } = f, row = lists[band.r], box = band.lane > 8 ? band.lane - 3 : band.lane - 1;
  let drawn = 0;
  g.fillStyle = css("--grid"); g.fillRect(f.left, band.y + band.height - GAP / 2, f.width - f.left, 1);
  row.lanes.forEach((list, n) => {
    const y = band.y + 2 + n * band.lane, color = (i) => opcodeColor(C.opcode[E.statement[list.id[i]]]);
    if (!list.moving) drawn += drawSpans(f, list, y, box, color, fade);
    else {
      // The whole stay as a line, the bytes on the move as a box.
      const line = Math.max(1, Math.round(box / 5));
      drawn += drawSpans(f, list, y + (box - line) / 2, line, color, fade);
      drawSpans(f, list.moving, y, box, color, fade);
    }
    drawNames(f, list.moving || list, y, box, (i) => labelOf(list.id[i]));
  });
  const cause = (i) => causeColor(data.kinds[W.cause[row.firstStall + i]]);
  drawSpans(f, row.stalls, band.y + Math.max(1, row.lanes.length) * band.lane, STALL, cause, fade);
  return drawn;
}

function drawName(f, band) {
  const { g } = f, dim = css("--dim"), main = css("--text");
  g.save();
  g.beginPath(); g.rect(0, band.y, f.left - 4, band.height); g.clip();
  const size = narrow.matches ? 10.5 : 12;
  if (band.kind === "path") text(g, "critical path", 0, band.y + PATH / 2 + 1, dim, size - 1);
  if (band.kind === "core") text(g, `core ${band.core}`, 0, band.y + CORE / 2, main, size);
  if (band.kind === "row") {
    const { name, count, active_percent: active } = data.rows[band.r];
    text(g, name, 0, band.y + (count ? 10 : 9), count ? main : dim, size);
    if (count) text(g, `${active.toFixed(1)}%`, 0, band.y + 24, dim, 10);
  }
  if (band.kind === "rate") {
    text(g, band.counter.name, 0, band.y + 9, main, size);
    text(g, `to ${band.counter.show(band.counter.top)}`, 0, band.y + 23, dim, narrow.matches ? 9 : 10);
  }
  g.restore();
}

/** Where an event is drawn: on its queue if it is a transfer. */
function boxOf(f, event) {
  const band = bandOf(rowOf[event]);
  if (!band) return null;
  for (const [n, list] of lists[band.r].lanes.entries()) {
    // Spans are in order of time, so the event is near its start.
    const start = transferOf[event] >= 0 ? X.issue[transferOf[event]] : E.start[event];
    for (let i = above(list.start, start) - 1; i >= 0 && list.start[i] === start; i--) {
      if (list.id[i] === event) return { x: f.x(start), y: band.y + 1 + n * band.lane, width: Math.max(3, (list.end[i] - start) * f.k), height: band.lane - (band.lane > 8 ? 1 : -1) };
    }
  }
  return null;
}
function outlines(f) {
  const { g } = f;
  g.save();
  g.beginPath(); g.rect(f.left, 0, f.width, f.height); g.clip();
  for (const [event, color] of [[hover?.event ?? -1, css("--accent")], [state.event, css("--text")]]) {
    const box = event >= 0 ? boxOf(f, event) : null;
    if (!box) continue;
    g.strokeStyle = color; g.lineWidth = 2;
    g.strokeRect(box.x, box.y, box.width, box.height);
  }
  g.restore();
}
/** From what the selected event waited for to the event. */
function arrow(f) {
  const i = state.event, from = i >= 0 ? E.from[i] : -1, a = from >= 0 ? boxOf(f, from) : null, b = from >= 0 ? boxOf(f, i) : null;
  if (!a || !b) return;
  const { g } = f, x0 = f.x(E.done[from]), y0 = a.y + a.height / 2, x1 = f.x(E.start[i]), y1 = b.y + b.height / 2;
  g.save();
  g.beginPath(); g.rect(f.left, 0, f.width, f.height); g.clip();
  g.strokeStyle = g.fillStyle = css("--text"); g.lineWidth = 1.5;
  g.beginPath(); g.moveTo(x0, y0); g.bezierCurveTo(x0 + 24, y0, x1 - 24, y1, x1, y1); g.stroke();
  g.beginPath(); g.moveTo(x1, y1); g.lineTo(x1 - 7, y1 - 4); g.lineTo(x1 - 7, y1 + 4); g.fill();
  g.restore();
}
/** The selected range, with its length. */
function drawRange(f, height, named = true) {
  const { g } = f, [from, to] = state.range, a = Math.max(f.left, f.x(from)), b = Math.min(f.width, f.x(to));
  if (b < f.left || a > f.width) return;
  g.fillStyle = css("--range"); g.fillRect(a, 0, b - a, height);
  g.fillStyle = css("--accent"); g.fillRect(a, 0, 1, height); g.fillRect(b - 1, 0, 1, height);
  if (!named) return;
  const label = time(to - from), wide = label.length * 6 + 12, x = Math.min(Math.max(f.left + wide / 2, (a + b) / 2), f.width - wide / 2);
  g.fillRect(x - wide / 2, 1, wide, 16);
  text(g, label, x, 9.5, css("--on-accent"), 11, "center");
}

/** What lies at a place of the timeline: an event, a stall, a rate. */
function hitTimeline(x, y) {
  const f = frameOf("timeline");
  if (x < f.left) return null;
  const t = f.from + (x - f.left) / f.k, slack = 3 / f.k, band = bands.find((b) => y >= b.y && y < b.y + b.height);
  if (!band) return null;
  if (band.kind === "path") { const i = spanAt(pathList, t, slack); return i < 0 ? null : { event: P.event[i], step: i }; }
  if (band.kind === "rate") return { rate: band.counter, t };
  if (band.kind !== "row") return null;
  const row = lists[band.r], lane = Math.floor((y - band.y - 1) / band.lane), list = row.lanes[lane];
  if (list) { const i = spanAt(list, t, slack); if (i >= 0) return { event: list.id[i] }; }
  const s = spanAt(row.stalls, t, slack / 3);
  return s < 0 ? null : { stall: row.firstStall + s };
}
/** Times and places of a canvas as it was last drawn. */
function frameOf(id) {
  const left = nameWidth(), width = byId(id).clientWidth, k = Math.max(1, width - left) / (state.to - state.from);
  return { left, width, k, from: state.from };
}
