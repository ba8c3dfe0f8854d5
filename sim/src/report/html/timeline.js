// The timeline and the memory below it: two canvases over one span of time.

const canvas = document.getElementById("timeline"), memoryCanvas = document.getElementById("memory");
const NAME = 92, AXIS = 24, LANE = 20, STALL = 6, GAP = 10, MEMORY = 170;
const rowHeight = (r) => lists[r].lanes * LANE + STALL + GAP;
const css = (name) => getComputedStyle(document.documentElement).getPropertyValue(name).trim();
let hover = null, focusRow = 0;

function sized(c, height) {
  const width = c.clientWidth, ratio = window.devicePixelRatio || 1;
  c.style.height = height + "px";
  if (c.width !== Math.round(width * ratio) || c.height !== Math.round(height * ratio)) {
    c.width = Math.round(width * ratio); c.height = Math.round(height * ratio);
  }
  const g = c.getContext("2d");
  g.setTransform(ratio, 0, 0, ratio, 0, 0);
  g.clearRect(0, 0, width, height);
  return [g, width];
}
const scale = (width) => (width - NAME) / (state.to - state.from);

function axis(g, width, height) {
  const k = scale(width), step0 = 90 / k, power = 10 ** Math.floor(Math.log10(step0));
  const step = [1, 2, 5, 10].map((m) => m * power).find((s) => s >= step0);
  g.font = "11px system-ui, sans-serif"; g.textAlign = "center"; g.textBaseline = "middle";
  const digits = Math.max(0, 3 - Math.floor(Math.log10(step)));
  for (let t = Math.ceil(state.from / step) * step; t <= state.to; t += step) {
    const x = NAME + (t - state.from) * k;
    g.fillStyle = css("--grid"); g.fillRect(x, AXIS - 4, 1, height);
    g.fillStyle = css("--dim");
    if (x > NAME + 16 && x < width - 20) g.fillText(us(t, Math.min(digits, 3)), x, AXIS / 2);
  }
}

/** Draws rectangles; those of one colour that share a pixel are one. Thousands of events in a pixel cost one rectangle. */
function boxes(g, k, from, to, top, height, colorOf, endOf, startOf) {
  let lastX = -1, lastEnd = -1, lastColor = null, drawn = 0;
  for (let i = from; i < to; i++) {
    const color = colorOf(i);
    if (color === null) continue;
    const x0 = Math.max(NAME, NAME + (startOf(i) - state.from) * k), x1 = NAME + (endOf(i) - state.from) * k;
    const left = Math.floor(x0), right = Math.max(left + 1, Math.ceil(x1));
    if (right <= lastEnd && left >= lastX && color === lastColor) continue;
    if (right - left <= 1 && left === lastX && right === lastEnd) continue;
    g.fillStyle = color;
    g.fillRect(x0, top(i), Math.max(1, x1 - x0 - (x1 - x0 > 3 ? 0.6 : 0)), height);
    lastX = left; lastEnd = right; lastColor = color; drawn++;
  }
  return drawn;
}

const matches = (i) =>
  (state.line < 0 || (E.line[i] === state.line && E.file[i] === state.file)) && (!state.critical || E.critical[i] > 0);

function drawTimeline() {
  const height = AXIS + shown.reduce((h, r) => h + rowHeight(r), 0);
  const [g, width] = sized(canvas, height), k = scale(width);
  axis(g, width, height);
  let y = AXIS, drawn = 0;
  const fade = dark.matches ? "#3a4046" : "#dfe3e7";
  for (const [n, r] of shown.entries()) {
    const row = data.rows[r], list = lists[r];
    g.fillStyle = css("--grid"); g.fillRect(NAME, y + rowHeight(r) - GAP / 2, width - NAME, 1);
    g.save();
    g.beginPath(); g.rect(NAME, y, width - NAME, rowHeight(r)); g.clip();
    const from = above(list.reach, state.from), to = above(list.start, state.to);
    const color = (i) => matches(list.id[i]) ? labelColor(E.label[list.id[i]]) : fade;
    const top = (i) => y + 2 + list.lane[i] * LANE;
    if (list.payload) {
      // The whole stay pale, the bytes on the move full.
      g.globalAlpha = 0.35;
      drawn += boxes(g, k, from, to, top, LANE - 3, color, (i) => list.end[i], (i) => list.start[i]);
      g.globalAlpha = 1;
      boxes(g, k, from, to, top, LANE - 3, color, (i) => list.moved[i], (i) => list.payload[i]);
    } else {
      drawn += boxes(g, k, from, to, top, LANE - 3, color, (i) => list.end[i], (i) => list.start[i]);
    }
    if (k * (state.to - state.from) / Math.max(1, to - from) > 34) names(g, list, from, to, k, top);
    const stalls = above(row.end, state.from), last = above(row.start, state.to);
    boxes(g, k, stalls, last, () => y + list.lanes * LANE, STALL, (i) => causeColor(row.cause[i]), (i) => row.end[i], (i) => row.start[i]);
    outline(g, r, k, y);
    g.restore();
    g.fillStyle = n === focusRow && document.activeElement === canvas ? css("--accent") : css("--text");
    g.font = "12px system-ui, sans-serif"; g.textAlign = "left"; g.textBaseline = "middle";
    g.fillText(row.name, 0, y + LANE / 2 + 1);
    y += rowHeight(r);
  }
  arrow(g, width, k);
  document.body.dataset.drawn = String(drawn);
}

