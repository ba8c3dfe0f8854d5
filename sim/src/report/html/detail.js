// What is selected: an event, a stall, a line, a tensor, a range, or what a search found.

const goEvent = (i) => link(`${labelOf(i)}${C.line[E.statement[i]] ? ` (line ${C.line[E.statement[i]]})` : ""}`, () => selectEvent(i), `at ${time(E.start[i])}`);
const goLine = (file, line, name) => link(name ?? `${fileName(data.files[file]?.[0] ?? "")}:${line}`, () => selectLine(file, line));
const goTensor = (t) => link(S[T.name[t]], () => selectTensor(t), `${S[T.type[t]]} in ${S[T.space[t]]}`);
const spaced = (nodes) => nodes.flatMap((n) => [n, " "]);

function tensorsOf(i, write) {
  const out = [];
  for (let a = E.first[i]; a < E.first[i + 1]; a++) if ((E.access[a] & 1) === write) out.push(goTensor(E.access[a] >> 1));
  return out.length ? spaced(out) : "";
}

function eventDetail(i) {
  const c = E.statement[i], x = transferOf[i], from = E.from[i], waits = [];
  for (let w = 0; w < W.holder.length && E.wait[i]; w++) if (W.holder[w] === i) waits.push(`${time(W.time[w])}: ${S[W.cause[w]]}`);
  const rate = x >= 0 && X.time[x] > 0 ? `, ${short(E.bytes[i] / X.time[x])} GB/s while they moved` : "";
  return pairs([
    ["instruction", labelOf(i)],
    ["line", C.line[c] ? goLine(C.file[c], C.line[c], placeOf(c)) : ""],
    ["iteration", iteration(E.trail[i])],
    ["row", data.rows[E.row[i]].name + (x >= 0 ? `, then ${data.rows[X.row[x]].name}` : "")],
    ["on the engine", `${time(E.time[i])}, from ${time(E.start[i])}`],
    ["transfer", x >= 0 ? `${time(X.end[x] - X.issue[x])}: ${time(X.payload[x] - X.issue[x])} until bytes moved, ${time(X.time[x])} while they did, ${time(X.end[x] - X.moved[x])} until notified` : ""],
    ["complete", time(E.done[i])],
    ["bytes", E.bytes[i] ? bytes(E.bytes[i]) + rate : ""],
    ["operations", C.flops[c] ? `${flops(C.flops[c])}, ${short(C.flops[c] / Math.max(1, E.time[i]) / 1000)} TFLOP/s` : ""],
    ["writes", tensorsOf(i, 1)],
    ["reads", tensorsOf(i, 0)],
    ["waited", E.wait[i] ? `${time(E.wait[i])} (${waits.join("; ")})` : "not at all"],
    ["released by", from >= 0 ? link(S[E.via[i]], () => selectEvent(from)) : S[E.via[i]]],
    ["critical path", E.critical[i] ? `${time(E.critical[i])}, ${percent(E.critical[i], data.elapsed)} of the latency` : "not on it"],
    ["operands", S[C.operands[c]]],
  ]);
}

function lineDetail() {
  const key = lineKey(state.file, state.line), l = perLine.get(key), name = `${fileName(data.files[state.file]?.[0] ?? "")}:${state.line}`;
  if (!l) return el("p", `${name}: no instruction`);
  const g = byLine(sums).find((x) => x.key === key);
  const box = el("div", el("p", `${name}: ${plural(l.events.length, "instruction")}${sums.whole ? "" : ` (${number(g?.count ?? 0)} in the range)`}`));
  if (g) box.append(groupPairs(g));
  box.append(pairs([["first", goEvent(l.events[0])], ["last", l.events.length > 1 ? goEvent(l.events[l.events.length - 1]) : ""]]));
  return box;
}
/** What a group of statements took. */
function groupPairs(g) {
  const waits = waitKinds.map((k, i) => [k, g.waits[i]]).filter((w) => w[1] > 0).sort((a, b) => b[1] - a[1]).map(([k, t]) => `${k} ${time(t)}`);
  const use = utilisation(g);
  return pairs([
    ["critical path", `${time(g.critical)}, ${percent(g.critical, sums.to - sums.from)}`],
    ["engine time", time(g.engine)],
    ["transfer time", g.transfer ? time(g.transfer) : ""],
    ["waited", g.wait ? `${time(g.wait)} (${waits.join(", ")})` : "not at all"],
    ["HBM", g.read + g.write ? `${bytes(g.read)} read, ${bytes(g.write)} written` : ""],
    ["operations", g.flops ? flops(g.flops) : ""],
    ["utilisation", use ? `${(use * 100).toFixed(1)}% of the peak while it ran` : ""],
  ]);
}

