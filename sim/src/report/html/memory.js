// SBUF and PSUM over time: tensors at their addresses. Where there are too many for rectangles, cells show how full each part of the memory is.

const MEMORY = 150, MEMORY_GAP = 14, MOST_BOXES = 4000, CELL_ROWS = 32;
let memories = [];

function buildMemories() {
  memories = data.memories.map((m) => {
    const own = [];
    for (let t = 0; t < T.name.length; t++) if (T.byte[t] >= 0 && T.core[t] === m.core && S[T.space[t]] === m.space && T.end[t] >= 0) own.push(t);
    const order = rising(floats(own.length, (i) => T.start[own[i]])), tensors = ints(own.length, (i) => own[order[i]]);
    // The longest stay bounds how far back one can begin that is still there.
    let full = 1, reach = new Float64Array(tensors.length), far = 0;
    tensors.forEach((t, i) => { full = Math.max(full, T.byte[t] + T.bytes[t]); reach[i] = far = Math.max(far, T.end[t]); });
    const use = inUse(tensors);
    return { ...m, tensors, start: floats(tensors.length, (i) => T.start[tensors[i]]), reach, full, use, peak: use.value.reduce((a, b) => Math.max(a, b), 0) };
  });
}
/** Bytes in use, as a step at each time at which they change. */
function inUse(tensors) {
  const n = tensors.length, starts = rising(floats(n, (i) => T.start[tensors[i]])), ends = rising(floats(n, (i) => T.end[tensors[i]]));
  const t = new Float64Array(2 * n + 1), value = new Float64Array(2 * n + 1);
  let now = 0, s = 0, e = 0, last = 0;
  while (e < ends.length) {
    // What ends makes room before what starts at the same time.
    const begins = s < starts.length && T.start[tensors[starts[s]]] < T.end[tensors[ends[e]]], tensor = tensors[begins ? starts[s++] : ends[e++]];
    const at = begins ? T.start[tensor] : T.end[tensor];
    now += begins ? T.bytes[tensor] : -T.bytes[tensor];
    if (t[last] !== at) t[++last] = at;
    value[last] = now;
  }
  return { t: t.subarray(0, last + 1), value: value.subarray(0, last + 1) };
}

function drawMemory() {
  const f = frame(byId("memory"), Math.max(1, memories.length * (MEMORY + MEMORY_GAP)), state, nameWidth()), { g } = f;
  const drawn = [];
  memories.forEach((m, n) => {
    const y = n * (MEMORY + MEMORY_GAP);
    g.fillStyle = css("--grid"); g.fillRect(f.left, y, f.width - f.left, MEMORY);
    g.save(); g.beginPath(); g.rect(f.left, y, f.width - f.left, MEMORY); g.clip();
    const first = above(m.reach, f.from), last = above(m.start, f.to);
    const boxes = last - first <= MOST_BOXES;
    drawn.push(boxes ? "boxes" : "cells");
    if (boxes) drawTensors(f, m, y, first, last); else drawCells(f, m, y, first, last);
    drawUse(f, m, y);
    g.restore();
    const dim = css("--dim"), size = narrow.matches ? 9.5 : 11;
    text(g, m.name, 0, y + 8, css("--text"), 12);
    ["peak " + bytes(m.peak), "of " + bytes(m.capacity), "/ partition", boxes ? "" : "binned"].forEach((line, i) => text(g, line, 0, y + 25 + 14 * i, dim, size));
  });
  if (state.range) drawRange(f, f.height, false);
  byId("memory").dataset.drawn = drawn.join();
}
const tensorColor = (t) => `hsl(${HUES[T.name[t] * 7 % HUES.length]} 45% ${dark.matches ? 45 : 68}%)`;

