// Search over instructions, lines and tensors. What matches is lit in the timeline while the words are there.

const MOST_FOUND = 8;
let results = [], chosen = 0;

/** Whether a text has all of the words. */
const hasAll = (text, words) => { const low = text.toLowerCase(); return words.every((w) => low.includes(w)); };

function find(query) {
  const words = query.toLowerCase().split(/\s+/).filter(Boolean), out = [];
  if (!words.length) return { out, found: null };
  const counts = new Map();
  for (let i = 0; i < count; i++) counts.set(C.opcode[E.statement[i]], (counts.get(C.opcode[E.statement[i]]) || 0) + 1);
  [...counts].filter(([o]) => hasAll(S[o], words)).sort((a, b) => b[1] - a[1]).slice(0, MOST_FOUND).forEach(([o, n]) => {
    out.push({ kind: "instruction", name: S[o], more: `${number(n)} times`, act: () => { state.found = Uint8Array.from(C.opcode, (x) => x === o ? 1 : 0); select({}); } });
  });
  const place = query.trim().match(/^(?:(.*):)?(\d+)$/);
  const lines = [...perLine.keys()].map((key) => key.split(":").map(Number)).filter(([, line]) => line > 0).map(([f, line]) => ({ f, line, name: `${fileName(data.files[f][0])}:${line}`, code: (data.files[f][1]?.[line - 1] || "").trim() }));
  lines.filter((l) => place ? l.line === Number(place[2]) && data.files[l.f][0].includes(place[1] || "") : hasAll(`${l.name} ${l.code}`, words)).slice(0, MOST_FOUND)
    .forEach((l) => out.push({ kind: "line", name: l.name, more: l.code, act: () => selectLine(l.f, l.line) }));
  const named = new Map();
  for (let t = 0; t < T.name.length; t++) {
    if (T.end[t] < 0 || !hasAll(S[T.name[t]], words)) continue;
    const key = `${T.name[t]} ${T.type[t]} ${T.space[t]}`, known = named.get(key);
    if (known) known.n++; else named.set(key, { t, n: 1 });
  }
  [...named.values()].sort((a, b) => b.n - a.n).slice(0, MOST_FOUND).forEach(({ t, n }) => {
    out.push({ kind: "tensor", name: S[T.name[t]], more: `${S[T.type[t]]} ${S[T.space[t]]}${n > 1 ? `, the first of ${number(n)}` : ""}`, act: () => selectTensor(t) });
  });
  const found = new Uint8Array(C.opcode.length);
  for (let c = 0; c < found.length; c++) {
    const code = data.files[C.file[c]]?.[1]?.[C.line[c] - 1] || "";
    found[c] = hasAll(`${S[C.opcode[c]]} ${S[C.name[c]]} ${S[C.operands[c]]} ${placeOf(c)} ${code}`, words) ? 1 : 0;
  }
  return { out, found };
}

function showResults(list) {
  results = list; chosen = 0;
  const box = byId("results");
  box.replaceChildren(...list.map((r, i) => {
    const b = el("li", null, { role: "option", id: `result-${i}` });
    b.append(el("span", r.kind, { class: "kind" }), el("b", r.name), el("span", r.more, { class: "more" }));
    b.addEventListener("pointerdown", (e) => { e.preventDefault(); choose(i); });
    return b;
  }));
  if (!list.length) box.append(el("li", "nothing found", { class: "hint" }));
  box.hidden = false;
  markChosen();
}
function markChosen() {
  [...byId("results").children].forEach((li, i) => li.setAttribute("aria-selected", String(i === chosen)));
  byId("search").setAttribute("aria-activedescendant", `result-${chosen}`);
}
function choose(i) { hideResults(); results[i]?.act(); }
function hideResults() { byId("results").hidden = true; byId("search").setAttribute("aria-expanded", "false"); }

function buildSearch() {
  const input = byId("search");
  const look = () => {
    const { out, found } = find(input.value);
    state.found = found;
    document.body.dataset.found = found ? String(out.length) : "";
    select({});
    if (found) { showResults(out); input.setAttribute("aria-expanded", "true"); } else hideResults();
  };
  let timer = 0;
  input.addEventListener("input", () => { clearTimeout(timer); timer = setTimeout(look, count > 50000 ? 250 : 60); });
  input.addEventListener("keydown", (e) => {
    if (e.key === "Enter") { clearTimeout(timer); if (byId("results").hidden) look(); else choose(chosen); }
    else if (e.key === "Escape") { input.value = ""; look(); input.blur(); }
    else if (e.key === "ArrowDown" || e.key === "ArrowUp") {
      e.preventDefault();
      chosen = (chosen + (e.key === "ArrowDown" ? 1 : results.length - 1)) % Math.max(1, results.length);
      markChosen();
    }
  });
  input.addEventListener("blur", hideResults);
}
