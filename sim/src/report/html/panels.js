// Everything beside the canvases: selection, source, verdict, roofline, findings.

const byId = (id) => document.getElementById(id);
let fileShown = -1;

function go(file, line, text) {
  const a = el("a", text, { role: "button", tabindex: "0" });
  const act = () => { selectLine(file, line); byId("source").querySelector(".on")?.scrollIntoView({ block: "center" }); };
  a.addEventListener("click", act);
  a.addEventListener("keydown", (e) => { if (e.key === "Enter") act(); });
  return a;
}
function toEvent(i, text) {
  const a = el("a", text, { role: "button", tabindex: "0" });
  a.addEventListener("click", () => selectEvent(i));
  a.addEventListener("keydown", (e) => { if (e.key === "Enter") selectEvent(i); });
  return a;
}
const fileIndex = (name) => data.files.findIndex((f) => f[0] === name);

function pairs(list) {
  const dl = el("dl");
  for (const [key, value] of list) {
    if (value === "" || value === null || value === undefined) continue;
    dl.append(el("dt", key));
    const dd = el("dd");
    dd.append(value);
    dl.append(dd);
  }
  return dl;
}
const eventName = (i) => S[E.label[i]] + (E.line[i] ? " (line " + E.line[i] + ")" : "");

function showDetail() {
  const box = byId("detail"), i = state.event;
  box.replaceChildren();
  const body = document.body.dataset;
  body.event = String(i); body.line = state.line > 0 ? String(state.line) : "";
  body.highlighted = String(state.line > 0 ? perLine.get(state.file + ":" + state.line)?.events.length || 0 : 0);
  if (i >= 0) {
    const from = E.from[i];
    const list = [
      ["instruction", S[E.label[i]]],
      ["where", E.line[i] ? go(E.file[i], E.line[i], placeOf(i)) : ""],
      ["iteration", S[E.trail[i]]],
      ["operands", S[E.operands[i]]],
      ["row", data.rows[E.row[i]].name + (queueRow.has(i) ? ", then " + data.rows[queueRow.get(i)].name : "")],
      ["engine", `${us(E.start[i], 3)} to ${us(E.end[i], 3)} (${us(E.end[i] - E.start[i], 3)})`],
      ["complete", us(E.done[i], 3)],
      ["bytes", E.bytes[i] ? bytes(E.bytes[i]) : ""],
      ["waited", E.wait[i] ? `${us(E.wait[i], 3)}: ${S[E.cause[i]]}` : "not at all"],
      ["let go by", from >= 0 ? toEvent(from, S[E.via[i]]) : S[E.via[i]]],
      ["critical path", E.critical[i] ? us(E.critical[i], 3) : "not on it"],
    ];
    box.append(pairs(list));
  } else if (state.line > 0) {
    const l = perLine.get(state.file + ":" + state.line);
    const name = data.files[state.file]?.[0] + ":" + state.line;
    if (!l) return box.append(el("p", `${name}: no instruction`));
    const waits = new Map();
    let wait = 0, engine = 0;
    for (const e of l.events) {
      wait += E.wait[e]; engine += E.end[e] - E.start[e];
      if (E.wait[e]) waits.set(E.cause[e], (waits.get(E.cause[e]) || 0) + E.wait[e]);
    }
    const worst = [...waits].sort((a, b) => b[1] - a[1]).slice(0, 3).map(([c, t]) => `${S[c]} ${us(t)}`).join(", ");
    box.append(el("p", `${name}: ${l.events.length} instruction${l.events.length === 1 ? "" : "s"}`));
    box.append(pairs([["on the engine", us(engine)], ["critical path", us(l.critical)], ["waited", us(wait)], ["for", worst]]));
    const p = el("p", "first: ");
    p.append(toEvent(l.events[0], eventName(l.events[0])));
    box.append(p);
  } else {
    box.append(el("p", "Click an event: what it waited for, its operands. Click a line: its events.", { class: "hint" }));
  }
}
function showStall(hit) {
  const row = data.rows[hit.row], s = hit.stall, e = row.event[s];
  state.event = -1; changed();
  byId("detail").replaceChildren(pairs([
    ["row", row.name], ["stalled", `${us(row.start[s], 3)} to ${us(row.end[s], 3)} (${us(row.end[s] - row.start[s], 3)})`],
    ["cause", S[row.cause[s]]], ["waited for", e >= 0 ? toEvent(e, eventName(e)) : ""],
  ]));
}