function tensorDetail(t) {
  const { readers, writers } = accessesOf(new Set([t])), role = ["", "input", "output", "input and output"][T.role[t]];
  const some = (list) => list.length ? [...spaced(list.slice(0, 6).map(goEvent)), list.length > 6 ? `and ${number(list.length - 6)} more` : ""] : "none";
  const chip = T.byte[t] >= 0, space = S[T.space[t]];
  return pairs([
    ["tensor", `${S[T.name[t]]} ${S[T.type[t]]}`],
    ["kind", role],
    ["memory", chip ? `${space}, bytes ${number(T.byte[t])} to ${number(T.byte[t] + T.bytes[t])}, partitions ${T.partition[t]} to ${T.partition[t] + T.partitions[t] - 1}` : space],
    ["size", bytes(T.bytes[t]) + (chip ? " in each partition" : "")],
    ["made at", T.line[t] ? [goLine(T.file[t], T.line[t]), " ", iteration(T.trail[t])] : ""],
    ["lifetime", T.end[t] >= 0 ? `${time(T.end[t] - T.start[t])}: ${time(T.start[t])} to ${time(T.end[t])}` : "never used"],
    [`writers (${number(writers.length)})`, some(writers)],
    [`readers (${number(readers.length)})`, some(readers)],
  ]);
}

function stallDetail(w) {
  const waited = W.event[w], holder = W.holder[w];
  return pairs([
    ["row", data.rows[W.row[w]].name], ["stalled", `${time(W.time[w])}: ${time(W.start[w])} to ${time(W.end[w])}`], ["cause", S[W.cause[w]]],
    ["waited for", waited >= 0 ? goEvent(waited) : ""], ["held up", holder >= 0 ? goEvent(holder) : ""],
  ]);
}

/** Active and stalled time of each row, as a bar. */
function rowBars() {
  const box = el("div", null, { class: "bars" }), span = sums.to - sums.from;
  data.rows.forEach((row, r) => {
    if (!row.count) return;
    const bar = el("div", null, { class: "stack" }), s = sums.rows[r];
    const part = (t, color, title) => { if (t / span > 0.001) bar.append(el("span", null, { style: `width:${t / span * 100}%;background:${color}`, title: `${title} ${time(t)}, ${percent(t, span)}` })); };
    part(s.active, "var(--accent)", "active");
    for (const k of waitKinds) if (!(k === "limiter" && row.engine)) part(s.kinds.get(k) || 0, causeColor(k), k);
    box.append(el("span", row.name), bar, el("span", activePercent(r), { class: "n" }));
  });
  return box;
}
/** Active time of a row in the range; of the whole run as the terminal has it. */
const activeOf = (r) => sums.whole ? data.rows[r].active_us * 1000 : sums.rows[r].active;
const activePercent = (r) => sums.whole ? `${data.rows[r].active_percent.toFixed(1)}%` : percent(sums.rows[r].active, sums.to - sums.from);

function rangeDetail() {
  const span = sums.to - sums.from, all = byOpcode(sums), add = (of) => all.reduce((n, g) => n + of(g), 0), moved = add((g) => g.read + g.write), done = add((g) => g.flops);
  const box = el("div"), tools = el("p", null, { class: "tools" });
  tools.append(link("zoom to it", zoomToSelection), " ", link("clear", () => selectRange(null)));
  box.append(pairs([
    ["range", `${time(span)}: ${time(sums.from)} to ${time(sums.to)}`],
    ["instructions", number(add((g) => g.count))],
    ["HBM", moved ? `${bytes(moved)}, ${short(moved / span)} GB/s` : ""],
    ["operations", done ? `${flops(done)}, ${short(done / span / 1000)} TFLOP/s` : ""],
    ["critical path", time(add((g) => g.critical))],
  ]), tools, rowBars());
  return box;
}

function showDetail() {
  const i = state.event, body = document.body.dataset, box = byId("detail");
  body.event = String(i); body.line = state.line > 0 ? String(state.line) : ""; body.tensor = String(state.tensor);
  body.highlighted = String(state.line > 0 ? perLine.get(lineKey(state.file, state.line))?.events.length || 0 : 0);
  body.range = state.range ? state.range.map(Math.round).join("-") : "";
  const parts = [];
  if (i >= 0) parts.push(eventDetail(i));
  else if (state.stall >= 0) parts.push(stallDetail(state.stall));
  else if (state.tensor >= 0) parts.push(tensorDetail(state.tensor));
  else if (state.line > 0) parts.push(lineDetail());
  if (state.range) parts.push(rangeDetail());
  if (!parts.length) parts.push(el("p", "Click an event, a tensor or a line; drag over the timeline for the totals of a range.", { class: "hint" }), rowBars());
  byId("detail-title").textContent = i >= 0 ? "Event" : state.stall >= 0 ? "Stall" : state.tensor >= 0 ? "Tensor" : state.line > 0 ? "Line" : state.range ? "Range" : "Active and stalled";
  box.replaceChildren(...parts);
}
