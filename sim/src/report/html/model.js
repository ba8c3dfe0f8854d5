// The data, indexes into it, and the state that all views share. The state is in the URL's hash: #event=5, #line=0:12, #view=100-900;
// with several ranks also #rank=1.

const parsed = JSON.parse(document.getElementById("data").textContent);
const ranks = Array.isArray(parsed) ? parsed : [parsed];
const rankOfHash = () => {
  const wanted = Number(new URLSearchParams(location.hash.slice(1)).get("rank") ?? 0);
  return Number.isInteger(wanted) && wanted > 0 && wanted < ranks.length ? wanted : 0;
};
const rank = rankOfHash();
const data = ranks[rank];
const E = data.events, X = data.transfers, S = data.strings;
const count = E.start.length;
const state = { from: 0, to: data.elapsed, event: -1, file: -1, line: -1, critical: false };
const dark = matchMedia("(prefers-color-scheme: dark)");

// Instructions get colours in order of the time they take, so that the largest differ most.
const HUES = [211, 28, 145, 271, 350, 185, 60, 310, 95, 235];
const labelTime = new Map();
for (let i = 0; i < count; i++) labelTime.set(E.label[i], (labelTime.get(E.label[i]) || 0) + E.done[i] - E.start[i]);
const labels = [...labelTime].sort((a, b) => b[1] - a[1] || a[0] - b[0]).map((l) => l[0]);
const labelRank = new Map(labels.map((l, i) => [l, i]));
function labelColor(label) {
  const rank = labelRank.get(label) || 0, turn = Math.floor(rank / HUES.length);
  const light = (dark.matches ? 58 : 50) + (turn % 2) * 12;
  return `hsl(${HUES[rank % HUES.length]} ${62 - turn * 14}% ${light}%)`;
}
const CAUSES = {
  semaphore: "#d9a13b", bank: "#c0562f", "engine-order": "#8a6fb8", "dma-bandwidth": "#4d8fa8",
  "dma-latency": "#7fb3c4", limiter: "#c23b52", "table-load": "#b58ab0", port: "#9a8a3a", barrier: "#6b6b6b", "start-up": "#a9afb5",
  finished: "#c9ced3",
};
const causeColor = (text) => CAUSES[data.kinds[text]] || "#999999";

// Events of each row in order of time; transfers are on the row of their queue in lanes, so that none covers another.
const lists = data.rows.map(() => ({ id: [], start: [], end: [], lane: [], payload: null, moved: null, lanes: 1 }));
for (let i = 0; i < count; i++) {
  const l = lists[E.row[i]];
  l.id.push(i); l.start.push(E.start[i]); l.end.push(Math.max(E.end[i], E.start[i])); l.lane.push(0);
}
for (let i = 0; i < X.event.length; i++) {
  const l = lists[X.row[i]];
  if (!l.payload) { l.payload = []; l.moved = []; }
  l.id.push(X.event[i]); l.start.push(X.issue[i]); l.end.push(X.done[i]); l.lane.push(0);
  l.payload.push(X.payload[i]); l.moved.push(X.payload_end[i]);
}
const queueRow = new Map(X.event.map((e, i) => [e, X.row[i]]));
for (const l of lists) {
  const order = l.id.map((_, i) => i).sort((a, b) => l.start[a] - l.start[b] || l.id[a] - l.id[b]);
  for (const key of ["id", "start", "end", "lane", "payload", "moved"]) if (l[key]) l[key] = order.map((i) => l[key][i]);
  // What ends latest so far, for a binary search over ends.
  l.reach = new Float64Array(l.id.length);
  const free = [];
  for (let i = 0, reach = 0; i < l.id.length; i++) {
    if (l.payload) {
      let lane = free.findIndex((t) => t <= l.start[i]);
      if (lane < 0) lane = free.length < 3 ? free.length : free.indexOf(Math.min(...free));
      free[lane] = l.end[i];
      l.lane[i] = lane;
    }
    l.reach[i] = reach = Math.max(reach, l.end[i]);
  }
  l.lanes = Math.max(1, free.length);
}
const shown = data.rows.map((_, i) => i).filter((i) => data.rows[i].engine || data.rows[i].count > 0);