function showSource() {
  const want = state.file >= 0 ? state.file : fileShown >= 0 ? fileShown : bestFile();
  const list = byId("source");
  if (want !== fileShown) {
    fileShown = want;
    list.replaceChildren();
    const lines = data.files[want]?.[1];
    const most = Math.max(1, ...[...perLine.values()].map((l) => l.critical));
    if (!lines) list.append(el("li", "(source not at hand)"));
    (lines || []).forEach((text, n) => {
      const l = perLine.get(want + ":" + (n + 1));
      const li = el("li", null, { "data-line": n + 1, class: l ? "has" : "" });
      li.append(el("span", n + 1, { class: "no" }));
      const percent = l ? l.critical / data.elapsed * 100 : 0;
      const cost = el("span", l && percent >= 0.05 ? percent.toFixed(1) + "%" : "", { class: "cost" });
      if (l) cost.style.background = `linear-gradient(to left, hsl(28 80% 50% / .35) ${l.critical / most * 100}%, transparent 0)`;
      li.append(cost, el("span", text || " "));
      if (l) {
        li.tabIndex = 0;
        const act = () => selectLine(want, state.line === n + 1 && state.file === want && state.event < 0 ? -1 : n + 1);
        li.addEventListener("click", act);
        li.addEventListener("keydown", (e) => { if (e.key === "Enter") act(); });
      }
      list.append(li);
    });
    for (const b of byId("files").children) b.setAttribute("aria-selected", String(Number(b.dataset.file) === want));
  }
  for (const li of list.querySelectorAll(".on")) li.classList.remove("on");
  if (state.line > 0 && state.file === want) {
    const li = list.querySelector(`[data-line="${state.line}"]`);
    if (li) {
      li.classList.add("on");
      const top = li.offsetTop;
      if (top < list.scrollTop || top > list.scrollTop + list.clientHeight - 40) list.scrollTop = top - list.clientHeight / 2;
    }
  }
}
function bestFile() {
  let best = 0, most = -1;
  data.files.forEach((_, f) => {
    let n = 0;
    for (const [key, l] of perLine) if (key.startsWith(f + ":")) n += l.critical + l.events.length;
    if (n > most) [best, most] = [f, n];
  });
  return best;
}

function table(id, heads, rows) {
  const t = byId(id), tr = el("tr");
  heads.forEach(([text, number]) => tr.append(el("th", text, number ? { class: "n" } : {})));
  t.append(tr);
  for (const cells of rows) {
    const row = el("tr");
    cells.forEach((cell, i) => {
      const td = el("td", null, heads[i][1] ? { class: "n" } : {});
      td.append(cell);
      row.append(td);
    });
    t.append(row);
  }
}
const atPlace = (place) => {
  const cut = place.lastIndexOf(":"), f = fileIndex(place.slice(0, cut));
  return f >= 0 ? go(f, Number(place.slice(cut + 1)), place) : el("span", place);
};

