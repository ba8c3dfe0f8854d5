// Moves the view over timeline and memory, and draws both: at once after a selection, once in a frame while the view moves.

let wanted = false, frames = 0;
function drawNow() {
  // A window without a size, as a tab in the background may have, has nothing to draw on.
  if (byId("timeline").clientWidth <= nameWidth()) return;
  drawOverview(); drawTimeline(); drawMemory();
  frames++;
}
function draw() {
  if (wanted) return;
  wanted = true;
  requestAnimationFrame(() => { wanted = false; drawNow(); });
}
function zoom(factor, center) {
  const c = center ?? (state.from + state.to) / 2;
  setView(c - (c - state.from) * factor, c + (state.to - c) * factor);
  tip(null); hover = null;
  writeHash(); draw();
}
function move(part) {
  const d = (state.to - state.from) * part;
  setView(state.from + d, state.to + d);
  tip(null); hover = null;
  writeHash(); draw();
}
function fit() { setView(0, data.elapsed); tip(null); writeHash(); draw(); }
/** The range fills the view; without one, the selected event does, with as much on both sides. */
function zoomToSelection() {
  if (state.range) setView(...state.range);
  else if (state.event >= 0) { const a = E.start[state.event], b = finish(state.event); setView(a - (b - a), b + (b - a)); }
  else if (state.tensor >= 0 && T.end[state.tensor] >= 0) setView(T.start[state.tensor], T.end[state.tensor]);
  writeHash(); draw();
}

/** All of the time in a strip, with a frame around what is in view. */
let overview = null;
function drawOverview() {
  const canvas = byId("overview"), shown = data.rows.map((_, r) => r).filter((r) => data.rows[r].count > 0), line = 4, height = shown.length * line + 6;
  const f = frame(canvas, height, { from: 0, to: Math.max(data.elapsed, 20) }, nameWidth()), { g } = f;
  const key = `${f.width} ${window.devicePixelRatio} ${dark.matches}`;
  // The strip itself changes with the width only.
  if (overview?.key !== key) {
    shown.forEach((r, n) => lists[r].lanes.forEach((list) => {
      const plain = { ...(list.moving || list), lit: null };
      drawSpans(f, plain, 3 + n * line, line - 1, (i) => opcodeColor(C.opcode[E.statement[list.id[i]]]), "");
    }));
    const copy = document.createElement("canvas");
    copy.width = canvas.width; copy.height = canvas.height;
    copy.getContext("2d").drawImage(canvas, 0, 0);
    overview = { key, copy };
  } else g.drawImage(overview.copy, 0, 0, f.width, height);
  if (state.range) { const [a, b] = state.range.map(f.x); g.fillStyle = css("--range"); g.fillRect(a, 0, Math.max(1, b - a), height); }
  const a = f.x(state.from), b = f.x(state.to);
  g.fillStyle = css("--veil"); g.fillRect(f.left, 0, a - f.left, height); g.fillRect(b, 0, f.width - b, height);
  g.strokeStyle = css("--accent"); g.lineWidth = 1; g.strokeRect(a + 0.5, 0.5, Math.max(2, b - a - 1), height - 1);
  text(g, "all", 0, height / 2, css("--dim"), 11);
}
