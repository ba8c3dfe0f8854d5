// Tables of lines, instructions, events, tensors, rows and causes: of the range if there is one, else of the whole run.

let tables = null, tab = "lines";

const timeColumn = (id, title, get, more) => ({ id, title, get, show: (r) => get(r) ? time(get(r)) : "", ...more });

/** The columns that lines and instructions share. */
function groupColumns() {
  const span = () => sums.to - sums.from;
  return [
    { id: "count", title: "count", get: (g) => g.count, show: (g) => number(g.count) },
    timeColumn("critical", "critical path", (g) => g.critical, { bar: (g) => g.critical / span(), hint: "time on the critical path" }),
    { id: "share", title: "% of latency", get: (g) => g.critical, show: (g) => g.critical ? percent(g.critical, span()) : "", off: true },
    timeColumn("engine", "engine time", (g) => g.engine, { hint: "time for which its engine is taken" }),
    timeColumn("transfer", "transfer time", (g) => g.transfer, { hint: "from issue to completion, transfers added up" }),
    timeColumn("wait", "waits", (g) => g.wait, { hint: "time for which its engine waited before it" }),
    ...waitKinds.map((k, i) => timeColumn(`wait-${k}`, `waits: ${k}`, (g) => g.waits[i], { off: true })),
    { id: "hbm", title: "HBM bytes", get: (g) => g.read + g.write, show: (g) => g.read + g.write ? bytes(g.read + g.write) : "" },
    { id: "sbuf", title: "SBUF bytes", get: (g) => g.sbuf, show: (g) => g.sbuf ? bytes(g.sbuf) : "", off: true },
    { id: "psum", title: "PSUM bytes", get: (g) => g.psum, show: (g) => g.psum ? bytes(g.psum) : "", off: true },
    { id: "flops", title: "FLOP", get: (g) => g.flops, show: (g) => g.flops ? flops(g.flops) : "" },
    { id: "use", title: "utilisation", get: utilisation, show: (g) => utilisation(g) ? `${(utilisation(g) * 100).toFixed(1)}%` : "", hint: "of the peak of the tensor engine, or of the memory, while it runs" },
  ];
}

function eventColumns() {
  const c = (i) => E.statement[i];
  return [
    { id: "start", title: "start", get: (i) => E.start[i], show: (i) => time(E.start[i]) },
    { id: "what", title: "instruction", get: labelOf, text: true },
    { id: "line", title: "line", get: (i) => placeOf(c(i)), text: true },
    { id: "iteration", title: "iteration", get: (i) => iteration(E.trail[i]), text: true },
    { id: "row", title: "row", get: (i) => data.rows[rowOf[i]].name, text: true },
    timeColumn("time", "time", (i) => finish(i) - E.start[i]),
    timeColumn("wait", "waits", (i) => E.wait[i]),
    { id: "via", title: "released by", get: (i) => S[E.via[i]], text: true, off: true },
    timeColumn("critical", "critical path", (i) => E.critical[i]),
    { id: "bytes", title: "bytes", get: (i) => E.bytes[i], show: (i) => E.bytes[i] ? bytes(E.bytes[i]) : "" },
    { id: "flops", title: "FLOP", get: (i) => C.flops[c(i)], show: (i) => C.flops[c(i)] ? flops(C.flops[c(i)]) : "" },
    { id: "operands", title: "operands", get: (i) => S[C.operands[c(i)]], text: true, off: true },
  ];
}

function tensorColumns() {
  return [
    { id: "name", title: "tensor", get: (t) => S[T.name[t]], text: true },
    { id: "type", title: "type", get: (t) => S[T.type[t]], text: true },
    { id: "space", title: "memory", get: (t) => S[T.space[t]], text: true },
    { id: "bytes", title: "size", get: (t) => T.bytes[t], show: (t) => bytes(T.bytes[t]), hint: "in each partition on chip, else of all" },
    { id: "byte", title: "address", get: (t) => T.byte[t], show: (t) => T.byte[t] >= 0 ? number(T.byte[t]) : "", off: true },
    timeColumn("life", "lifetime", (t) => Math.max(0, T.end[t] - T.start[t])),
    { id: "from", title: "first use", get: (t) => T.start[t], show: (t) => time(T.start[t]) },
    { id: "writers", title: "writers", get: (t) => T.writers[t], show: (t) => number(T.writers[t]) },
    { id: "readers", title: "readers", get: (t) => T.readers[t], show: (t) => number(T.readers[t]) },
    { id: "line", title: "made at", get: (t) => T.line[t] ? `${fileName(data.files[T.file[t]][0])}:${T.line[t]}` : "", text: true },
    { id: "iteration", title: "iteration", get: (t) => iteration(T.trail[t]), text: true, off: true },
  ];
}

