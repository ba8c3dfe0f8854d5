// The source, with what each line costs in the range.

let fileShown = -1, sums = null;

const METRICS = [
  ["critical path", (g) => g.critical, (v) => percent(v, sums.to - sums.from)],
  ["engine time", (g) => g.engine, time],
  ["transfer time", (g) => g.transfer, time],
  ["waits", (g) => g.wait, time],
  ["HBM bytes", (g) => g.read + g.write, bytes],
  ["FLOP", (g) => g.flops, flops],
  ["instructions", (g) => g.count, number],
];
let metric = 0;

/** The file with most instructions and critical path. */
function mainFile() {
  const most = new Map();
  for (const [key, l] of perLine) { const f = Number(key.split(":")[0]); most.set(f, (most.get(f) || 0) + l.critical + l.events.length); }
  return [...most].sort((a, b) => b[1] - a[1])[0]?.[0] ?? 0;
}

function buildSource() {
  METRICS.forEach(([name], i) => byId("metric").append(el("option", name, { value: i })));
  byId("metric").addEventListener("change", (e) => { metric = Number(e.target.value); showCosts(); });
  const used = new Set([...perLine.keys()].map((key) => Number(key.split(":")[0])));
  data.files.forEach(([name], i) => {
    if (!used.has(i)) return;
    const b = el("button", fileName(name), { type: "button", role: "tab", title: name, "data-file": i });
    b.addEventListener("click", () => { select({}); showFile(i); });
    byId("files").append(b);
  });
  byId("files").hidden = byId("files").children.length < 2;
}

function showFile(file) {
  if (file === fileShown) return;
  fileShown = file;
  const list = byId("source"), lines = data.files[file]?.[1];
  byId("source-title").textContent = data.files[file] ? fileName(data.files[file][0]) : "Source";
  byId("source-title").title = data.files[file]?.[0] || "";
  list.replaceChildren(...(lines || ["(the source is not at hand)"]).map((code, n) => {
    const li = el("li", null, lines ? { "data-line": n + 1 } : {});
    li.append(el("span", lines ? n + 1 : "", { class: "no" }), el("span", "", { class: "cost" }), el("span", code || " ", { class: "code" }));
    if (lines && perLine.has(lineKey(file, n + 1))) {
      li.className = "has"; li.tabIndex = 0;
      const act = () => selectLine(file, state.line === n + 1 && state.file === file && state.event < 0 ? -1 : n + 1);
      li.addEventListener("click", act);
      li.addEventListener("keydown", (e) => { if (e.key === "Enter") act(); });
    }
    return li;
  }));
  for (const b of byId("files").children) b.setAttribute("aria-selected", String(Number(b.dataset.file) === file));
  showCosts();
  showCostliest();
}

/** Brings the line with most of the critical path into view. */
function showCostliest() {
  const list = byId("source");
  const here = byLine(sums).filter((g) => Number(g.key.split(":")[0]) === fileShown && !g.key.endsWith(":0"));
  const most = here.reduce((a, b) => (a && a.critical >= b.critical ? a : b), null);
  const li = most && list.querySelector(`[data-line="${most.key.split(":")[1]}"]`);
  list.scrollTop = li ? Math.max(0, li.offsetTop - list.clientHeight / 2) : 0;
}

/** Writes the chosen cost before each line. */
function showCosts() {
  const [, of, show] = METRICS[metric], costs = new Map();
  for (const g of byLine(sums)) { const [f, line] = g.key.split(":").map(Number); if (f === fileShown && line) costs.set(line, of(g)); }
  const most = Math.max(0, ...costs.values());
  for (const li of byId("source").children) {
    const cost = costs.get(Number(li.dataset.line)) || 0, span = li.children[1];
    span.textContent = cost > 0 && cost >= most / 2000 ? show(cost) : "";
    span.style.background = cost > 0 ? `linear-gradient(to left, var(--bar) ${cost / most * 100}%, transparent 0)` : "";
  }
}

function showSource() {
  showFile(state.file >= 0 ? state.file : fileShown >= 0 ? fileShown : mainFile());
  const list = byId("source");
  for (const li of list.querySelectorAll(".on")) li.classList.remove("on");
  const line = state.tensor >= 0 ? T.line[state.tensor] : state.line;
  if (line <= 0 || state.tensor >= 0 && T.file[state.tensor] !== fileShown) return;
  const li = list.querySelector(`[data-line="${line}"]`);
  if (!li) return;
  li.classList.add("on");
  if (li.offsetTop < list.scrollTop || li.offsetTop > list.scrollTop + list.clientHeight - 40) list.scrollTop = li.offsetTop - list.clientHeight / 2;
}
