// Sums over a part of the time: by row and cause, by statement, and from those by line and by instruction.

/** Kinds of causes that a row waited for, in the order of the legend. */
let waitKinds = [];

/**
 * Sums from `from` to `to`. Times are those inside the range; an instruction, its bytes and its operations count where it starts. `statements` has
 * a column for each sum, indexed by statement; `rows` has active time and stalls by kind and by cause.
 */
function totals(from, to) {
  const n = C.opcode.length, column = () => new Float64Array(n);
  const s = { count: column(), engine: column(), transfer: column(), critical: column(), wait: column(), waits: waitKinds.map(column) };
  const clip = (a, b) => Math.max(0, Math.min(b, to) - Math.max(a, from));
  const rows = data.rows.map(() => ({ count: 0, active: to - from, kinds: new Map(), causes: new Map() }));
  for (let i = 0; i < count; i++) {
    const c = E.statement[i];
    if (E.start[i] >= from && E.start[i] < to) { s.count[c]++; rows[E.row[i]].count++; if (transferOf[i] >= 0) rows[rowOf[i]].count++; }
    s.engine[c] += clip(E.start[i], E.end[i]);
  }
  for (let i = 0; i < X.event.length; i++) s.transfer[E.statement[X.event[i]]] += clip(X.issue[i], X.end[i]);
  for (let i = 0; i < P.event.length; i++) s.critical[E.statement[P.event[i]]] += clip(P.from[i], P.to[i]);
  for (let w = 0; w < W.row.length; w++) {
    const t = clip(W.start[w], W.end[w]);
    if (t === 0) continue;
    const row = rows[W.row[w]], kind = data.kinds[W.cause[w]], holder = W.holder[w];
    row.kinds.set(kind, (row.kinds.get(kind) || 0) + t);
    row.causes.set(W.cause[w], (row.causes.get(W.cause[w]) || 0) + t);
    // An engine that the power limiter slows is at work.
    if (!(kind === "limiter" && data.rows[W.row[w]].engine)) row.active -= t;
    if (holder >= 0) { s.wait[E.statement[holder]] += t; s.waits[waitKinds.indexOf(kind)][E.statement[holder]] += t; }
  }
  return { from, to, statements: s, rows };
}

function buildKinds() {
  const found = new Set();
  for (let w = 0; w < W.row.length; w++) found.add(data.kinds[W.cause[w]]);
  waitKinds = Object.keys(CAUSES).filter((k) => found.has(k) && !IDLE.has(k));
}

/** Statements of one key, added up: what one line did, or all instructions of one name. */
function grouped(sums, keyOf) {
  const s = sums.statements, groups = new Map();
  for (let c = 0; c < C.opcode.length; c++) {
    if (!s.count[c] && !s.engine[c] && !s.transfer[c] && !s.critical[c] && !s.wait[c]) continue;
    const key = keyOf(c);
    let g = groups.get(key);
    if (!g) groups.set(key, g = { key, statement: c, opcodes: new Set(), count: 0, engine: 0, transfer: 0, critical: 0, wait: 0, waits: waitKinds.map(() => 0), flops: 0, read: 0, write: 0, sbuf: 0, psum: 0 });
    g.opcodes.add(C.opcode[c]);
    g.count += s.count[c]; g.engine += s.engine[c]; g.transfer += s.transfer[c]; g.critical += s.critical[c]; g.wait += s.wait[c];
    s.waits.forEach((w, k) => { g.waits[k] += w[c]; });
    g.flops += s.count[c] * C.flops[c];
    g.read += s.count[c] * C.hbm_read[c]; g.write += s.count[c] * C.hbm_write[c];
    g.sbuf += s.count[c] * (C.sbuf_read[c] + C.sbuf_write[c]); g.psum += s.count[c] * (C.psum_read[c] + C.psum_write[c]);
  }
  return [...groups.values()];
}
const byLine = (sums) => grouped(sums, (c) => lineKey(C.file[c], C.line[c]));
const byOpcode = (sums) => grouped(sums, (c) => C.opcode[c]);

/** The part of its peak that a group reaches while it runs: of the tensor engine, or of the memory while its bytes move. */
function utilisation(g) {
  const cores = new Set(data.rows.map((r) => r.core)).size, r = data.roofline;
  if (g.flops > 0 && g.engine > 0) return g.flops / (g.engine * r.peak_tflops * 1000 / cores);
  if (g.read + g.write > 0 && g.transfer > 0) return (g.read + g.write) / (g.transfer * r.peak_gbytes_per_s);
  return 0;
}
/** What a row waited for most, in words. */
function mainCause(row) {
  const [cause, t] = [...row.causes].filter(([c]) => !IDLE.has(data.kinds[c])).sort((a, b) => b[1] - a[1])[0] || [];
  return cause === undefined ? "" : `${S[cause]}, ${time(t)}`;
}