function rowColumns() {
  const span = () => sums.to - sums.from;
  return [
    { id: "row", title: "row", get: (r) => data.rows[r].name, text: true },
    { id: "count", title: "instructions", get: (r) => sums.rows[r].count, show: (r) => number(sums.whole ? data.rows[r].count : sums.rows[r].count) },
    timeColumn("active", "active", activeOf),
    { id: "percent", title: "active %", get: activeOf, show: activePercent, bar: (r) => activeOf(r) / span() },
    ...waitKinds.map((k) => timeColumn(k, k, (r) => sums.rows[r].kinds.get(k) || 0)),
    { id: "main", title: "waits mostly for", get: (r) => mainCause(sums.rows[r]), text: true },
  ];
}

function causeRows() {
  const out = [];
  sums.rows.forEach((row, r) => row.causes.forEach((t, cause) => { if (!IDLE.has(data.kinds[cause])) out.push({ r, cause, time: t }); }));
  return out;
}
function causeColumns() {
  return [
    { id: "row", title: "row", get: (c) => data.rows[c.r].name, text: true },
    { id: "cause", title: "waits for", get: (c) => S[c.cause], text: true },
    { id: "kind", title: "kind", get: (c) => data.kinds[c.cause], text: true },
    timeColumn("time", "time", (c) => c.time, { bar: (c) => c.time / (sums.to - sums.from) }),
    { id: "share", title: "% of time", get: (c) => c.time, show: (c) => percent(c.time, sums.to - sums.from) },
  ];
}

function buildTables() {
  const first = { id: "where", title: "line", get: (g) => placeOf(g.statement) || "(no line)", text: true };
  const opcodes = { id: "what", title: "instruction", get: (g) => [...g.opcodes].map((o) => S[o]).join(", "), text: true };
  const place = (g) => g.key.split(":").map(Number);
  const inRange = (from, to) => !state.range || from < sums.to && to > sums.from;
  const all = (n, keep) => { const out = []; for (let i = 0; i < n; i++) if (keep(i)) out.push(i); return out; };
  const pickOpcode = (g) => { state.found = Uint8Array.from(C.opcode, (o) => o === g.key ? 1 : 0); select({}); };
  tables = {
    lines: { title: "Lines", sort: "critical", columns: [first, opcodes, ...groupColumns()], rows: () => byLine(sums), pick: (g) => selectLine(...place(g)), current: (g) => state.line > 0 && g.key === lineKey(state.file, state.line) },
    instructions: { title: "Instructions", sort: "critical", columns: [opcodes, ...groupColumns()], rows: () => byOpcode(sums), pick: pickOpcode },
    events: {
      title: "Events", sort: "time", columns: eventColumns(), pick: (i) => selectEvent(i), current: (i) => i === state.event,
      rows: () => all(count, (i) => (!lit || lit[i] || state.event >= 0 && !state.critical) && inRange(E.start[i], finish(i))),
    },
    tensors: { title: "Tensors", sort: "bytes", columns: tensorColumns(), rows: () => all(T.name.length, (t) => T.end[t] >= 0 && inRange(T.start[t], T.end[t])), pick: selectTensor, current: (t) => t === state.tensor },
    rows: { title: "Engines", sort: "active", columns: rowColumns(), rows: () => all(data.rows.length, (r) => data.rows[r].count > 0) },
    causes: { title: "Causes", sort: "time", columns: causeColumns(), rows: causeRows },
  };
  for (const [id, t] of Object.entries(tables)) {
    const b = el("button", t.title, { type: "button", role: "tab", id: `tab-${id}`, "aria-controls": "table" });
    b.addEventListener("click", () => { tab = id; showTable(); });
    byId("tabs").append(b);
  }
}

function showTable() {
  const t = tables[tab];
  t.table ??= new DataTable(el("div"), { ...t, label: t.title });
  for (const b of byId("tabs").children) b.setAttribute("aria-selected", String(b.id === `tab-${tab}`));
  byId("scope").replaceChildren(...(sums.whole ? ["whole run"] : [`${time(sums.to - sums.from)} from ${time(sums.from)} `, link("clear", () => selectRange(null))]));
  if (byId("table").firstChild !== t.table.host) {
    byId("table").replaceChildren(t.table.host);
    byId("choose").replaceChildren(t.table.chooser);
  }
  // Rows change with the range; those of the events with what is lit, too.
  const key = [tab, sums.from, sums.to, tab === "events" ? [state.line, state.tensor, state.critical, state.event >= 0] : ""].join();
  if (key !== t.key || tab === "events" && state.found !== t.found) { t.key = key; t.found = state.found; t.table.set(t.rows()); } else t.table.draw(true);
}
/** The sums of the range, or of the whole run. */
function updateSums() {
  const [from, to] = state.range || [0, data.elapsed];
  if (sums && sums.from === from && sums.to === to) return;
  sums = totals(from, to);
  sums.whole = !state.range;
  if (fileShown >= 0) showCosts();
}
