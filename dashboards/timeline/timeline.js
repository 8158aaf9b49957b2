// The timeline on a canvas. What it shows comes as columns of numbers; words from a trace are drawn on the canvas or set
// as text, never as markup. The arithmetic is in core.js, the drawing in paint.js, moving and selecting in navigate.js;
// all are put in front of this file when it is served, and the imports taken out.
import { NONE, NO_STAGE, KIND_CODE, formatNs, formatCount, formatValue, sampleAt, clampView, cellList, indexById, cut } from "./core.js";
import { RULER, TOP } from "./paint.js";
import { Navigator } from "./navigate.js";

const SETTLE_MS = 150;
const KEYS = [
  ["W / S, + / −, wheel", "zoom in and out (the wheel once the timeline has the focus, or with Ctrl)"],
  ["A / D, ← / →", "move left and right; also drag the ruler, or Shift and drag"],
  ["↑ / ↓", "scroll the lanes; also the wheel over their names"],
  ["drag", "select a stretch of time and lanes: the table below says what lies in it"],
  ["click, , / .", "select an event; the one before it or after it in its row (without one: the first that is shown)"],
  ["Shift+↑ / Shift+↓", "select an event in the row above or below"],
  ["N, Shift+N", "go to the next gap or finding, or the one before"],
  ["F", "fit: the selection, or else the whole trace"],
  ["M", "measure: keep the selection's edges and length on the ruler"],
  ["/, Enter, Shift+Enter", "search all events; next match, match before"],
  ["G", "open or shut the lane of the selected event"],
  ["Esc", "drop the selection"],
];
const instances = new WeakMap();

export default function ({ data, parentElement, setStateValue }) {
  let view = instances.get(parentElement);
  if (!view) {
    view = new TimelineView(parentElement);
    instances.set(parentElement, view);
  }
  view.update(data, setStateValue);
  return () => {
    view.destroy();
    instances.delete(parentElement);
  };
}

function element(tag, attributes = {}, text = "") {
  const made = document.createElement(tag);
  for (const [key, value] of Object.entries(attributes)) made.setAttribute(key, value);
  if (text) made.textContent = text;
  return made;
}

/** A column of an Arrow table as one typed array. */
function column(table, name) {
  const vector = table.getChild(name);
  return vector === null ? null : vector.toArray();
}

class TimelineView extends Navigator {
  constructor(parent) {
    super();
    this.parent = parent;
    this.abort = new AbortController();
    this.token = null;
    this.view = { t0: 0, t1: 1 };
    this.scroll = 0;
    this.folded = new Set();
    this.open = new Set();
    this.countersShut = false;
    this.chosen = -1;
    this.kept = null;
    this.area = null;
    this.measured = null;
    this.flag = null;
    this.query = "";
    this.mask = null;
    this.hover = null;
    this.drag = null;
    this.seenCommand = null;
    this.build();
  }

  // ---------------------------------------------------------------- the page around the canvas

  build() {
    const on = (target, event, act, more = {}) =>
      target.addEventListener(event, act, { signal: this.abort.signal, ...more });
    this.root = element("div", { class: "tv" });
    const bar = element("div", { class: "tv-bar", role: "toolbar", "aria-label": "Timeline tools" });
    const button = (label, title, act) => {
      const made = element("button", { type: "button", title, "aria-label": title }, label);
      on(made, "click", act);
      bar.append(made);
      return made;
    };
    button("−", "Zoom out (S)", () => this.zoomBy(1.6));
    button("+", "Zoom in (W)", () => this.zoomBy(1 / 1.6));
    button("Fit", "Fit the selection or the whole trace (F)", () => this.fit());
    this.search = element("input", { type: "search", placeholder: "Search all events (/)", "aria-label": "Search all events by name" });
    on(this.search, "input", () => this.setQuery(this.search.value));
    on(this.search, "keydown", (event) => {
      event.stopPropagation();
      if (event.key === "Enter") this.toMatch(event.shiftKey ? -1 : 1);
      if (event.key === "Escape") {
        this.search.value = "";
        this.setQuery("");
        this.canvas.focus();
      }
    });
    bar.append(this.search);
    button("◀", "Match before (Shift+Enter)", () => this.toMatch(-1));
    button("▶", "Next match (Enter)", () => this.toMatch(1));
    this.found = element("span", { class: "tv-found", role: "status" });
    bar.append(this.found);
    this.span = element("span", { class: "tv-span" });
    bar.append(this.span);
    button("Keys ?", "Keys and mouse (?)", () => this.toggleHelp());
    this.field = element("div", { class: "tv-field" });
    this.canvas = element("canvas", { tabindex: "0", role: "application", "aria-roledescription": "timeline" });
    this.tip = element("div", { class: "tv-tip", hidden: "" });
    this.help = element("div", { class: "tv-help", role: "dialog", "aria-label": "Keys and mouse", hidden: "" });
    const list = element("dl");
    for (const [keys, what] of KEYS) list.append(element("dt", {}, keys), element("dd", {}, what));
    const close = element("button", { type: "button" }, "Close");
    on(close, "click", () => this.toggleHelp(false));
    on(this.help, "keydown", (event) => event.key === "Escape" && this.toggleHelp(false));
    this.help.append(list, close);
    this.live = element("div", { class: "tv-live", "aria-live": "polite" });
    this.field.append(this.canvas, this.tip, this.help, this.live);
    this.legend = element("ul", { class: "tv-legend", "aria-label": "Colours" });
    this.note = element("p", { class: "tv-note" });
    this.root.append(bar, this.field, this.legend, this.note);
    this.parent.append(this.root);

    on(this.canvas, "wheel", (event) => this.onWheel(event), { passive: false });
    on(this.canvas, "pointerdown", (event) => this.onDown(event));
    on(this.canvas, "pointermove", (event) => this.onMove(event));
    on(this.canvas, "pointerup", (event) => this.onUp(event));
    on(this.canvas, "pointercancel", () => (this.drag = null));
    on(this.canvas, "pointerleave", () => this.setHover(null));
    on(this.canvas, "dblclick", () => this.chosen >= 0 && this.fit());
    on(this.canvas, "keydown", (event) => this.onKey(event));
    on(this.canvas, "focus", () => this.redraw());
    on(this.canvas, "blur", () => this.redraw());
    // Another element of the page (a table of gaps or findings) may ask to show a place.
    on(window, "traceview-show", (event) => this.command(event.detail));
    this.resize = new ResizeObserver(() => this.redraw());
    this.resize.observe(this.field);
  }