const perLine = new Map(); // "file:line" -> { events, critical, time }
for (let i = 0; i < count; i++) {
  const key = E.file[i] + ":" + E.line[i];
  let l = perLine.get(key);
  if (!l) perLine.set(key, (l = { events: [], critical: 0 }));
  l.events.push(i); l.critical += E.critical[i];
}

/** The first position in a sorted array whose value is greater than `x`. */
function above(array, x) {
  let lo = 0, hi = array.length;
  while (lo < hi) { const mid = (lo + hi) >> 1; if (array[mid] > x) hi = mid; else lo = mid + 1; }
  return lo;
}

for (const m of data.memory) {
  m.peak = m.points.reduce((most, p) => Math.max(most, p[1]), 1);
  m.full = m.tensors.reduce((most, t) => Math.max(most, t[3] + t[4]), m.peak);
  m.times = m.points.map((p) => p[0]);
}

const us = (ns, digits = 2) => (ns / 1000).toFixed(digits) + " \u00b5s";
const bytes = (n) => n < 10000 ? n + " B" : n < 1e7 ? (n / 1024).toFixed(1) + " KiB" : (n / 1048576).toFixed(1) + " MiB";
const placeOf = (i) => E.line[i] ? data.files[E.file[i]]?.[0] + ":" + E.line[i] : "";

/** An element with text and attributes; text is never read as markup. */
function el(name, text, attributes) {
  const e = document.createElement(name);
  if (text !== undefined && text !== null) e.textContent = text;
  for (const key in attributes || {}) e.setAttribute(key, attributes[key]);
  return e;
}

const listeners = [];
const changed = () => { listeners.forEach((f) => f()); };
function writeHash() {
  const parts = [];
  if (rank > 0) parts.push("rank=" + rank);
  if (state.event >= 0) parts.push("event=" + state.event);
  if (state.line > 0) parts.push("line=" + state.file + ":" + state.line);
  if (state.from > 0 || state.to < data.elapsed) parts.push("view=" + Math.round(state.from) + "-" + Math.round(state.to));
  history.replaceState(null, "", parts.length ? "#" + parts.join("&") : "#");
}
function readHash() {
  const get = new URLSearchParams(location.hash.slice(1));
  const event = Number(get.get("event") ?? -1), view = (get.get("view") || "").split("-").map(Number);
  const line = (get.get("line") || "").split(":").map(Number);
  if (line.length === 2 && line[1] > 0) [state.file, state.line] = line;
  if (view.length === 2 && view[1] > view[0]) setView(view[0], view[1]);
  if (Number.isInteger(event) && event >= 0 && event < count) selectEvent(event, false);
  changed();
}
function setView(from, to) {
  const span = Math.min(Math.max(to - from, 20), data.elapsed);
  from = Math.min(Math.max(from, 0), data.elapsed - span);
  state.from = from; state.to = from + span;
}
function selectEvent(i, move = true) {
  state.event = i;
  if (i >= 0) {
    state.file = E.file[i]; state.line = E.line[i] || -1;
    const q = queueRow.has(i) ? E.done[i] : E.end[i];
    if (move && (E.start[i] < state.from || q > state.to)) {
      const span = state.to - state.from, mid = (E.start[i] + q) / 2;
      setView(mid - Math.max(span, (q - E.start[i]) * 2) / 2, mid + Math.max(span, (q - E.start[i]) * 2) / 2);
    }
  }
  writeHash(); changed();
}
function selectLine(file, line) {
  [state.file, state.line, state.event] = line > 0 ? [file, line, -1] : [-1, -1, -1];
  writeHash(); changed();
}