function names(g, list, from, to, k, top) {
  g.font = "10px system-ui, sans-serif"; g.textAlign = "left"; g.textBaseline = "middle"; g.fillStyle = "#ffffff";
  for (let i = from; i < to; i++) {
    const a = list.payload ? list.payload[i] : list.start[i], b = list.payload ? list.moved[i] : list.end[i];
    const x0 = Math.max(NAME, NAME + (a - state.from) * k), wide = NAME + (b - state.from) * k - x0;
    const text = S[E.label[list.id[i]]];
    if (wide > text.length * 5.6 + 6 && matches(list.id[i])) g.fillText(text, x0 + 4, top(i) + (LANE - 3) / 2 + 0.5);
  }
}

function rowTop(r) {
  let y = AXIS;
  for (const s of shown) { if (s === r) return y; y += rowHeight(s); }
  return -1;
}
function outline(g, r, k, y) {
  for (const [event, color] of [[state.event, css("--text")], [hover ? hover.event : -1, css("--accent")]]) {
    if (event < 0) continue;
    const i = lists[r].id.indexOf(event);
    if (i < 0) continue;
    const x = NAME + (lists[r].start[i] - state.from) * k, w = Math.max(3, (lists[r].end[i] - lists[r].start[i]) * k);
    g.strokeStyle = color; g.lineWidth = 2;
    g.strokeRect(x, y + 1 + lists[r].lane[i] * LANE, w, LANE - 1);
  }
}
/** From what the selected event waited for to the event. */
function arrow(g, width, k) {
  const i = state.event, from = i >= 0 ? E.from[i] : -1;
  if (from < 0) return;
  const row = queueRow.get(from) ?? E.row[from];
  const x0 = NAME + (E.done[from] - state.from) * k, y0 = rowTop(row) + LANE / 2;
  const x1 = NAME + (E.start[i] - state.from) * k, y1 = rowTop(E.row[i]) + LANE / 2;
  g.save();
  g.beginPath(); g.rect(NAME, 0, width, 1e5); g.clip();
  g.strokeStyle = g.fillStyle = css("--text"); g.lineWidth = 1.5;
  g.beginPath(); g.moveTo(x0, y0);
  g.bezierCurveTo(x0 + 24, y0, x1 - 24, y1, x1, y1); g.stroke();
  g.beginPath(); g.moveTo(x1, y1); g.lineTo(x1 - 7, y1 - 4); g.lineTo(x1 - 7, y1 + 4); g.fill();
  g.restore();
}