  destroy() {
    this.abort.abort();
    this.resize.disconnect();
    clearTimeout(this.timer);
    clearTimeout(this.queryTimer);
    cancelAnimationFrame(this.frame);
    this.root.remove();
  }

  // ---------------------------------------------------------------- what it is given

  update(data, setStateValue) {
    this.send = setStateValue;
    if (!data) return;
    if (!data.events && data.trace !== this.trace) {
      // The server thinks that the events are here, but this page was built anew.
      this.send("view", { trace: null });
      return;
    }
    if (data.events && data.token !== this.token) {
      const fresh = data.trace !== this.trace;
      this.token = data.token;
      this.trace = data.trace;
      this.load(data);
      if (fresh) this.start(data);
      this.setQuery(this.query, false);
    }
    this.matches = data.matches ?? null;
    if (this.matches) this.showFound();
    this.readTheme();
    this.redraw();
    // So that the server knows that the events have arrived.
    this.settle();
  }

  load(data) {
    this.data = data;
    const table = data.events;
    this.cols = {};
    for (const name of ["start", "dur", "name", "stage", "kind", "id", "launch", "op"]) this.cols[name] = column(table, name);
    const merged = column(table, "count");
    if (merged) Object.assign(this.cols, { count: merged, total: column(table, "total") });
    this.samples = { at: column(data.samples, "at"), value: column(data.samples, "value") };
    this.series = data.counters.map(() => ({ first: 0, last: 0 }));
    (column(data.samples, "series") ?? []).forEach((one, k, all) => {
      if (k === 0 || all[k - 1] !== one) this.series[one].first = k;
      this.series[one].last = k + 1;
    });
    this.rows = data.rows.map(([lane, row, first, count]) => ({ lane, row, first, count }));
    this.cells = this.rows.map(cellList);
    this.at = indexById(this.cols.id, merged);
    // A selected event may be merged with others in these cells; it stays selected.
    this.chosen = this.kept === null ? -1 : this.atId(this.kept);
    this.links = null;
  }

  start(data) {
    this.folded = new Set(data.groups.flatMap((group, k) => (group.open ? [] : [k])));
    this.open = new Set(data.lanes.flatMap((lane, k) => (lane.open ? [k] : [])));
    // More than two would push the lanes out of sight.
    this.countersShut = data.counters.length > 2;
    this.scroll = 0;
    this.measured = null;
    this.flag = null;
    const first = data.view ?? {};
    this.view = clampView(first.t0 ?? 0, first.t1 ?? data.end, 0, data.end);
    this.query = this.search.value = first.q ?? "";
    this.area = first.area ? this.areaOf(first.area) : null;
    this.kept = first.id ?? null;
    this.chosen = this.kept === null ? -1 : this.atId(this.kept);
    this.canvas.setAttribute(
      "aria-label",
      `Timeline of ${formatCount(data.total)} events in ${data.lanes.length} lanes over ${formatNs(data.end)}. ` +
        "Press question mark for keys. The tables below hold the same facts as text.",
    );
    this.fillLegend();
    this.note.textContent = data.note ?? "";
    this.note.hidden = !data.note;
    if (this.chosen >= 0) this.reveal(this.chosen, false);
  }

  atId(id) {
    return id >= 0 && id < this.at.length ? this.at[id] : -1;
  }

  areaOf(given) {
    const keys = new Map(this.data.lanes.map((lane, k) => [lane.key, k]));
    return { t0: given.t0, t1: given.t1, lanes: new Set(given.lanes.map((key) => keys.get(key)).filter((k) => k !== undefined)) };
  }

