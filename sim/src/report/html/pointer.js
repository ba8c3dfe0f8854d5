// Mouse, touch and keys on the timeline and the memory.

/** A drag selects a range, or moves the view: as the tools say, with Shift or another button the other way round. */
let dragMoves = matchMedia("(pointer: coarse)").matches;

function about(hit) {
  if (hit.event >= 0) {
    const i = hit.event, c = E.statement[i], steps = iteration(E.trail[i]), step = hit.step >= 0 ? `on the critical path for ${time(P.time[hit.step])}\n` : "";
    const wait = E.wait[i] ? `\nwaited ${time(E.wait[i])}` : "", size = E.bytes[i] ? `, ${bytes(E.bytes[i])}` : "";
    return `${labelOf(i)}  ${time(finish(i) - E.start[i])}${size}\n${step}${placeOf(c)}${steps ? ` [${steps}]` : ""}\nfrom ${time(E.start[i])}${wait}`;
  }
  if (hit.stall >= 0) return `${data.rows[W.row[hit.stall]].name} waits ${time(W.time[hit.stall])}\n${S[W.cause[hit.stall]]}`;
  if (hit.rate) {
    const pixel = (state.to - state.from) / Math.max(1, byId("timeline").clientWidth - nameWidth()), r = hit.rate.rate;
    const v = (flowed(r, hit.t + pixel) - flowed(r, hit.t)) / pixel;
    return `${hit.rate.name}: ${hit.rate.show(v)}${hit.rate.of ? `, ${percent(v, hit.rate.of)} of the peak` : ""}`;
  }
  const t = hit.tensor;
  return `${S[T.name[t]]} ${S[T.type[t]]}\nbytes ${T.byte[t]} to ${T.byte[t] + T.bytes[t]}\n${time(T.start[t])} to ${time(T.end[t])}\n${plural(T.writers[t], "write")}, ${plural(T.readers[t], "read")}`;
}
function pointAt(e, hit) {
  const before = hover?.event ?? -1;
  hover = hit;
  tip(hit && about(hit), e);
  e.target.style.cursor = hit && !hit.rate ? "pointer" : dragMoves ? "grab" : "crosshair";
  if ((hit?.event ?? -1) !== before) draw();
}
function click(hit) {
  if (!hit || hit.rate) return select({ found: null });
  if (hit.event >= 0) return selectEvent(hit.event, false);
  if (hit.stall >= 0) return select({ stall: hit.stall });
  selectTensor(hit.tensor);
}

function listenTo(canvas, hitAt) {
  let drag = null;
  const timeAt = (e) => { const f = frameOf(canvas.id); return Math.min(data.elapsed, Math.max(0, f.from + (e.offsetX - f.left) / f.k)); };
  canvas.addEventListener("wheel", (e) => {
    const f = frameOf(canvas.id);
    if (e.ctrlKey || e.metaKey || e.altKey) {
      e.preventDefault();
      return zoom(Math.exp(Math.max(-1, Math.min(1, e.deltaY / 240))), f.from + (e.offsetX - f.left) / f.k);
    }
    // A wheel that turns up or down scrolls the page.
    const across = e.shiftKey ? e.deltaX || e.deltaY : e.deltaX;
    if (Math.abs(across) > Math.abs(e.shiftKey ? 0 : e.deltaY)) { e.preventDefault(); move(across / 800); }
  }, { passive: false });
  canvas.addEventListener("pointerdown", (e) => {
    drag = { x: e.clientX, moved: false, from: timeAt(e), moves: dragMoves !== (e.shiftKey || e.button > 0) };
    canvas.setPointerCapture(e.pointerId);
  });
  canvas.addEventListener("pointermove", (e) => {
    if (!drag) return pointAt(e, hitAt(e.offsetX, e.offsetY));
    if (Math.abs(e.clientX - drag.x) > 3) drag.moved = true;
    if (!drag.moved) return;
    tip(null); hover = null;
    if (drag.moves) {
      const t = -(e.clientX - drag.x) / frameOf(canvas.id).k;
      setView(state.from + t, state.to + t);
      drag.x = e.clientX;
    } else { const t = timeAt(e); state.range = [Math.min(drag.from, t), Math.max(drag.from, t)]; }
    draw();
  });
  const end = (e) => {
    if (!drag) return;
    const { moved, moves } = drag;
    drag = null;
    if (!moved) return e.type === "pointerup" && click(hitAt(e.offsetX, e.offsetY));
    if (moves) writeHash(); else selectRange(state.range);
  };
  canvas.addEventListener("pointerup", end);
  canvas.addEventListener("pointercancel", end);
  canvas.addEventListener("dblclick", zoomToSelection);
  canvas.addEventListener("contextmenu", (e) => { if (e.shiftKey) e.preventDefault(); });
  canvas.addEventListener("pointerleave", () => { if (!drag) { hover = null; tip(null); draw(); } });
}