function drawTensors(f, m, y, first, last) {
  const { g } = f, k = MEMORY / m.full;
  for (let i = first; i < last; i++) {
    const t = m.tensors[i];
    if (T.end[t] < f.from) continue;
    const x = f.x(T.start[t]), w = Math.max(1, (T.end[t] - T.start[t]) * f.k), top = y + MEMORY - (T.byte[t] + T.bytes[t]) * k, h = Math.max(1, T.bytes[t] * k - 0.5);
    g.globalAlpha = state.tensor >= 0 && t !== state.tensor || state.event < 0 && state.line > 0 && (T.line[t] !== state.line || T.file[t] !== state.file) ? 0.3 : 0.92;
    g.fillStyle = tensorColor(t); g.fillRect(x, top, w, h);
    g.globalAlpha = 1;
    if (t === state.tensor) { g.strokeStyle = css("--text"); g.lineWidth = 2; g.strokeRect(x, top, w, h); }
    const name = S[T.name[t]];
    if (w > name.length * 6 + 8 && h > 11) text(g, name, Math.max(x, f.left) + 4, top + h / 2, dark.matches ? "#fff" : "#1d2125", 10);
  }
}
/** How much of each cell (a pixel or two of time, a part of the addresses) is in use. */
function drawCells(f, m, y, first, last) {
  const wide = 2, columns = Math.ceil((f.width - f.left) / wide), cell = (columns + 2), part = m.full / CELL_ROWS;
  // Differences along the time: the sum from the left is how full a cell is.
  const change = new Float32Array(CELL_ROWS * cell), scale = f.k / wide;
  for (let i = first; i < last; i++) {
    const t = m.tensors[i];
    if (T.end[t] < f.from) continue;
    const a = Math.max(0, (T.start[t] - f.from) * scale), b = Math.min(columns, (T.end[t] - f.from) * scale), a0 = Math.floor(a), b0 = Math.floor(b);
    const low = T.byte[t], high = low + T.bytes[t];
    for (let r = Math.floor(low / part); r < CELL_ROWS && r * part < high; r++) {
      const share = (Math.min(high, (r + 1) * part) - Math.max(low, r * part)) / part, at = r * cell;
      change[at + a0] += share * (1 - (a - a0)); change[at + a0 + 1] += share * (a - a0);
      change[at + b0] -= share * (1 - (b - b0)); change[at + b0 + 1] -= share * (b - b0);
    }
  }
  const { g } = f, h = MEMORY / CELL_ROWS;
  g.fillStyle = css("--fill");
  for (let r = 0; r < CELL_ROWS; r++) {
    let sum = 0, run = 0, strength = 0;
    const flush = (x) => { if (strength > 0) { g.globalAlpha = strength / 8; g.fillRect(f.left + run * wide, y + MEMORY - (r + 1) * h, (x - run) * wide, h + 0.3); } run = x; };
    for (let x = 0; x < columns; x++) {
      sum += change[r * cell + x];
      const now = Math.round(8 * Math.min(1, Math.max(0, sum)));
      if (now !== strength) { flush(x); strength = now; }
    }
    flush(columns);
  }
  g.globalAlpha = 1;
}
/** The bytes in use: the most in each pixel. */
function drawUse(f, m, y) {
  const { g } = f, { t, value } = m.use, at = (v) => y + MEMORY - Math.min(1, v / m.full) * (MEMORY - 2);
  g.strokeStyle = css("--text"); g.lineWidth = 1.2; g.beginPath();
  let i = Math.max(0, above(t, f.from) - 1), before = null;
  for (let x = f.left; x < f.width; x++) {
    const end = f.from + (x + 1 - f.left) / f.k;
    let most = value[i];
    while (i + 1 < t.length && t[i + 1] < end) most = Math.max(most, value[++i]);
    const v = at(most);
    if (before === null) g.moveTo(x, v); else if (v !== before) { g.lineTo(x, before); g.lineTo(x, v); }
    before = v;
  }
  if (before !== null) g.lineTo(f.width, before);
  g.stroke();
}

/** The tensor at a place: the smallest where several lie above each other. */
function hitMemory(x, y) {
  const f = frameOf("memory"), n = Math.floor(y / (MEMORY + MEMORY_GAP)), m = memories[n], into = y - n * (MEMORY + MEMORY_GAP);
  if (!m || x < f.left || into > MEMORY) return null;
  const t = f.from + (x - f.left) / f.k, slack = 1 / f.k, byte = (MEMORY - into) / MEMORY * m.full, thin = m.full / MEMORY;
  let best = -1;
  for (let i = above(m.reach, t - slack); i < m.tensors.length && m.start[i] <= t + slack; i++) {
    const id = m.tensors[i];
    if (T.end[id] < t - slack || byte < T.byte[id] - thin || byte > T.byte[id] + T.bytes[id] + thin) continue;
    if (best < 0 || T.bytes[id] < T.bytes[best]) best = id;
  }
  return best >= 0 ? { tensor: best } : null;
}
