// Faults in the layout of a page, as lines of text: what reaches beyond the window, text that overlaps other text, text that is hard to read.
(() => {
  const faults = [], wide = document.documentElement.clientWidth;
  if (document.documentElement.scrollWidth > wide) faults.push(`the page is ${document.documentElement.scrollWidth} px wide in a window of ${wide} px`);
  const name = (e) => `${e.tagName.toLowerCase()}${e.id ? "#" + e.id : ""}${e.className && typeof e.className === "string" ? "." + e.className : ""}`;
  /** What is seen of a box: ancestors that scroll or hide cut it off. */
  const seen = (box, e) => {
    let { left, top, right, bottom } = box;
    for (let a = e; a && a !== document.body; a = a.parentElement) {
      const style = getComputedStyle(a);
      if (style.display === "none" || style.visibility === "hidden") return null;
      if (style.overflowX !== "visible") {
        const b = a.getBoundingClientRect();
        left = Math.max(left, b.left); top = Math.max(top, b.top); right = Math.min(right, b.right); bottom = Math.min(bottom, b.bottom);
      }
    }
    return right - left > 1 && bottom - top > 1 ? { left, top, right, bottom, e } : null;
  };
  const away = (e) => e.closest("[hidden], details:not([open]) > :not(summary)");
  const boxes = [], walker = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT);
  for (let n = walker.nextNode(); n; n = walker.nextNode()) {
    const e = n.parentElement;
    if (!n.data.trim() || ["SCRIPT", "STYLE", "NOSCRIPT", "OPTION"].includes(e.tagName) || away(e)) continue;
    const range = document.createRange();
    range.selectNodeContents(n);
    for (const r of range.getClientRects()) { const box = seen(r, e); if (box) boxes.push({ ...box, text: n.data.trim().slice(0, 40) }); }
  }
  for (const e of document.querySelectorAll("canvas, input, select")) { const box = away(e) ? null : seen(e.getBoundingClientRect(), e); if (box) boxes.push({ ...box, text: "" }); }
  for (let i = 0; i < boxes.length; i++) {
    const a = boxes[i];
    if (a.right > wide + 1) faults.push(`${name(a.e)} "${a.text}" ends at ${Math.round(a.right)} of ${wide} px`);
    for (let j = i + 1; j < boxes.length; j++) {
      const b = boxes[j], x = Math.min(a.right, b.right) - Math.max(a.left, b.left), y = Math.min(a.bottom, b.bottom) - Math.max(a.top, b.top);
      if (x > 1.5 && y > 3 && a.e !== b.e) faults.push(`${name(a.e)} "${a.text}" overlaps ${name(b.e)} "${b.text}"`);
    }
  }
  const parse = (color) => color.match(/[\d.]+/g).map(Number), light = ([r, g, b]) => {
    const [x, y, z] = [r, g, b].map((v) => { v /= 255; return v <= 0.03928 ? v / 12.92 : ((v + 0.055) / 1.055) ** 2.4; });
    return 0.2126 * x + 0.7152 * y + 0.0722 * z;
  };
  const behind = (e) => { for (let a = e; a; a = a.parentElement) { const c = parse(getComputedStyle(a).backgroundColor); if (c.length < 4 || c[3] > 0.9) return c; } return [255, 255, 255]; };
  const judged = new Set();
  for (const { e, text } of boxes) {
    if (judged.has(e) || !text) continue;
    judged.add(e);
    const style = getComputedStyle(e), a = light(parse(e.closest("svg") ? style.fill : style.color)), b = light(behind(e)), contrast = (Math.max(a, b) + 0.05) / (Math.min(a, b) + 0.05);
    if (contrast < 4.5) faults.push(`${name(e)} "${text}" has a contrast of ${contrast.toFixed(1)}`);
  }
  return faults;
})()
