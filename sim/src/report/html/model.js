// The run: events, statements, tensors, stalls, and the rows of the timeline.
//
// E: events. C: statements, which events are instances of. T: tensors. X: transfers. W: stalls. P: steps of the critical path. All are tables of
// columns, indexed by the number of the row.

let data, S, E, C, T, X, W, P, trails, count;
/** By row: `lanes` are lists of spans; those of a queue have `payload` and `moved`. */
let lists = [];
/** By event: its transfer, or -1. By event: its queue's row, or its engine's. */
let transferOf, rowOf;
/** By opcode (a string): its place among all, most expensive first. */
let opcodeRank;
/** By file:line: its events. */
let perLine;
let counters = [];

const placeOf = (c) => C.line[c] ? `${fileName(data.files[C.file[c]][0])}:${C.line[c]}` : "";
const lineKey = (file, line) => file + ":" + line;
const opcodeColor = (opcode) => hue(opcodeRank.get(opcode) ?? 0);
const labelOf = (i) => S[C.opcode[E.statement[i]]] + (C.name[E.statement[i]] ? ` ${S[C.name[E.statement[i]]]}` : "");
/** From the start to the time at which the result is there. */
const finish = (i) => transferOf[i] >= 0 ? E.done[i] : E.end[i];

/** The iterations around something: `i=3, j=0`. */
function iteration(trail) {
  const out = [];
  for (let at = trail; ; at -= trails.back[at]) {
    if (trails.variable[at]) out.unshift(`${S[trails.variable[at]]}=${trails.value[at]}`);
    if (!trails.back[at]) return out.join(", ");
  }
}

function buildModel(head, c) {
  data = head; S = head.strings; C = c.statement; T = c.tensor; X = c.transfer; W = c.stall; P = c.path; trails = c.trail; E = c.event;
  count = E.start.length;
  E.end = new Float64Array(count); E.done = new Float64Array(count); E.from = new Int32Array(count);
  E.first = new Int32Array(count + 1);
  for (let i = 0; i < count; i++) {
    E.end[i] = E.start[i] + E.time[i]; E.done[i] = E.end[i] + E.complete[i];
    E.from[i] = E.back[i] ? i - E.back[i] : -1;
    E.first[i + 1] = E.first[i] + E.accesses[i];
  }
  E.access = c.access.all;
  X.end = floats(X.event.length, (i) => E.done[X.event[i]]);
  X.payload = floats(X.event.length, (i) => X.issue[i] + X.wait[i]);
  X.moved = floats(X.event.length, (i) => X.payload[i] + X.time[i]);
  W.end = floats(W.row.length, (i) => W.start[i] + W.time[i]);
  P.to = floats(P.event.length, (i) => P.from[i] + P.time[i]);
  transferOf = new Int32Array(count).fill(-1);
  X.event.forEach((e, i) => { transferOf[e] = i; });
  rowOf = ints(count, (i) => transferOf[i] >= 0 ? X.row[transferOf[i]] : E.row[i]);
  E.critical = new Float64Array(count);
  for (let i = 0; i < P.event.length; i++) E.critical[P.event[i]] += P.time[i];
  rankOpcodes();
  buildLists();
  buildWaits();
  buildLines();
  buildLives();
  buildCounters();
}

function rankOpcodes() {
  const taken = new Float64Array(S.length);
  for (let i = 0; i < count; i++) taken[C.opcode[E.statement[i]]] += E.done[i] - E.start[i] + 1;
  const used = [...taken.keys()].filter((o) => taken[o] > 0).sort((a, b) => taken[b] - taken[a] || a - b);
  opcodeRank = new Map(used.map((o, n) => [o, n]));
}

/** By row the positions in a column of rows. */
function split(rows) {
  const sizes = new Int32Array(data.rows.length);
  for (let i = 0; i < rows.length; i++) sizes[rows[i]]++;
  const out = [...sizes].map((n) => new Int32Array(n)), at = new Int32Array(sizes.length);
  for (let i = 0; i < rows.length; i++) out[rows[i]][at[rows[i]]++] = i;
  return out;
}
/** The events of an engine in one lane, the transfers of a queue in as many as are under way together. */
function buildLists() {
  const engines = split(E.row), queues = split(X.row);
  lists = data.rows.map((row, r) => {
    const queue = !row.engine, start = queue ? X.issue : E.start, end = queue ? X.end : E.end, ids = queue ? queues[r] : engines[r];
    const starts = floats(ids.length, (i) => start[ids[i]]), order = rising(starts), packed = lanesOf(order, starts, floats(ids.length, (i) => end[ids[i]]));
    const lanes = Array.from({ length: packed.count }, () => []);
    for (const o of order) lanes[packed.lane[o]].push(ids[o]);
    const pick = (own, column) => floats(own.length, (i) => column[own[i]]);
    return {
      lanes: lanes.map((own) => {
        const list = spanList(ints(own.length, (i) => queue ? X.event[own[i]] : own[i]), pick(own, start), pick(own, end));
        if (queue) list.moving = spanList(list.id, pick(own, X.payload), pick(own, X.moved));
        return list;
      }),
      stalls: null,
    };
  });
  let at = 0;
  for (let r = 0; r < data.rows.length; r++) {
    const from = at;
    while (at < W.row.length && W.row[at] === r) at++;
    lists[r].stalls = spanList(null, W.start.subarray(from, at), W.end.subarray(from, at));
    lists[r].firstStall = from;
  }
}

