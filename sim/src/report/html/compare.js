// Two runs on one axis of time, and what changed between them.

const SIDES = ["before", "after"], LANE = 15, STRIP = 5, PAIR_GAP = 10, TOP = 22;
const view = { from: 0, to: 1 };
let diff, runs, rows = [], end = 1, chosen = null, colors = new Map();
const left = () => narrow.matches ? 84 : 130;

/** The rows of one run: lanes of work and a list of stalls, each with the names and places of its spans. */
function readRun(head, c) {
  const s = c.span, out = new Map(), own = head.rows.map(() => ({ work: [], stalls: [] }));
  for (let i = 0; i < s.row.length; i++) own[s.row[i]][s.stalled[i] ? "stalls" : "work"].push(i);
  const list = (ids) => Object.assign(spanList(null, floats(ids.length, (i) => s.start[ids[i]]), floats(ids.length, (i) => s.start[ids[i]] + s.time[ids[i]])), {
    name: ids.map((i) => head.names[s.name[i]]), place: ids.map((i) => head.places[s.place[i]]),
  });
  head.rows.forEach((name, r) => {
    const { work, stalls } = own[r], starts = floats(work.length, (i) => s.start[work[i]]), order = rising(starts);
    const packed = lanesOf(order, starts, floats(work.length, (i) => s.start[work[i]] + s.time[work[i]])), lanes = Array.from({ length: packed.count }, () => []);
    for (const o of order) lanes[packed.lane[o]].push(work[o]);
    out.set(name, { lanes: lanes.map(list), stalls: list(stalls) });
  });
  return out;
}

function layoutRows() {
  const names = [...new Set(runs.flatMap((r) => [...r.keys()]))];
  let y = TOP;
  rows = names.map((name) => {
    const sides = runs.map((run) => run.get(name) || { lanes: [], stalls: spanList(null, new Float64Array(0), new Float64Array(0)) });
    const most = Math.max(1, ...sides.map((s) => s.lanes.length)), lane = most > 3 ? Math.max(4, Math.floor(60 / most)) : LANE, height = most * lane + STRIP + 3;
    const row = { name, sides, lane, height, y };
    y += 2 * height + PAIR_GAP;
    return row;
  });
  return y;
}
/** The spans of a list that are lit: those of the chosen line in this run. */
function lightList(list, side) {
  list.lit = null;
  if (!chosen) return;
  list.lit = new Int32Array(list.start.length + 1);
  for (let i = 0; i < list.start.length; i++) list.lit[i + 1] = list.lit[i] + (chosen[side] && list.place[i] === chosen[side] ? 1 : 0);
}

function drawCompare() {
  if (byId("timeline").clientWidth <= left()) return;
  const height = layoutRows(), f = frame(byId("timeline"), height, view, left()), { g } = f;
  drawAxis(f, 0, height);
  for (const row of rows) {
    text(g, row.name, 0, row.y + 8, css("--text"), narrow.matches ? 10.5 : 12);
    row.sides.forEach((side, n) => {
      const y = row.y + n * row.height;
      if (!narrow.matches) text(g, SIDES[n], f.left - 6, y + row.lane / 2 + 1, css("--dim"), 10, "right");
      g.save();
      g.beginPath(); g.rect(f.left, y, f.width - f.left, row.height); g.clip();
      side.lanes.forEach((list, l) => {
        drawSpans(f, list, y + 1 + l * row.lane, row.lane - 2, (i) => colors.get(list.name[i]), css("--fade"));
        drawNames(f, list, y + 1 + l * row.lane, row.lane - 2, (i) => list.name[i]);
      });
      drawSpans(f, side.stalls, y + Math.max(1, side.lanes.length) * row.lane, STRIP, (i) => causeColor(kindOf(side.stalls.name[i])), "");
      g.restore();
    });
    g.fillStyle = css("--edge"); g.fillRect(0, row.y + 2 * row.height + PAIR_GAP / 2 - 1, f.width, 1);
  }
  // Where each of the two runs ends.
  diff.sides.forEach((side, n) => {
    if (!side.latency) return;
    const x = f.x(side.latency);
    if (x < f.left || x > f.width) return;
    g.fillStyle = css("--accent"); g.globalAlpha = n ? 1 : 0.5; g.fillRect(x - 1, TOP - 4, 1.5, height - TOP); g.globalAlpha = 1;
  });
}
/** The kind of a cause by its words. */
function kindOf(cause) {
  if (cause.startsWith("semaphore")) return "semaphore";
  if (cause.startsWith("PSUM bank")) return "bank";
  return CAUSES[cause] ? cause : "semaphore";
}

