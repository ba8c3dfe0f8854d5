// Drawing over an axis of time: the axis, spans of which very many may share a pixel, and rates.

/** A canvas with a context for it. `frame.x(t)` is the place of a time, `frame.k` the pixels of a nanosecond. */
function frame(canvas, height, view, left) {
  const width = canvas.clientWidth, ratio = window.devicePixelRatio || 1;
  if (canvas.style.height !== height + "px") canvas.style.height = height + "px";
  const w = Math.round(width * ratio), h = Math.round(height * ratio);
  if (canvas.width !== w || canvas.height !== h) { canvas.width = w; canvas.height = h; }
  const g = canvas.getContext("2d");
  g.setTransform(ratio, 0, 0, ratio, 0, 0);
  g.clearRect(0, 0, width, height);
  const k = Math.max(1, width - left) / (view.to - view.from);
  return { g, width, height, left, k, from: view.from, to: view.to, x: (t) => left + (t - view.from) * k };
}

function text(g, string, x, y, color, size = 11, align = "left") {
  g.font = `${size}px system-ui, sans-serif`; g.textAlign = align; g.textBaseline = "middle"; g.fillStyle = color;
  g.fillText(string, x, y);
}

/** Marks about 100 pixels apart, with lines down to `bottom`. */
function drawAxis(f, y, bottom) {
  const step0 = 100 / f.k, power = 10 ** Math.floor(Math.log10(step0));
  const step = [1, 2, 5, 10].map((m) => m * power).find((s) => s >= step0);
  for (let t = Math.ceil(f.from / step) * step; t <= f.to; t += step) {
    const x = f.x(t), label = axisTime(t, step, f.to);
    f.g.fillStyle = css("--grid"); f.g.fillRect(Math.round(x), y + 16, 1, bottom - y - 16);
    const half = label.length * 3.2;
    if (x - half > f.left && x + half < f.width) text(f.g, label, x, y + 8, css("--dim"), 11, "center");
  }
}

/** Spans sorted by time that do not overlap, with the sum of the lengths of those before each. */
function spanList(id, start, end) {
  const sum = new Float64Array(start.length + 1);
  for (let i = 0; i < start.length; i++) sum[i + 1] = sum[i] + end[i] - start[i];
  return { id, start, end, sum, lit: null };
}
/** Which part of `t0` to `t1` the spans from `a` to `b` cover. */
function cover(list, a, b, t0, t1) {
  const { start, end, sum } = list;
  let covered = sum[b] - sum[a];
  if (start[a] < t0) covered -= t0 - start[a];
  if (end[b - 1] > t1) covered -= end[b - 1] - t1;
  return covered / (t1 - t0);
}

/**
 * Draws spans: `color(i)` gives the colour of the ith, `fade` that of spans that are not lit. Where more than two share a pixel, a pixel has the
 * colour of the longest of a sample, as strong as it is covered. Gives how many rectangles were drawn.
 */
function drawSpans(f, list, y, height, color, fade) {
  const { g, k, from, to, left } = f, { start, end, lit } = list;
  const first = above(end, from), last = above(start, to), wide = f.width - left;
  if (last <= first) return 0;
  if (last - first <= 2 * wide) {
    for (let i = first; i < last; i++) {
      const x0 = Math.max(left, left + (start[i] - from) * k), w = Math.min(f.width, left + (end[i] - from) * k) - x0;
      g.fillStyle = lit && lit[i + 1] === lit[i] ? fade : color(i);
      g.fillRect(x0, y, Math.max(0.7, w - (w > 3 ? 0.6 : 0)), height);
    }
    return last - first;
  }
  let drawn = 0, runFrom = 0, runColor = null, runAlpha = 0;
  const flush = (x) => {
    if (runColor !== null) { g.globalAlpha = runAlpha / 8; g.fillStyle = runColor; g.fillRect(left + runFrom, y, x - runFrom, height); drawn++; }
    runFrom = x;
  };
  let a = first;
  for (let x = 0; x < wide; x++) {
    const t0 = from + x / k, t1 = from + (x + 1) / k;
    a = aheadOf(end, t0, a, last);
    const b = aheadOf(start, t1, a, last);
    let c = null, alpha = 0;
    if (b > a) {
      let best = a;
      if (lit && lit[b] > lit[a]) best = above(lit, lit[a], a, b) - 1;
      else for (let n = 0, step = Math.max(1, (b - a) >> 3), i = a; n < 8 && i < b; n++, i += step) if (end[i] - start[i] > end[best] - start[best]) best = i;
      c = lit && lit[b] === lit[a] ? fade : color(best);
      alpha = 2 + Math.round(6 * Math.min(1, cover(list, a, b, t0, t1)));
    }
    if (c !== runColor || alpha !== runAlpha) { flush(x); runColor = c; runAlpha = alpha; }
  }
  flush(wide);
  g.globalAlpha = 1;
  return drawn;
}

