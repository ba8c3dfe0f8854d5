// The head of the page, findings, remedies and roofline; and the start of everything.

function showHead() {
  byId("kernel").replaceChildren(data.kernel, el("small", `on ${data.target}`));
  byId("latency").textContent = time(data.elapsed) + data.validity;
  byId("sentence").textContent = data.verdict;
  byId("error").textContent = data.error;
  byId("error").hidden = !data.error;
  if (data.error_us) errorBar(...data.error_us.map((us) => us * 1000));
  data.shares.filter((s) => s[1] > 0).forEach(([name, t], i) => {
    const share = percent(t * 1000, data.elapsed);
    byId("shares").append(el("span", null, { title: `${name} ${share}`, style: `width:${share};background:${hue(i)}` }));
    byId("share-legend").append(swatch(hue(i), `${name} ${share}`));
  });
}
/** The interval in which the latency on hardware is expected, with the prediction in it. */
function errorBar(low, high) {
  const bar = byId("error-bar"), end = high * 1.08, at = (t) => `${t / end * 100}%`;
  bar.append(el("span", null, { class: "interval", style: `left:${at(low)};width:${at(high - low)}` }), el("span", null, { class: "mark", style: `left:${at(data.elapsed)}` }));
  bar.setAttribute("aria-label", `predicted ${time(data.elapsed)}, on hardware ${time(low)} to ${time(high)}`);
  bar.title = bar.getAttribute("aria-label");
  byId("error-ends").textContent = `${time(low)} to ${time(high)} on hardware`;
  bar.parentElement.hidden = false;
}

const atPlace = (place) => {
  const cut = place.lastIndexOf(":"), f = data.files.findIndex((x) => x[0] === place.slice(0, cut)), line = Number(place.slice(cut + 1));
  return f >= 0 ? goLine(f, line) : el("span", place);
};

const SEVERITIES = ["error", "warning", "info"], FIRST_FINDINGS = 5;
function showFindings() {
  byId("found").hidden = !data.findings.length;
  const order = [...data.findings].sort((a, b) => SEVERITIES.indexOf(a.severity) - SEVERITIES.indexOf(b.severity));
  const counts = SEVERITIES.map((s) => [s, order.filter((f) => f.severity === s).length]).filter((c) => c[1] > 0);
  byId("found-title").textContent = `Findings: ${counts.map(([s, n]) => s === "info" ? `${n} info` : plural(n, s)).join(", ")}`;
  byId("findings").replaceChildren(...order.map((f, i) => {
    const li = el("li", el("span", f.severity, { class: `badge ${f.severity}` }));
    const at = data.files.findIndex((x) => x[0] === f.file);
    li.append(" ", el("code", f.id), " ", f.message, " ");
    if (f.line && at >= 0) li.append(goLine(at, f.line));
    li.hidden = i >= FIRST_FINDINGS;
    return li;
  }));
  const rest = order.length - FIRST_FINDINGS;
  if (rest > 0) {
    const all = link(`show ${number(rest)} more`, () => { for (const li of byId("findings").children) li.hidden = false; });
    byId("findings").append(el("li", all));
  }
}

function showRemedies(several) {
  const most = Math.max(...data.remedies.map((r) => r[1]), 1e-9);
  byId("remedies").replaceChildren(...data.remedies.map(([what, gain, share, places]) => {
    const li = el("li"), head = el("div", null, { class: "gain" });
    head.append(el("b", gain > 0 ? `${share.toFixed(1)}%` : "no gain"), el("span", gain > 0 ? time(gain * 1000) : gain < 0 ? time(-gain * 1000) + " slower" : "the same latency"));
    const bar = el("div", null, { class: "meter" });
    bar.append(el("span", null, { style: `width:${Math.max(0, gain / most * 100)}%` }));
    head.append(bar);
    li.append(head, el("div", [what, " "].join("")));
    li.lastChild.append(...spaced(places.slice(0, 4).map(atPlace)), places.length > 4 ? `and ${places.length - 4} more` : "");
    return li;
  }));
  if (several) { byId("remedies").append(el("li", "Not tried: a kernel is timed again alone, and what a change does among ranks is not known.", { class: "hint" })); return; }
  if (!data.remedies.length) byId("remedies").append(el("li", "None applies.", { class: "hint" }));
  byId("left-out").textContent = data.remedies_left_out.length ? `Not tried, because the kernel is long: ${data.remedies_left_out.join(", ")}.` : "";
}

function showLegend() {
  const used = [...opcodeRank.keys()];
  byId("legend").replaceChildren(
    ...used.slice(0, 14).map((o) => swatch(opcodeColor(o), S[o])),
    ...(used.length > 14 ? [el("li", `and ${used.length - 14} more instructions`)] : []),
    ...waitKinds.map((k) => swatch(causeColor(k), `waits: ${k}`, true)),
  );
}