function roofline() {
  const svg = byId("roofline"), r = data.roofline, NS = "http" + "://www.w3.org/2000/svg";
  const add = (name, attributes, text) => {
    const e = document.createElementNS(NS, name);
    for (const key in attributes) e.setAttribute(key, attributes[key]);
    if (text) e.textContent = text;
    svg.append(e);
  };
  const x0 = 56, x1 = 446, y0 = 240, y1 = 16;
  const lo = Math.log10(Math.max(0.1, Math.min(1, r.flops_per_byte || 1) / 2)), hi = Math.log10(Math.max(r.ridge_flops_per_byte * 8, r.flops_per_byte * 2));
  const top = Math.log10(r.peak_tflops * 1.6), low = Math.min(top - 3, Math.log10(Math.max(r.achieved_tflops, 1e-5)) - 0.3);
  const x = (v) => x0 + (Math.log10(Math.max(v, 1e-9)) - lo) / (hi - lo) * (x1 - x0);
  const y = (v) => y0 - (Math.log10(Math.max(v, 1e-9)) - low) / (top - low) * (y0 - y1);
  add("line", { x1: x0, y1: y0, x2: x1, y2: y0, class: "axis" });
  add("line", { x1: x0, y1: y1, x2: x0, y2: y0, class: "axis" });
  for (let p = Math.ceil(lo); p <= hi; p++) add("text", { x: x(10 ** p), y: y0 + 15, "text-anchor": "middle" }, String(+(10 ** p).toPrecision(3)));
  for (let p = Math.ceil(low); p <= top; p++) add("text", { x: x0 - 6, y: y(10 ** p) + 4, "text-anchor": "end" }, String(+(10 ** p).toPrecision(3)));
  add("text", { x: (x0 + x1) / 2, y: 274, "text-anchor": "middle" }, "tensor operations for each byte of HBM");
  add("text", { x: 4, y: 10 }, "TFLOP/s");
  const left = 10 ** lo, roof = (v) => Math.min(r.peak_tflops, v * r.peak_gbytes_per_s / 1e3);
  add("path", { class: "roof", d: `M${x(left)} ${Math.min(y0, y(roof(left)))} L${x(r.ridge_flops_per_byte)} ${y(r.peak_tflops)} L${x1} ${y(r.peak_tflops)}` });
  add("text", { x: x1, y: y(r.peak_tflops) - 5, "text-anchor": "end" }, `peak ${r.peak_tflops.toFixed(1)} TFLOP/s`);
  if (r.flops_per_byte > 0) {
    const px = x(r.flops_per_byte), py = y(r.achieved_tflops);
    add("line", { x1: px, y1: py, x2: px, y2: y(r.attainable_tflops), class: "drop" });
    add("circle", { cx: px, cy: py, r: 5, class: "point" });
    const right = px < 300;
    add("text", { x: px + (right ? 9 : -9), y: py + 4, "text-anchor": right ? "start" : "end", class: "here" }, `${r.achieved_tflops.toFixed(2)} of ${r.attainable_tflops.toFixed(2)}`);
  }
  svg.setAttribute("aria-label", data.roofline_text);
  byId("roofline-text").textContent = data.roofline_text + ".";
}