/** By stall the event that waited: on an engine the next one, for the power limiter the one before. By event how long it waited. */
function buildWaits() {
  W.holder = new Int32Array(W.row.length).fill(-1);
  E.wait = new Float64Array(count);
  lists.forEach((row, r) => {
    if (!data.rows[r].engine || !row.lanes.length) return;
    const { id, start } = row.lanes[0];
    for (let n = 0; n < row.stalls.start.length; n++) {
      const w = row.firstStall + n, kind = data.kinds[W.cause[w]];
      if (IDLE.has(kind)) continue;
      const next = above(start, W.end[w] - 1), holder = kind === "limiter" ? above(start, W.start[w]) - 1 : next;
      if (holder < 0 || holder >= id.length) continue;
      W.holder[w] = id[holder];
      E.wait[id[holder]] += W.time[w];
    }
  });
}

function buildLines() {
  perLine = new Map();
  const own = ints(C.opcode.length, () => -1), lines = [];
  for (let i = 0; i < count; i++) {
    const c = E.statement[i];
    if (own[c] < 0) {
      const key = lineKey(C.file[c], C.line[c]);
      if (!perLine.has(key)) { perLine.set(key, { at: lines.length, events: [], critical: 0 }); lines.push(perLine.get(key)); }
      own[c] = perLine.get(key).at;
    }
    const l = lines[own[c]];
    l.events.push(i); l.critical += E.critical[i];
  }
}

/** When each tensor is first and last touched, and by how many. */
function buildLives() {
  const n = T.name.length;
  T.start = new Float64Array(n).fill(Infinity); T.end = new Float64Array(n).fill(-1);
  T.readers = new Int32Array(n); T.writers = new Int32Array(n);
  for (let i = 0; i < count; i++) {
    for (let a = E.first[i]; a < E.first[i + 1]; a++) {
      const t = E.access[a] >> 1;
      if (E.access[a] & 1) T.writers[t]++; else T.readers[t]++;
      if (E.start[i] < T.start[t]) T.start[t] = E.start[i];
      if (E.done[i] > T.end[t]) T.end[t] = E.done[i];
    }
  }
}
/** The events that read or write one of some tensors. */
function accessesOf(tensors) {
  const readers = [], writers = [];
  for (let i = 0; i < count; i++) {
    for (let a = E.first[i]; a < E.first[i + 1]; a++) if (tensors.has(E.access[a] >> 1)) (E.access[a] & 1 ? writers : readers).push(i);
  }
  return { readers, writers };
}

/** Rates over time: what HBM and the tensor engines do, and how many transfers are under way. */
function buildCounters() {
  const n = X.event.length, peak = data.roofline, busy = [];
  const hbm = (i) => { const c = E.statement[X.event[i]]; return C.hbm_read[c] + C.hbm_write[c]; };
  for (let i = 0; i < count; i++) if (C.flops[E.statement[i]] > 0) busy.push(i);
  counters = [];
  const add = (name, color, start, end, amount, top, show) => {
    const r = rate(start, end, amount);
    counters.push({ name, color, rate: r, top: top || Math.max(1, r.most), of: top, show });
  };
  if (n) {
    add("HBM", "--hbm", X.payload, X.moved, floats(n, hbm), peak.peak_gbytes_per_s, (v) => `${short(v)} GB/s`);
    add("in flight", "--flight", X.issue, X.end, floats(n, (i) => Math.max(X.end[i] - X.issue[i], 1)), 0, (v) => `${+v.toFixed(1)} transfers`);
  }
  if (busy.length) {
    const of = (column) => floats(busy.length, (i) => column[busy[i]]);
    add("tensor", "--flops", of(E.start), of(E.end), floats(busy.length, (i) => C.flops[E.statement[busy[i]]]), peak.peak_tflops * 1000, (v) => `${short(v / 1000)} TFLOP/s`);
  }
}