function showRoofline() {
  const svg = byId("roofline"), r = data.roofline, NS = "http" + "://www.w3.org/2000/svg";
  const add = (name, attributes, string) => {
    const e = document.createElementNS(NS, name);
    for (const key in attributes) e.setAttribute(key, attributes[key]);
    if (string) e.textContent = string;
    svg.append(e);
  };
  const x0 = 56, x1 = 446, y0 = 240, y1 = 26;
  const lo = Math.log10(Math.max(0.1, Math.min(1, r.flops_per_byte || 1) / 2)), hi = Math.log10(Math.max(r.ridge_flops_per_byte * 8, r.flops_per_byte * 2));
  const top = Math.log10(r.peak_tflops * 1.6), low = Math.min(top - 3, Math.log10(Math.max(r.achieved_tflops, 1e-5)) - 0.3);
  const x = (v) => x0 + (Math.log10(Math.max(v, 1e-9)) - lo) / (hi - lo) * (x1 - x0);
  const y = (v) => y0 - (Math.log10(Math.max(v, 1e-9)) - low) / (top - low) * (y0 - y1);
  add("line", { x1: x0, y1: y0, x2: x1, y2: y0, class: "axis" });
  add("line", { x1: x0, y1: y1, x2: x0, y2: y0, class: "axis" });
  for (let p = Math.ceil(lo); p <= hi; p++) add("text", { x: x(10 ** p), y: y0 + 15, "text-anchor": "middle" }, String(+(10 ** p).toPrecision(3)));
  for (let p = Math.ceil(low); p <= top; p++) add("text", { x: x0 - 6, y: y(10 ** p) + 4, "text-anchor": "end" }, String(+(10 ** p).toPrecision(3)));
  add("text", { x: (x0 + x1) / 2, y: 274, "text-anchor": "middle" }, "tensor operations for each byte of HBM");
  add("text", { x: 4, y: 12 }, "TFLOP/s");
  const left = 10 ** lo, roof = (v) => Math.min(r.peak_tflops, v * r.peak_gbytes_per_s / 1e3);
  add("path", { class: "roof", d: `M${x(left)} ${Math.min(y0, y(roof(left)))} L${x(r.ridge_flops_per_byte)} ${y(r.peak_tflops)} L${x1} ${y(r.peak_tflops)}` });
  add("text", { x: x1, y: y(r.peak_tflops) - 6, "text-anchor": "end" }, `peak ${r.peak_tflops.toFixed(1)} TFLOP/s`);
  if (r.flops_per_byte > 0) {
    const px = x(r.flops_per_byte), py = y(r.achieved_tflops), right = px < 300;
    add("line", { x1: px, y1: py, x2: px, y2: y(r.attainable_tflops), class: "drop" });
    add("circle", { cx: px, cy: py, r: 5, class: "point" });
    add("text", { x: px + (right ? 9 : -9), y: py + 4, "text-anchor": right ? "start" : "end", class: "here" }, `${r.achieved_tflops.toFixed(2)} of ${r.attainable_tflops.toFixed(2)}`);
  }
  // Without a matmul there is no place under the roof.
  if (!r.flops_per_byte) svg.setAttribute("hidden", "");
  svg.setAttribute("aria-label", data.roofline_text);
  byId("roofline-text").textContent = data.roofline_text + ".";
  byId("confidence").textContent = data.confidence.filter((c) => c[1] > 0).map(([name, t]) => `${name} ${(t * 1e5 / data.elapsed).toFixed(0)}%`).join(", ");
}

function showRanks(all) {
  if (all.length < 2) return;
  const slowest = all.reduce((best, r, i) => r.elapsed > all[best].elapsed ? i : best, 0);
  all.forEach((r, i) => {
    const option = el("option", `rank ${i}: ${time(r.elapsed)}${i === slowest ? " (slowest)" : ""}`, { value: i });
    option.selected = i === rank;
    byId("rank").append(option);
  });
  byId("rank").addEventListener("change", (e) => { location.hash = "rank=" + e.target.value; });
  byId("rank").parentElement.hidden = false;
}
const rankOfHash = (all) => { const n = Number(new URLSearchParams(location.hash.slice(1)).get("rank") ?? 0); return Number.isInteger(n) && n > 0 && n < all.length ? n : 0; };

async function start() {
  const all = JSON.parse(byId("data").textContent);
  rank = rankOfHash(all);
  if (typeof DecompressionStream === "undefined") { byId("sentence").textContent = "This browser is too old for the page: it cannot decompress data."; return; }
  buildModel(all[rank], await decode(all[rank].columns, document.querySelectorAll("script.columns")[rank].textContent));
  buildKinds(); buildMemories();
  updateSums();
  showHead(); showFindings(); showRemedies(all.length > 1); showLegend(); showRoofline(); showRanks(all);
  buildSource(); buildTables(); buildSearch();
  listeners.push(updateSums, drawNow, showDetail, showSource, showTable);
  listen();
  // Everything on the page is of one rank.
  window.addEventListener("hashchange", () => { if (rankOfHash(all) !== rank) location.reload(); else readHash(); });
  dark.addEventListener("change", () => { overview = null; showLegend(); changed(); });
  readHash();
  Object.assign(document.body.dataset, { ready: "1", rank: String(rank), events: String(count), rows: String(bands.filter((b) => b.kind === "row").length) });
}
start();
