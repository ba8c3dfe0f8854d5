// What is in view and what is selected. The address holds it (#event=12, #line=0:21, #tensor=3, #range=6000-9000, #view=6000-9000, #rank=1; times
// in ns), so that a link can be shared.

const state = { from: 0, to: 1, event: -1, file: -1, line: -1, tensor: -1, stall: -1, range: null, critical: false, found: null };
const listeners = [];
let rank = 0;

/** By event: 1 if it is lit; null if all are. */
let lit = null;
/** What is lit depends on the line, the tensor or the search, and on the critical path; a selected event changes nothing. */
function light() {
  const l = state.line > 0 && state.event < 0 ? perLine.get(lineKey(state.file, state.line)) : null;
  const named = state.line > 0 && state.event < 0 || state.tensor >= 0 || state.found;
  if (!named && !state.critical) { lit = null; spread(); return; }
  lit = new Uint8Array(count);
  if (state.tensor >= 0) { const { readers, writers } = accessesOf(new Set([state.tensor])); for (const i of [...readers, ...writers]) lit[i] = 1; }
  else if (l) for (const i of l.events) lit[i] = 1;
  else if (state.found) for (let i = 0; i < count; i++) lit[i] = state.found[E.statement[i]];
  else if (!named) lit.fill(1);
  if (state.critical) for (let i = 0; i < count; i++) if (!E.critical[i]) lit[i] = 0;
  spread();
}
/** Counts what is lit before each span, so that a pixel knows at once whether one of its spans is. */
function spread() {
  for (const row of lists) for (const lane of row.lanes) {
    lane.lit = lit && new Int32Array(lane.id.length + 1);
    if (lit) for (let i = 0; i < lane.id.length; i++) lane.lit[i + 1] = lane.lit[i] + lit[lane.id[i]];
    if (lane.moving) lane.moving.lit = lane.lit;
  }
}

function changed() { light(); document.body.dataset.lit = String(lit ? lit.reduce((n, x) => n + x, 0) : count); listeners.forEach((f) => f()); }

function writeHash() {
  const parts = [], between = (a, b) => `${Math.round(a)}-${Math.round(b)}`;
  if (rank > 0) parts.push("rank=" + rank);
  if (state.event >= 0) parts.push("event=" + state.event);
  else if (state.line > 0) parts.push("line=" + lineKey(state.file, state.line));
  if (state.tensor >= 0) parts.push("tensor=" + state.tensor);
  if (state.range) parts.push("range=" + between(...state.range));
  if (state.from > 0 || state.to < data.elapsed) parts.push("view=" + between(state.from, state.to));
  history.replaceState(null, "", parts.length ? "#" + parts.join("&") : "#");
}
function readHash() {
  const get = new URLSearchParams(location.hash.slice(1));
  const two = (name) => { const [a, b] = (get.get(name) || "").split("-").map(Number); return b > a && a >= 0 ? [a, b] : null; };
  const index = (name, n) => { const i = Number(get.get(name) ?? NaN); return Number.isInteger(i) && i >= 0 && i < n ? i : -1; };
  const view = two("view"), [file, line] = (get.get("line") || "").split(":").map(Number);
  Object.assign(state, { file: -1, line: -1, event: -1, stall: -1, found: null, tensor: index("tensor", T.name.length), range: two("range") });
  setView(...(view || [0, data.elapsed]));
  if (line > 0 && data.files[file]) [state.file, state.line] = [file, line];
  const event = index("event", count);
  if (event >= 0) return selectEvent(event, false);
  changed();
}

function setView(from, to) {
  const span = Math.min(Math.max(to - from, 20), Math.max(data.elapsed, 20));
  from = Math.min(Math.max(from, 0), Math.max(0, data.elapsed - span));
  state.from = from; state.to = from + span;
}
/** Moves the view so that a span of time is in it. */
function reveal(from, to) {
  if (from >= state.from && to <= state.to) return;
  const span = Math.max(state.to - state.from, (to - from) * 2), mid = (from + to) / 2;
  setView(mid - span / 2, mid + span / 2);
}
function select(what) { Object.assign(state, { event: -1, file: -1, line: -1, tensor: -1, stall: -1 }, what); writeHash(); changed(); }
function selectEvent(i, move = true) {
  const c = E.statement[i];
  if (move) reveal(E.start[i], finish(i));
  select({ event: i, file: C.line[c] ? C.file[c] : -1, line: C.line[c] || -1 });
}
const selectLine = (file, line) => select(line > 0 ? { file, line, found: null } : {});
function selectTensor(t) {
  if (T.end[t] >= 0) reveal(T.start[t], T.end[t]);
  select({ tensor: t, found: null });
}
function selectRange(range) { state.range = range && range[1] > range[0] ? range : null; writeHash(); changed(); }