function drawMemory() {
  const [g, width] = sized(memoryCanvas, Math.max(1, data.memory.length * MEMORY)), k = scale(width);
  data.memory.forEach((m, n) => {
    const y = n * MEMORY + 4, height = MEMORY - 14, { peak, full } = m;
    g.fillStyle = css("--grid"); g.fillRect(NAME, y, width - NAME, height);
    g.save(); g.beginPath(); g.rect(NAME, y, width - NAME, height); g.clip();
    const first = m.tensors.findIndex((t) => t[2] >= state.from);
    let last = null;
    for (let i = Math.max(first, 0); i < m.tensors.length; i++) {
      const t = m.tensors[i];
      if (t[1] > state.to) break;
      if (t[2] < state.from) continue;
      const x = NAME + (t[1] - state.from) * k, w = Math.max(1, (t[2] - t[1]) * k);
      const top = y + height * (1 - (t[3] + t[4]) / full), h = Math.max(1, height * t[4] / full - 0.5);
      const key = Math.round(x) + "," + Math.round(top);
      if (key === last && w <= 1) continue;
      last = key;
      g.fillStyle = `hsl(${HUES[t[0] * 7 % HUES.length]} 45% ${dark.matches ? 45 : 68}%)`;
      g.globalAlpha = state.line > 0 && (t[6] !== state.line || t[5] !== state.file) ? 0.35 : 0.9;
      g.fillRect(x, top, w, h);
      g.globalAlpha = 1;
      if (w > S[t[0]].length * 6 + 8 && h > 11) {
        g.fillStyle = "#1d2125"; g.font = "10px system-ui, sans-serif"; g.textAlign = "left"; g.textBaseline = "middle";
        g.fillText(S[t[0]], Math.max(x, NAME) + 4, top + h / 2);
      }
    }
    g.strokeStyle = css("--text"); g.lineWidth = 1.2; g.beginPath();
    let at = Math.max(0, above(m.times, state.from) - 1), pen = null;
    for (; at < m.points.length && m.points[at][0] <= state.to; at++) {
      const x = NAME + (m.points[at][0] - state.from) * k, v = y + height * (1 - m.points[at][1] / full);
      if (pen === null) g.moveTo(x, v); else { g.lineTo(x, pen); g.lineTo(x, v); }
      pen = v;
    }
    if (pen !== null) g.lineTo(NAME + (data.elapsed - state.from) * k, pen);
    g.stroke(); g.restore();
    g.fillStyle = css("--text"); g.font = "12px system-ui, sans-serif"; g.textAlign = "left"; g.textBaseline = "top";
    g.fillText(m.name, 0, y);
    g.fillStyle = css("--dim"); g.font = "11px system-ui, sans-serif";
    g.fillText("peak " + bytes(peak), 0, y + 17); g.fillText("of " + bytes(m.capacity), 0, y + 32);
    if (m.left_out) g.fillText(m.left_out + " smaller", 0, y + 62), g.fillText("tensors left out", 0, y + 77);
    g.fillText("/ partition", 0, y + 47);
  });
}

/** What lies at a place of the canvas: an event or a stall. */
function at(x, y) {
  const width = canvas.clientWidth, k = scale(width), t = state.from + (x - NAME) / k, slack = 3 / k;
  if (x < NAME) return null;
  for (const r of shown) {
    const top = rowTop(r), list = lists[r], row = data.rows[r];
    if (y < top || y >= top + rowHeight(r)) continue;
    const lane = Math.floor((y - top - 1) / LANE);
    if (lane >= 0 && lane < list.lanes) {
      let best = -1, gap = slack;
      for (let i = above(list.reach, t - slack); i < list.id.length && list.start[i] <= t + slack; i++) {
        if (list.lane[i] !== lane) continue;
        const d = Math.max(list.start[i] - t, t - list.end[i], 0);
        if (d <= gap) { best = i; gap = d; if (d === 0 && list.end[i] > t) break; }
      }
      if (best >= 0) return { event: list.id[best], row: r };
    }
    const s = above(row.end, t);
    if (s < row.start.length && row.start[s] <= t) return { event: -1, row: r, stall: s };
  }
  return null;
}

const frame = { wanted: false };
function draw() {
  if (frame.wanted) return;
  frame.wanted = true;
  requestAnimationFrame(() => { frame.wanted = false; drawTimeline(); drawMemory(); });
}
listeners.push(() => { drawTimeline(); drawMemory(); });