/** In the strip of all the time a click or a drag moves the view. */
function listenToOverview(canvas) {
  let down = false;
  const go = (e) => {
    const left = nameWidth(), t = (e.offsetX - left) / Math.max(1, canvas.clientWidth - left) * data.elapsed, half = (state.to - state.from) / 2;
    setView(t - half, t + half); writeHash(); draw();
  };
  canvas.addEventListener("pointerdown", (e) => { down = true; canvas.setPointerCapture(e.pointerId); go(e); });
  canvas.addEventListener("pointermove", (e) => { if (down) go(e); });
  canvas.addEventListener("pointerup", () => { down = false; });
}

/** The event before or after the selected one on its row. */
function step(by) {
  const r = state.event >= 0 ? rowOf[state.event] : bands.find((b) => b.kind === "row" && lists[b.r].lanes.length)?.r;
  if (r === undefined) return;
  const all = lists[r].lanes.flatMap((l) => [...l.id]), start = (i) => transferOf[i] >= 0 ? X.issue[transferOf[i]] : E.start[i];
  all.sort((a, b) => start(a) - start(b) || a - b);
  const at = state.event >= 0 ? all.indexOf(state.event) + by : Math.max(0, all.findIndex((i) => start(i) >= state.from));
  if (at >= 0 && at < all.length) selectEvent(all[at]);
}
/** The event of the row above or below that is nearest in time. */
function stepRow(by) {
  const rows = bands.filter((b) => b.kind === "row" && lists[b.r].lanes.length).map((b) => b.r);
  if (state.event < 0) return step(0);
  const r = rows[rows.indexOf(rowOf[state.event]) + by];
  if (r === undefined) return;
  const list = lists[r].lanes[0], t = E.start[state.event];
  selectEvent(list.id[Math.max(0, Math.min(list.id.length - 1, above(list.start, t) - 1))]);
}

function listen() {
  const canvas = byId("timeline");
  listenTo(canvas, hitTimeline);
  listenTo(byId("memory"), hitMemory);
  listenToOverview(byId("overview"));
  const keys = {
    ArrowLeft: () => move(-0.15), ArrowRight: () => move(0.15), a: () => move(-0.15), d: () => move(0.15),
    w: () => zoom(0.7), s: () => zoom(1 / 0.7), "+": () => zoom(0.7), "=": () => zoom(0.7), "-": () => zoom(1 / 0.7), 0: fit, f: zoomToSelection,
    "[": () => step(-1), "]": () => step(1), ArrowUp: () => stepRow(-1), ArrowDown: () => stepRow(1),
    Enter: () => { if (state.event >= 0 && E.from[state.event] >= 0) selectEvent(E.from[state.event]); },
    Escape: () => { state.range = null; select({ found: null }); },
  };
  canvas.addEventListener("keydown", (e) => {
    if (keys[e.key] && !e.ctrlKey && !e.metaKey && !e.altKey) { e.preventDefault(); keys[e.key](); }
  });
  document.addEventListener("keydown", (e) => {
    if (e.key === "/" && !/^(INPUT|TEXTAREA|SELECT)$/.test(document.activeElement.tagName)) { e.preventDefault(); byId("search").focus(); }
  });
  window.addEventListener("scroll", () => tip(null), { passive: true });
  window.addEventListener("resize", draw);
  for (const [id, moves] of [["drag-selects", false], ["drag-moves", true]]) {
    byId(id).addEventListener("change", () => { dragMoves = moves; });
    byId(id).checked = dragMoves === moves;
  }
  byId("fit").addEventListener("click", fit);
  byId("zoom-in").addEventListener("click", () => zoom(0.6));
  byId("zoom-out").addEventListener("click", () => zoom(1 / 0.6));
  byId("only-critical").addEventListener("change", (e) => { state.critical = e.target.checked; changed(); });
}