  command(detail) {
    if (!detail || !this.data || detail.nonce === this.seenCommand) return;
    this.seenCommand = detail.nonce;
    if (detail.id !== undefined && detail.id !== null) {
      const index = this.atId(detail.id);
      if (index >= 0) return this.choose(index, true);
    }
    this.go(detail.t0, detail.t1);
  }

  readTheme() {
    const style = getComputedStyle(this.root);
    const get = (name, other) => style.getPropertyValue(name).trim() || other;
    this.theme = {
      text: get("--st-text-color", "#222222"), back: get("--st-background-color", "#ffffff"),
      panel: get("--st-secondary-background-color", "#f0f2f6"), line: get("--st-border-color", "#cccccc"),
      accent: get("--st-primary-color", "#0b6bcb"), font: get("--st-font", "sans-serif"),
    };
    this.ink = new Map();
  }

  fillLegend() {
    this.legend.replaceChildren();
    for (const [colour, text] of this.data.legend) {
      const item = element("li");
      const square = element("i", { "aria-hidden": "true" });
      square.style.background = colour;
      item.append(square, document.createTextNode(text));
      this.legend.append(item);
    }
  }

  // ---------------------------------------------------------------- what it tells

  /** Report what is shown and selected, once it has been still for a moment; a selection at once. */
  settle(now = false) {
    clearTimeout(this.timer);
    this.timer = setTimeout(() => this.report(), now ? 0 : SETTLE_MS);
  }

  report() {
    const area = this.area && {
      t0: Math.round(this.area.t0), t1: Math.round(this.area.t1), lanes: [...this.area.lanes].map((k) => this.data.lanes[k].key),
    };
    const state = {
      trace: this.trace, t0: Math.floor(this.view.t0), t1: Math.ceil(this.view.t1), q: this.query,
      id: this.kept, area,
    };
    const text = JSON.stringify(state);
    if (text === this.sent) return;
    this.sent = text;
    this.send("view", state);
  }

  say(text) {
    this.live.textContent = text;
  }

  setHover(at) {
    this.hover = at;
    if (!at || at.x < this.gutter || !this.plan) {
      this.tip.hidden = true;
      return;
    }
    const flag = at.y >= RULER && at.y < TOP ? this.flagAt(at.x) : null;
    const counter = flag ? -1 : this.counterAt(at.x, at.y);
    const hit = flag || counter >= 0 ? null : this.cellAt(at.x, at.y);
    if (!flag && !hit && counter < 0) {
      this.tip.hidden = true;
      return;
    }
    const lines = flag ? [flag.label, `${formatNs(flag.t0)} + ${formatNs(flag.t1 - flag.t0)}`]
      : counter >= 0 ? this.describeCounter(counter, this.timeAt(at.x)) : this.describe(hit.index, hit.n, hit);
    this.tip.replaceChildren(element("b", {}, cut(lines[0], 400)), ...lines.slice(1).map((line) => element("span", {}, line)));
    this.tip.hidden = false;
    const room = this.field.clientWidth;
    const width = this.tip.offsetWidth;
    this.tip.style.left = `${Math.max(0, Math.min(at.x + 14, room - width - 4))}px`;
    this.tip.style.top = `${at.y + 18}px`;
  }

  /** A value over time at a moment. Of many samples the lowest and highest of each stretch are here. */
  describeCounter(index, time) {
    const { label, unit, most, events } = this.data.counters[index], { first, last } = this.series[index];
    const k = sampleAt(this.samples.at, time, first, last);
    const now = k < 0 ? "not recorded yet" : `${formatValue(this.samples.value[k], unit)} since ${formatNs(this.samples.at[k])}`;
    return [label, now, `at most ${formatValue(most, unit)}; ${formatCount(events)} samples`];
  }

  /** What is known here about an entry; of a merged cell only what holds for all of it. */
  describe(index, n, hit) {
    const { cols, data } = this;
    const stage = (code) => (code < KIND_CODE ? data.stages[code].name : null);
    if (n > 1) {
      const mostly = stage(hit.code) ?? data.kinds[hit.code - KIND_CODE].name;
      return [`${formatCount(n)} events`, `${formatNs(hit.total)} together, most of it ${mostly}`, "too short to be drawn apart: zoom in"];
    }
    const lines = [data.names[cols.name[index]], `${formatNs(cols.dur[index])} · ${data.kinds[cols.kind[index]].name}`, `starts at ${formatNs(cols.start[index])}`];
    if (cols.stage[index] !== NO_STAGE) lines.push(`stage ${stage(cols.stage[index])}`);
    const related = (id, word) => {
      const at = id === NONE ? -1 : this.atId(id);
      if (at >= 0) lines.push(`${word} ${cut(data.names[cols.name[at]], 120)}`);
      return at;
    };
    related(cols.op[index], "asked for by");
    const launch = related(cols.launch[index], "launched by");
    if (launch >= 0) lines.push(`${formatNs(cols.start[index] - cols.start[launch] - cols.dur[launch])} after the launch returned`);
    return lines;
  }
}