function zoom(factor, center) {
  const c = center ?? (state.from + state.to) / 2;
  setView(c - (c - state.from) * factor, c + (state.to - c) * factor);
  writeHash(); draw();
}
function move(part) {
  const d = (state.to - state.from) * part;
  setView(state.from + d, state.to + d); writeHash(); draw();
}
for (const c of [canvas, memoryCanvas]) {
  c.addEventListener("wheel", (e) => {
    e.preventDefault();
    if (e.shiftKey || Math.abs(e.deltaX) > Math.abs(e.deltaY)) return move((e.deltaX || e.deltaY) / 1000);
    const center = state.from + (e.offsetX - NAME) / scale(c.clientWidth);
    zoom(Math.exp(Math.max(-1, Math.min(1, e.deltaY / 300))), center);
  }, { passive: false });
  let drag = null;
  c.addEventListener("pointerdown", (e) => { drag = { x: e.clientX, moved: false }; c.setPointerCapture(e.pointerId); });
  c.addEventListener("pointermove", (e) => {
    if (!drag) return c === canvas ? point(e) : pointMemory(e);
    const d = e.clientX - drag.x;
    if (Math.abs(d) > 3) drag.moved = true;
    if (drag.moved) { const t = -d / scale(c.clientWidth); setView(state.from + t, state.to + t); drag.x = e.clientX; draw(); }
  });
  c.addEventListener("pointerup", (e) => {
    if (drag && !drag.moved && c === canvas) {
      const hit = at(e.offsetX, e.offsetY);
      if (hit && hit.event < 0) showStall(hit); else selectEvent(hit ? hit.event : -1, false);
      if (!hit) selectLine(-1, -1);
    }
    drag = null; writeHash();
  });
  c.addEventListener("pointerleave", () => { hover = null; tip(null); draw(); });
}
function point(e) {
  const hit = at(e.offsetX, e.offsetY);
  const before = hover ? hover.event : -1;
  hover = hit;
  if (!hit) tip(null);
  else if (hit.event >= 0) {
    const i = hit.event;
    tip(`${S[E.label[i]]}  ${us(E.start[i])} to ${us(queueRow.has(i) ? E.done[i] : E.end[i])}\n${placeOf(i)}${S[E.trail[i]] ? " [" + S[E.trail[i]] + "]" : ""}`, e);
  } else {
    const row = data.rows[hit.row];
    tip(`${row.name} waits ${us(row.end[hit.stall] - row.start[hit.stall])}: ${S[row.cause[hit.stall]]}`, e);
  }
  if ((hit ? hit.event : -1) !== before) draw();
}
function pointMemory(e) {
  const n = Math.floor(e.offsetY / MEMORY), m = data.memory[n];
  if (!m || e.offsetX < NAME) return tip(null);
  const t = state.from + (e.offsetX - NAME) / scale(memoryCanvas.clientWidth);
  const byte = (1 - (e.offsetY - n * MEMORY - 4) / (MEMORY - 14)) * m.full;
  const found = m.tensors.find((x) => x[1] <= t && t <= x[2] && x[3] <= byte && byte < x[3] + x[4]);
  tip(found ? `${S[found[0]]} ${S[found[7]]}: bytes ${found[3]} to ${found[3] + found[4]}\n${us(found[1])} to ${us(found[2])}, line ${found[6]}` : null, e);
}
function tip(text, e) {
  const t = document.getElementById("tip");
  t.hidden = !text;
  if (!text) return;
  t.textContent = text;
  t.style.left = Math.min(e.clientX + 14, innerWidth - 300) + "px"; t.style.top = e.clientY + 16 + "px";
}

function step(by) {
  const r = shown[focusRow], list = lists[r];
  if (!list.id.length) return;
  let i = list.id.indexOf(state.event);
  i = i < 0 ? Math.min(above(list.start, state.from), list.id.length - 1) : i + by;
  if (i >= 0 && i < list.id.length) selectEvent(list.id[i]);
}
canvas.addEventListener("keydown", (e) => {
  const keys = {
    ArrowLeft: () => move(-0.15), ArrowRight: () => move(0.15), "+": () => zoom(0.7), "=": () => zoom(0.7), "-": () => zoom(1 / 0.7),
    0: () => { setView(0, data.elapsed); writeHash(); draw(); }, "[": () => step(-1), "]": () => step(1),
    ArrowUp: () => { focusRow = Math.max(0, focusRow - 1); state.event = -1; step(0); draw(); },
    ArrowDown: () => { focusRow = Math.min(shown.length - 1, focusRow + 1); state.event = -1; step(0); draw(); },
    Enter: () => { if (state.event >= 0 && E.from[state.event] >= 0) selectEvent(E.from[state.event]); },
    Escape: () => { state.event = -1; selectLine(-1, -1); },
  };
  if (keys[e.key] && !e.ctrlKey && !e.metaKey) { e.preventDefault(); keys[e.key](); }
});
canvas.addEventListener("focus", draw);
canvas.addEventListener("blur", draw);
window.addEventListener("resize", draw);
dark.addEventListener("change", () => changed());