/** The names of spans that are wide enough for them. */
function drawNames(f, list, y, height, name) {
  const first = above(list.end, f.from), last = above(list.start, f.to);
  if (height < 10 || (last - first) * 24 > f.width) return;
  for (let i = first; i < last; i++) {
    const x0 = Math.max(f.left, f.x(list.start[i])), wide = Math.min(f.width, f.x(list.end[i])) - x0, string = name(i);
    if (wide > string.length * 5.4 + 8 && !(list.lit && list.lit[i + 1] === list.lit[i])) text(f.g, string, x0 + 4, y + height / 2 + 0.5, "#fff", 10);
  }
}

/** The span at a time, or the nearest within `slack`; -1 if there is none. */
function spanAt(list, t, slack) {
  const i = above(list.end, t);
  let best = -1, gap = slack;
  for (const j of [i - 1, i]) {
    if (j < 0 || j >= list.start.length) continue;
    const d = Math.max(list.start[j] - t, t - list.end[j], 0);
    if (d <= gap) { best = j; gap = d; }
  }
  return best;
}

/** The order in which values rise; as they are if they do. */
function rising(values) {
  const order = ints(values.length, (i) => i);
  for (let i = 1; i < values.length; i++) if (values[i] < values[i - 1]) return order.sort((a, b) => values[a] - values[b] || a - b);
  return order;
}
/** By span the lane in which nothing covers it: the first that is free. `order` has the spans by start. */
function lanesOf(order, start, end) {
  const lane = new Int32Array(order.length), free = [];
  for (const i of order) {
    let l = 0;
    while (l < free.length && free[l] > start[i]) l++;
    lane[i] = l; free[l] = Math.max(end[i], start[i]);
  }
  return { lane, count: free.length };
}
/** A rate over time from amounts, each of which flows evenly from its start to its end. */
function rate(start, end, amount) {
  const n = start.length, last = floats(n, (i) => Math.max(end[i], start[i] + 1));
  const starts = rising(start), ends = rising(last);
  const t = new Float64Array(2 * n), sum = new Float64Array(2 * n), value = new Float64Array(2 * n);
  let now = 0, total = 0, most = 0;
  for (let e = 0, s = 0, d = 0; e < 2 * n; e++) {
    const begins = s < n && start[starts[s]] < last[ends[d]], i = begins ? starts[s++] : ends[d++];
    t[e] = begins ? start[i] : last[i];
    if (e > 0) { total += now * (t[e] - t[e - 1]); if (t[e] > t[e - 1] && now > most) most = now; }
    now += (begins ? 1 : -1) * amount[i] / (last[i] - start[i]);
    sum[e] = total; value[e] = now;
  }
  return { t, sum, value, most };
}
/** What has flowed until a time. */
function flowed(r, time) {
  const i = above(r.t, time) - 1;
  return i < 0 ? 0 : r.sum[i] + r.value[i] * (time - r.t[i]);
}
/** The mean rate in each pixel, as an area below `top`. */
function drawRate(f, r, y, height, top, color) {
  const { g, left, k } = f;
  g.fillStyle = color;
  g.beginPath(); g.moveTo(left, y + height);
  let before = flowed(r, f.from);
  for (let x = 0; x < f.width - left; x++) {
    const now = flowed(r, f.from + (x + 1) / k), v = y + height * (1 - Math.min(1, (now - before) * k / top));
    g.lineTo(left + x, v); g.lineTo(left + x + 1, v);
    before = now;
  }
  g.lineTo(f.width, y + height); g.fill();
}

let tipBox = null;
/** Shows lines of text at the pointer; without text hides it. */
function tip(string, event) {
  tipBox ??= byId("tip");
  tipBox.hidden = !string;
  if (!string) return;
  tipBox.textContent = string;
  const { offsetWidth: w, offsetHeight: h } = tipBox;
  tipBox.style.left = Math.max(4, Math.min(event.clientX + 14, innerWidth - w - 8)) + "px";
  tipBox.style.top = (event.clientY + 18 + h > innerHeight ? Math.max(4, event.clientY - h - 10) : event.clientY + 18) + "px";
}
