// A table that sorts by any column, shows the columns that are chosen, and holds a million rows: only those in sight are elements.

const ROW = 25;

class DataTable {
  /**
   * `columns`: { id, title, get(row) for sorting, show(row) for reading (default: get), text: true for words, off: true if not shown at first,
   * hint, bar(row) for the part of the cell that is coloured, tone(row) for its colour }. `pick(row)` on a click; `current(row)` marks rows.
   */
  constructor(host, { columns, sort, pick, current, label }) {
    Object.assign(this, { host, columns, pick, current, sort, down: true, rows: [], order: [] });
    this.shown = new Set(columns.filter((c) => !c.off).map((c) => c.id));
    this.box = el("div", null, { class: "scroll", tabindex: "0", role: "region", "aria-label": label });
    this.table = el("table");
    this.head = el("thead"); this.body = el("tbody");
    this.table.append(this.head, this.body);
    this.box.append(this.table);
    this.box.addEventListener("scroll", () => this.draw());
    this.chooser = el("details", null, { class: "chooser" });
    host.replaceChildren(this.box);
    this.buildChooser();
  }
  buildChooser() {
    const list = el("div", null, { class: "choices" });
    for (const c of this.columns) {
      const label = el("label"), box = el("input", null, { type: "checkbox", name: c.id });
      box.checked = this.shown.has(c.id);
      box.addEventListener("change", () => { if (box.checked) this.shown.add(c.id); else this.shown.delete(c.id); this.refresh(); });
      label.append(box, c.title);
      if (c.hint) label.title = c.hint;
      list.append(label);
    }
    this.chooser.replaceChildren(el("summary", "Columns"), list);
  }
  set(rows) {
    this.rows = rows;
    this.box.scrollTop = 0;
    this.box.style.height = `${Math.min(440, (rows.length + 1) * ROW + 30)}px`;
    this.refresh();
  }
  refresh() {
    const sorter = this.columns.find((c) => c.id === this.sort) || this.columns[0], n = this.rows.length;
    const keys = Array.from({ length: n }, (_, i) => sorter.get(this.rows[i]));
    this.order = Uint32Array.from({ length: n }, (_, i) => i);
    const sign = this.down === !sorter.text ? -1 : 1;
    const less = sorter.text ? (a, b) => sign * String(keys[a]).localeCompare(String(keys[b]), "en", { numeric: true }) || a - b : (a, b) => sign * (keys[a] - keys[b]) || a - b;
    this.order.sort(less);
    this.visible = this.columns.filter((c) => this.shown.has(c.id));
    const tr = el("tr");
    for (const c of this.visible) {
      const th = el("th", null, { class: c.text ? "words" : "n", scope: "col" }), sorted = c.id === sorter.id;
      if (sorted) th.setAttribute("aria-sort", sign < 0 ? "descending" : "ascending");
      const b = el("button", c.title + (sorted ? (sign < 0 ? " \u25be" : " \u25b4") : ""), { type: "button" });
      if (c.hint) b.title = c.hint;
      b.addEventListener("click", () => { this.down = this.sort === c.id ? !this.down : true; this.sort = c.id; this.refresh(); });
      th.append(b);
      tr.append(th);
    }
    this.head.replaceChildren(tr);
    this.draw(true);
  }
  /** Makes the rows in sight, with room for those above and below. */
  draw(anew = false) {
    const n = this.order.length, high = this.box.clientHeight || 400;
    const from = Math.max(0, Math.floor(this.box.scrollTop / ROW) - 10), to = Math.min(n, from + Math.ceil(high / ROW) + 20);
    if (!anew && from === this.from && to === this.to) return;
    [this.from, this.to] = [from, to];
    const space = (rows) => {
      const tr = el("tr", null, { class: "space" });
      tr.append(el("td", null, { colspan: this.visible.length, style: `height:${rows * ROW}px` }));
      return tr;
    };
    const list = from > 0 ? [space(from)] : [];
    for (let i = from; i < to; i++) list.push(this.row(this.rows[this.order[i]]));
    if (to < n) list.push(space(n - to));
    if (!n) { const tr = el("tr"); tr.append(el("td", "none", { colspan: this.visible.length || 1, class: "hint" })); list.push(tr); }
    this.body.replaceChildren(...list);
  }
  row(row) {
    const tr = el("tr", null, this.pick ? { tabindex: "0", class: "pick" } : {});
    if (this.current?.(row)) tr.classList.add("on");
    for (const c of this.visible) {
      const shown = (c.show || c.get)(row), td = el("td", shown, { class: c.text ? "words" : "n" });
      if (c.text && typeof shown === "string") td.title = shown;
      if (c.bar) { const part = Math.min(1, c.bar(row)); if (part > 0) td.style.backgroundImage = `linear-gradient(to left, var(${c.tone?.(row) || "--bar"}) ${part * 100}%, transparent 0)`; }
      tr.append(td);
    }
    if (this.pick) {
      tr.addEventListener("click", () => this.pick(row));
      tr.addEventListener("keydown", (e) => { if (e.key === "Enter") this.pick(row); });
    }
    return tr;
  }
}