function hit(x, y) {
  const f = { left: left(), k: Math.max(1, byId("timeline").clientWidth - left()) / (view.to - view.from) };
  const row = rows.find((r) => y >= r.y && y < r.y + 2 * r.height);
  if (!row || x < f.left) return null;
  const side = y < row.y + row.height ? 0 : 1, into = y - row.y - side * row.height, t = view.from + (x - f.left) / f.k, list = row.sides[side].lanes[Math.floor(into / row.lane)];
  let i = list ? spanAt(list, t, 3 / f.k) : -1;
  if (i >= 0) return { side, list, i };
  i = spanAt(row.sides[side].stalls, t, 1 / f.k);
  return i >= 0 ? { side, list: row.sides[side].stalls, i, row: row.name } : null;
}
function choose(places) {
  chosen = places;
  runs.forEach((run, side) => run.forEach((row) => row.lanes.forEach((list) => lightList(list, side))));
  byId("chosen").replaceChildren(...(places ? [places[1] || places[0], " ", link("clear", () => choose(null))] : []));
  document.body.dataset.chosen = places ? places.join() : "";
  drawCompare();
  table?.draw(true);
}
/** The line of a span in both runs. */
const pairOf = (side, place) => diff.difference.places.find((p) => p[side] === place) || [side ? "" : place, side ? place : ""];

function setView(from, to) {
  const span = Math.min(Math.max(to - from, 20), end);
  view.from = Math.min(Math.max(from, 0), end - span); view.to = view.from + span;
  tip(null);
  requestAnimationFrame(drawCompare);
}
const zoom = (factor, center = (view.from + view.to) / 2) => setView(center - (center - view.from) * factor, center + (view.to - center) * factor);
const move = (part) => { const d = (view.to - view.from) * part; setView(view.from + d, view.to + d); };

function listenCompare() {
  const canvas = byId("timeline");
  let drag = null;
  canvas.addEventListener("wheel", (e) => {
    const k = Math.max(1, canvas.clientWidth - left()) / (view.to - view.from);
    if (e.ctrlKey || e.metaKey || e.altKey) { e.preventDefault(); zoom(Math.exp(Math.max(-1, Math.min(1, e.deltaY / 240))), view.from + (e.offsetX - left()) / k); }
    else if (e.shiftKey || Math.abs(e.deltaX) > Math.abs(e.deltaY)) { e.preventDefault(); move((e.deltaX || e.deltaY) / 800); }
  }, { passive: false });
  canvas.addEventListener("pointerdown", (e) => { drag = { x: e.clientX, moved: false }; canvas.setPointerCapture(e.pointerId); });
  canvas.addEventListener("pointermove", (e) => {
    if (drag) {
      if (Math.abs(e.clientX - drag.x) > 3) drag.moved = true;
      if (drag.moved) { move(-(e.clientX - drag.x) / Math.max(1, canvas.clientWidth - left())); drag.x = e.clientX; }
      return;
    }
    const h = hit(e.offsetX, e.offsetY);
    tip(h && `${SIDES[h.side]}: ${h.row ? `${h.row} waits, ` : ""}${h.list.name[h.i]}  ${time(h.list.end[h.i] - h.list.start[h.i])}\n${h.list.place[h.i]}\nfrom ${time(h.list.start[h.i])}`, e);
  });
  canvas.addEventListener("pointerup", (e) => {
    if (drag && !drag.moved) { const h = hit(e.offsetX, e.offsetY); choose(h && h.list.place[h.i] ? pairOf(h.side, h.list.place[h.i]) : null); }
    drag = null;
  });
  canvas.addEventListener("pointerleave", () => tip(null));
  const keys = { ArrowLeft: () => move(-0.15), ArrowRight: () => move(0.15), a: () => move(-0.15), d: () => move(0.15), w: () => zoom(0.7), s: () => zoom(1 / 0.7), 0: () => setView(0, end), Escape: () => choose(null) };
  canvas.addEventListener("keydown", (e) => { if (keys[e.key] && !e.ctrlKey && !e.metaKey && !e.altKey) { e.preventDefault(); keys[e.key](); } });
  byId("fit").addEventListener("click", () => setView(0, end));
  byId("zoom-in").addEventListener("click", () => zoom(0.6));
  byId("zoom-out").addEventListener("click", () => zoom(1 / 0.6));
  window.addEventListener("resize", drawCompare);
  window.addEventListener("scroll", () => tip(null), { passive: true });
  dark.addEventListener("change", () => { paint(); drawCompare(); });
}

