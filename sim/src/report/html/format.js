// Numbers in units for reading, colours, and elements.

const TIME_UNITS = [[1e9, "s"], [1e6, "ms"], [1e3, "\u00b5s"], [1, "ns"]];

/** Three digits, four from 100: 6.01, 74.6, 220.4. */
function short(x) {
  const size = Math.abs(x);
  return x.toFixed(size >= 1000 ? 0 : size >= 10 ? 1 : size >= 1 ? 2 : 3);
}
/** Nanoseconds as 812 ns, 6.01 µs, 74.6 ms. */
function time(ns) {
  const [unit, name] = TIME_UNITS.find(([u]) => Math.abs(ns) >= u) || TIME_UNITS[3];
  return unit === 1 ? `${Math.round(ns)} ns` : `${short(ns / unit)} ${name}`;
}
/** A time on an axis: in the unit of the axis' end, with the decimals that tell two marks apart. */
function axisTime(ns, step, end) {
  const [unit, name] = TIME_UNITS.find(([u]) => end >= u) || TIME_UNITS[3];
  return `${(ns / unit).toFixed(Math.min(6, Math.max(0, -Math.floor(Math.log10(step / unit) + 1e-9))))} ${name}`;
}
function scaled(n, base, names) {
  let i = 0;
  while (Math.abs(n) >= base * 9.995 / 10 && i < names.length - 1) { n /= base; i++; }
  return `${i === 0 && Number.isInteger(n) ? n : short(n)} ${names[i]}`;
}
const bytes = (n) => scaled(n, 1024, ["B", "KiB", "MiB", "GiB", "TiB"]);
const flops = (n) => scaled(n, 1000, ["FLOP", "kFLOP", "MFLOP", "GFLOP", "TFLOP", "PFLOP"]);
const percent = (part, of) => of > 0 ? `${(part * 100 / of).toFixed(1)}%` : "";
const number = (n) => Math.round(n).toLocaleString("en-US");
const plural = (n, what) => `${number(n)} ${what}${n === 1 ? "" : "s"}`;
const fileName = (path) => path.split(/[/\\]/).pop();

const dark = matchMedia("(prefers-color-scheme: dark)");
const narrow = matchMedia("(max-width: 900px)");
const styles = new Map();
/** A colour of the style sheet. */
function css(name) {
  if (!styles.has(name)) styles.set(name, getComputedStyle(document.documentElement).getPropertyValue(name).trim());
  return styles.get(name);
}
dark.addEventListener("change", () => styles.clear());

const HUES = [211, 28, 145, 271, 350, 185, 60, 310, 95, 235];
/** The colour of the nth of a set; neighbours differ. */
function hue(n) {
  const turn = Math.floor(n / HUES.length);
  return `hsl(${HUES[n % HUES.length]} ${62 - turn % 3 * 14}% ${(dark.matches ? 58 : 48) + turn % 2 * 10}%)`;
}
const CAUSES = {
  semaphore: "#d9a13b", bank: "#c0562f", "engine-order": "#8a6fb8", "dma-bandwidth": "#4d8fa8", "dma-latency": "#7fb3c4",
  limiter: "#c23b52", "table-load": "#b58ab0", port: "#9a8a3a", barrier: "#6b6b6b", peer: "#5b7f5b", "start-up": "#a9afb5", finished: "#c9ced3",
};
const causeColor = (kind) => CAUSES[kind] || "#999999";
/** Kinds in which a row has nothing to wait for. */
const IDLE = new Set(["start-up", "finished"]);

const byId = (id) => document.getElementById(id);
/** An element with text and attributes; text is never read as markup. */
function el(name, text, attributes) {
  const e = document.createElement(name);
  if (text !== undefined && text !== null) e.append(text);
  for (const key in attributes || {}) e.setAttribute(key, attributes[key]);
  return e;
}
/** A button that looks like a link. */
function link(text, act, title) {
  const b = el("button", text, { type: "button", class: "link" });
  if (title) b.title = title;
  b.addEventListener("click", act);
  return b;
}
function swatch(color, text, thin) {
  const li = el("li");
  li.append(el("i", null, { style: `background:${color}`, class: thin ? "thin" : "" }), text);
  return li;
}
/** Terms with what belongs to them; those without are left out. */
function pairs(list) {
  const dl = el("dl");
  for (const [key, value] of list) {
    if (value === "" || value === null || value === undefined) continue;
    const dd = el("dd");
    dd.append(...[value].flat());
    dl.append(el("dt", key), dd);
  }
  return dl;
}

/** The first position in a sorted array, from `lo` on, whose value is greater than `x`. */
function above(array, x, lo = 0, hi = array.length) {
  while (lo < hi) { const mid = (lo + hi) >> 1; if (array[mid] > x) hi = mid; else lo = mid + 1; }
  return lo;
}
/** The same where the position is likely near `lo`. */
function aheadOf(array, x, lo, hi) {
  let step = 1, to = lo;
  while (to < hi && array[to] <= x) { lo = to + 1; to += step; step *= 2; }
  return above(array, x, lo, Math.min(to, hi));
}

/** Columns made number by number. */
function floats(n, of) { const out = new Float64Array(n); for (let i = 0; i < n; i++) out[i] = of(i); return out; }
function ints(n, of) { const out = new Int32Array(n); for (let i = 0; i < n; i++) out[i] = of(i); return out; }