function build() {
  byId("kernel").append(data.kernel, el("small", `${us(data.elapsed)}${data.validity} on ${data.target}`));
  if (ranks.length > 1) {
    const choice = byId("rank");
    ranks.forEach((r, i) => choice.append(el("option", `rank ${i}: ${us(r.elapsed)}`, i === rank ? { value: i, selected: "" } : { value: i })));
    choice.addEventListener("change", () => { location.hash = "rank=" + choice.value; });
    choice.parentElement.hidden = false;
  }
  byId("error").textContent = data.error;
  byId("error").hidden = !data.error;
  byId("sentence").textContent = data.verdict;
  data.shares.filter((s) => s[1] > 0).forEach(([name, time], i) => {
    const color = `hsl(${HUES[i % HUES.length]} 50% ${dark.matches ? 55 : 58}%)`, percent = time * 1e5 / data.elapsed;
    const part = el("span", null, { title: `${name} ${percent.toFixed(1)}%`, style: `width:${percent}%;background:${color}` });
    byId("shares").append(part);
    const li = el("li", null);
    li.append(el("i", null, { style: `background:${color}` }), `${name} ${percent.toFixed(1)}%`);
    byId("share-legend").append(li);
  });
  labels.slice(0, 14).forEach((l) => {
    const li = el("li");
    li.append(el("i", null, { style: `background:${labelColor(l)}` }), S[l]);
    byId("legend").append(li);
  });
  const kinds = new Set(data.rows.filter((r) => r.engine || r.count).flatMap((r) => [...new Set(r.cause)]).map((c) => data.kinds[c]));
  for (const k of Object.keys(CAUSES)) if (kinds.has(k)) {
    const li = el("li");
    li.append(el("i", null, { class: "thin", style: `background:${CAUSES[k]}` }), "waits: " + k);
    byId("legend").append(li);
  }
  data.files.forEach((f, i) => {
    if (![...perLine.keys()].some((key) => key.startsWith(i + ":"))) return;
    const b = el("button", f[0].split("/").pop(), { type: "button", role: "tab", title: f[0], "data-file": i });
    b.addEventListener("click", () => { state.file = i; state.line = -1; state.event = -1; changed(); });
    byId("files").append(b);
  });
  table("lines", [["where"], ["instruction"], ["count", 1], ["critical \u00b5s", 1], ["%", 1], ["waits \u00b5s", 1], ["mostly for"]],
    data.lines.slice(0, 12).map((l) => [
      l.line ? atPlace(l.file + ":" + l.line) : "", l.instruction, String(l.count), l.critical_us.toFixed(2), l.critical_percent.toFixed(1),
      l.wait_us.toFixed(2), l.wait_cause,
    ]));
  table("remedies", [["what"], ["gain \u00b5s", 1], ["%", 1]], data.remedies.map(([what, gain, percent, places]) => {
    const box = el("span", what + " ");
    places.slice(0, 3).forEach((p) => box.append(atPlace(p), " "));
    return [box, gain.toFixed(2), percent.toFixed(1)];
  }));
  if (!data.remedies.length) byId("remedies").replaceWith(el("p", "None applies."));
  table("rows", [["row"], ["instructions", 1], ["busy %", 1], ["waits mostly for"]], shown.map((r) => {
    const row = data.rows[r], sums = new Map();
    row.cause.forEach((c, i) => sums.set(c, (sums.get(c) || 0) + row.end[i] - row.start[i]));
    const worst = [...sums].filter(([c]) => !["finished", "start-up"].includes(data.kinds[c])).sort((a, b) => b[1] - a[1])[0];
    return [row.name, String(row.count), row.busy_percent.toFixed(1), worst ? `${S[worst[0]]}, ${us(worst[1])}` : ""];
  }));
  byId("confidence").textContent = data.confidence.filter((c) => c[1] > 0)
    .map(([name, time]) => `${name} ${(time * 1e5 / data.elapsed).toFixed(0)}%`).join(", ");
  for (const f of data.findings) {
    const li = el("li");
    li.append(el("span", f.severity, { class: f.severity }), ` [${f.id}] ${f.message} `);
    const at = fileIndex(f.file);
    if (f.line && at >= 0) li.append(go(at, f.line, f.file + ":" + f.line));
    byId("findings").append(li);
  }
  if (!data.findings.length) byId("findings").append(el("li", "none"));
  roofline();
  byId("fit").addEventListener("click", () => { setView(0, data.elapsed); writeHash(); draw(); });
  byId("zoom-in").addEventListener("click", () => zoom(0.6));
  byId("zoom-out").addEventListener("click", () => zoom(1 / 0.6));
  byId("only-critical").addEventListener("change", (e) => { state.critical = e.target.checked; changed(); });
  byId("find").addEventListener("change", (e) => {
    const [, file, line] = e.target.value.match(/^(?:(.*):)?\s*(\d+)\s*$/) || [];
    if (!line) return selectLine(-1, -1);
    const f = file ? data.files.findIndex((x) => x[0].endsWith(file)) : fileShown;
    selectLine(Math.max(f, 0), Number(line));
  });
}

listeners.push(showDetail, showSource);
build();
window.addEventListener("hashchange", () => {
  // Everything on the page is of one rank.
  if (rankOfHash() !== rank) return location.reload();
  state.event = -1; state.line = -1; readHash();
});
readHash();
Object.assign(document.body.dataset, { ready: "1", rank: String(rank), events: String(count), rows: String(shown.length) });