let table = null;
function showChanges(id) {
  const lines = id === "lines", metrics = id === "metrics", list = diff.difference[id].map((c, i) => ({ ...c, places: lines ? diff.difference.places[i] : null }));
  const value = (c, v) => id === "counts" ? number(v) : !metrics ? time(v * 1000) : /_us$/.test(c.name) ? time(v * 1000) : /_time$/.test(c.name) ? time(v * 1e9) : /bytes$/.test(c.name) ? bytes(v) : /_percent$/.test(c.name) ? `${v.toFixed(1)}%` : /flops$/.test(c.name) ? flops(v) : Number.isInteger(v) ? number(v) : short(v);
  const delta = (c) => c.after - c.before, most = Math.max(1e-12, ...list.map((c) => Math.abs(delta(c))));
  const part = (c) => c.before ? delta(c) / Math.abs(c.before) : 0, sign = (x) => x > 0 ? "+" : x < 0 ? "\u2212" : "";
  const columns = [
    { id: "name", title: { lines: "line", causes: "row and cause", engines: "engine", opcodes: "engine and instruction", counts: "engine and instruction", metrics: "metric" }[id], get: (c) => c.name, text: true },
    { id: "before", title: "before", get: (c) => c.before, show: (c) => value(c, c.before) },
    { id: "after", title: "after", get: (c) => c.after, show: (c) => value(c, c.after) },
    { id: "delta", title: "difference", get: (c) => Math.abs(delta(c)), show: (c) => delta(c) ? sign(delta(c)) + value(c, Math.abs(delta(c))) : "", bar: (c) => metrics ? 0 : Math.abs(delta(c)) / most, tone: (c) => delta(c) > 0 ? "--more" : "--less" },
    { id: "percent", title: "%", get: part, show: (c) => c.before ? `${sign(part(c))}${Math.abs(part(c) * 100).toFixed(1)}%` : delta(c) ? "new" : "" },
  ];
  const pick = lines ? (c) => choose(c.places) : null;
  table = new DataTable(el("div"), { columns, sort: metrics ? "name" : "delta", pick, current: (c) => !!chosen && !!c.places && c.places.join() === chosen.join(), label: id });
  byId("table").replaceChildren(table.host);
  byId("choose").replaceChildren(table.chooser);
  table.set(list);
  for (const b of byId("tabs").children) b.setAttribute("aria-selected", String(b.id === `tab-${id}`));
}

/** Colours by instruction, the same in both runs, those that take most time first. */
function paint() {
  const taken = new Map();
  for (const run of runs) for (const row of run.values()) for (const list of row.lanes) list.name.forEach((n, i) => taken.set(n, (taken.get(n) || 0) + list.end[i] - list.start[i]));
  colors = new Map([...taken].sort((a, b) => b[1] - a[1]).map(([n], i) => [n, hue(i)]));
  const kinds = new Set(runs.flatMap((run) => [...run.values()].flatMap((row) => row.stalls.name.map(kindOf))));
  byId("legend").replaceChildren(...[...colors].slice(0, 14).map(([n, c]) => swatch(c, n)), ...Object.keys(CAUSES).filter((k) => kinds.has(k)).map((k) => swatch(causeColor(k), `waits: ${k}`, true)));
}

function showVerdict() {
  const [a, b] = diff.sides.map((s) => s.latency), change = b - a;
  byId("verdict").textContent = !a || !b ? "Two runs" : change === 0 ? `No change: ${time(a)}` : `${time(a)} \u2192 ${time(b)}: ${percent(Math.abs(change), a)} ${change < 0 ? "faster" : "slower"}`;
  byId("notes").replaceChildren(...diff.difference.notes.map((n) => el("li", n)));
  diff.sides.forEach((s, n) => {
    const bar = el("div", null, { class: "stack" });
    bar.append(el("span", null, { style: `width:${s.latency / Math.max(a, b, 1) * 100}%;background:var(--accent)` }));
    byId("runs").append(el("span", `${SIDES[n]}: ${s.file}`), bar, el("span", s.latency ? time(s.latency) + (diff.difference.latency_valid[n] ? "" : " (not valid)") : "", { class: "n" }));
  });
}

async function startCompare() {
  diff = JSON.parse(byId("data").textContent);
  const texts = document.querySelectorAll("script.columns");
  runs = await Promise.all(diff.sides.map(async (side, n) => readRun(side, await decode(side.columns, texts[n].textContent))));
  end = Math.max(20, ...diff.sides.map((s) => s.latency), ...runs.flatMap((run) => [...run.values()].flatMap((row) => [...row.lanes, row.stalls].map((l) => l.end[l.end.length - 1] || 0))));
  view.to = end;
  showVerdict(); paint();
  byId("time").hidden = !runs.some((r) => r.size);
  for (const [id, title] of [["lines", `Lines (${diff.difference.lines_are})`], ["causes", "Causes"], ["engines", "Engines"], ["opcodes", "Instructions"], ["counts", "Counts"], ["metrics", "Metrics"]]) {
    if (!diff.difference[id].length) continue;
    const b = el("button", title, { type: "button", role: "tab", id: `tab-${id}` });
    b.addEventListener("click", () => showChanges(id));
    byId("tabs").append(b);
  }
  const first = byId("tabs").firstChild;
  if (first) first.click(); else byId("tables").hidden = true;
  choose(null); listenCompare();
  document.body.dataset.ready = "1";
}
startCompare();
