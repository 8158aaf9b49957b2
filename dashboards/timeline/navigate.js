// How the timeline is moved, searched and selected in, by mouse and keys.
import {
  lowerBound, formatNs, formatCount, clampView, zoom, hitTest, matchNames, countMatches, nextMatch, rowOf,
} from "./core.js";
import { Painter, RULER, TOP, SIZES } from "./paint.js";

/** What reacts; the subclass owns the page and what goes to and comes from the server. */
export class Navigator extends Painter {
  // ---------------------------------------------------------------- moving about

  go(t0, t1) {
    this.view = clampView(t0, t1, 0, this.data.end);
    this.redraw();
    this.settle();
  }

  zoomBy(factor, at = (this.view.t0 + this.view.t1) / 2) {
    const next = zoom(this.view, at, factor);
    this.go(next.t0, next.t1);
  }

  pan(share) {
    const by = (this.view.t1 - this.view.t0) * share;
    this.go(this.view.t0 + by, this.view.t1 + by);
  }

  scrollBy(pixels) {
    const room = Math.max(0, this.plan.height - (this.canvas.clientHeight - TOP));
    this.scroll = Math.min(Math.max(0, this.scroll + pixels), room);
    this.redraw();
  }

  fit() {
    const [low, high] = this.edges() ?? [0, this.data.end];
    const margin = this.edges() ? Math.max((high - low) * 0.5, 100) : 0;
    this.go(low - margin, high + margin);
  }

  edges() {
    if (this.area) return [this.area.t0, this.area.t1];
    if (this.chosen >= 0) return [this.cols.start[this.chosen], this.cols.start[this.chosen] + this.cols.dur[this.chosen]];
    return null;
  }

  choose(index, show) {
    this.chosen = index;
    this.kept = index >= 0 ? this.cols.id[index] : null;
    this.area = null;
    this.links = null;
    if (index >= 0) {
      if (show) this.reveal(index, true);
      this.say(this.describe(index, 1).join(", "));
    }
    this.redraw();
    this.settle(true);
  }

  /** Unfold the lane of an event, scroll to it, and move there in time if it is outside. */
  reveal(index, move) {
    const row = this.rows[rowOf(this.rows, index)];
    const lane = this.data.lanes[row.lane];
    this.folded.delete(lane.group);
    if (row.row > 0) this.open.add(row.lane);
    this.arrange();
    const y = this.plan.rowY[rowOf(this.rows, index)];
    const room = this.canvas.clientHeight - TOP;
    if (room > 0 && (y < this.scroll || y + SIZES.row > this.scroll + room)) this.scroll = Math.max(0, y - room / 2);
    if (!move) return;
    const start = this.cols.start[index], length = this.cols.dur[index], span = this.view.t1 - this.view.t0;
    const tooSmall = (length / span) * this.width() < 4;
    if (start < this.view.t0 || start + length > this.view.t1 || tooSmall) {
      const wanted = tooSmall || length > span ? Math.max(length * 20, 1000) : span;
      const middle = start + length / 2;
      this.view = clampView(middle - wanted / 2, middle + wanted / 2, 0, this.data.end);
    }
  }

  neighbour(direction) {
    if (this.chosen < 0) return this.chooseShown();
    const row = this.rows[rowOf(this.rows, this.chosen)];
    let next = this.chosen + direction;
    // A merged cell is no event that could be selected.
    while (this.cols.count && this.cols.count[next] > 1) next += direction;
    if (next >= row.first && next < row.first + row.count) this.choose(next, true);
  }

  /** The first event that is drawn on its own: where a walk by keys begins. */
  chooseShown() {
    for (let k = 0; k < this.rows.length; k++) if (this.plan.rowY[k] >= 0 && this.chooseIn(k)) return;
  }

  /** Choose the event of a row that is nearest to the middle of what is shown, or of the event chosen before. */
  chooseIn(row) {
    const { t0, t1 } = this.view, { start, dur, count } = this.cols;
    const middle = this.chosen < 0 ? t0 : Math.min(Math.max(start[this.chosen] + dur[this.chosen] / 2, t0), t1);
    const { first, count: size } = this.rows[row];
    let best = -1, distance = Infinity;
    for (let k = first; k < first + size && start[k] < t1; k++) {
      if ((count && count[k] > 1) || start[k] + dur[k] <= t0) continue;
      const away = Math.max(start[k] - middle, middle - start[k] - dur[k], 0);
      if (away < distance) [best, distance] = [k, away];
    }
    if (best < 0) return false;
    this.choose(best, false);
    this.reveal(best, false);
    return true;
  }

  /** The row above or below that of the chosen event, of those that are shown and have an event here. */
  otherRow(direction) {
    if (this.chosen < 0) return this.chooseShown();
    for (let k = rowOf(this.rows, this.chosen) + direction; k >= 0 && k < this.rows.length; k += direction)
      if (this.plan.rowY[k] >= 0 && this.chooseIn(k)) return;
  }

  /** The next gap or finding in time, or the one before. */
  nextFlag(direction) {
    const flags = [...this.data.flags].sort((a, b) => a.t0 - b.t0 || a.t1 - b.t1);
    if (!flags.length) return this.say("no gap and no finding is marked");
    const at = this.flag ? flags.indexOf(this.flag) : direction > 0 ? -1 : 0;
    this.toFlag(flags[(at + direction + flags.length) % flags.length]);
  }

  toFlag(flag) {
    this.flag = flag;
    const margin = Math.max((flag.t1 - flag.t0) * 0.5, 1000);
    this.say(flag.label);
    this.go(flag.t0 - margin, flag.t1 + margin);
  }

  // ---------------------------------------------------------------- search

  setQuery(text, tell = true) {
    this.query = text.trim();
    this.mask = this.data ? matchNames(this.data.names, this.query) : null;
    this.showFound();
    this.redraw();
    if (!tell) return;
    clearTimeout(this.queryTimer);
    this.queryTimer = setTimeout(() => this.settle(true), 300);
  }

  showFound() {
    if (!this.mask) {
      this.found.textContent = "";
      return;
    }
    const total = this.matches ? (this.matches.q === this.query ? this.matches.total : null)
      : this.cols.count ? null : countMatches(this.cols.name, this.mask);
    this.found.textContent = total === null ? "searching…" : total === 0 ? "no match" : `${formatCount(total)} match${total === 1 ? "" : "es"}`;
  }

  toMatch(direction) {
    if (!this.mask) return;
    if (this.cols.count) return this.toListedMatch(direction);
    const from = this.chosen >= 0 ? this.cols.id[this.chosen] : direction > 0 ? -1 : this.at.length;
    const index = nextMatch(this.at, this.cols.name, this.mask, from, direction);
    if (index >= 0) this.choose(index, true);
  }

  /** Where only merged cells are here, the list of matches comes from the server. */
  toListedMatch(direction) {
    const starts = this.matches?.starts ?? [];
    if (!starts.length || this.matches.q !== this.query) return;
    const middle = (this.view.t0 + this.view.t1) / 2;
    const margin = (this.view.t1 - this.view.t0) * 1e-3 + 1;
    let k = direction > 0 ? lowerBound(starts, middle + margin, 0, starts.length) : lowerBound(starts, middle - margin, 0, starts.length) - 1;
    k = (k + starts.length) % starts.length;
    const half = (this.view.t1 - this.view.t0) / 2;
    this.go(starts[k] - half, starts[k] + half);
    this.say(`match ${k + 1} of ${starts.length}`);
  }

  // ---------------------------------------------------------------- mouse and keys

  place(event) {
    const box = this.canvas.getBoundingClientRect();
    return { x: event.clientX - box.left, y: event.clientY - box.top };
  }

  onWheel(event) {
    if (!this.data) return;
    const { x } = this.place(event);
    const focused = this.canvas.getRootNode().activeElement === this.canvas;
    if (x < this.gutter) {
      event.preventDefault();
      return this.scrollBy(event.deltaY);
    }
    if (!focused && !event.ctrlKey && !event.metaKey) return;
    event.preventDefault();
    if (event.shiftKey || Math.abs(event.deltaX) > Math.abs(event.deltaY)) return this.pan((event.deltaX || event.deltaY) / 1000);
    this.zoomBy(Math.exp(Math.min(Math.max(event.deltaY, -300), 300) * 0.002), this.timeAt(x));
  }

  onDown(event) {
    if (!this.data || event.button > 1) return;
    this.canvas.focus({ preventScroll: true });
    const { x, y } = this.place(event);
    if (x < this.gutter && y > TOP) return this.toggle(y);
    this.canvas.setPointerCapture(event.pointerId);
    const moving = event.shiftKey || event.button === 1 || y < RULER;
    this.drag = { mode: moving ? "pan" : y < TOP ? "flag" : "area", x, y, view: { ...this.view }, moved: false };
  }

  onMove(event) {
    if (!this.data) return;
    const { x, y } = this.place(event);
    if (!this.drag) return this.setHover({ x, y });
    if (Math.abs(x - this.drag.x) + Math.abs(y - this.drag.y) > 3) this.drag.moved = true;
    if (!this.drag.moved) return;
    this.setHover(null);
    if (this.drag.mode === "pan") {
      const by = ((this.drag.x - x) / this.width()) * (this.drag.view.t1 - this.drag.view.t0);
      this.go(this.drag.view.t0 + by, this.drag.view.t1 + by);
    } else if (this.drag.mode === "area") {
      const [low, high] = [this.timeAt(Math.max(this.gutter, Math.min(x, this.drag.x))), this.timeAt(Math.max(x, this.drag.x))];
      this.chosen = -1;
      this.kept = null;
      this.links = null;
      this.area = { t0: Math.max(0, low), t1: Math.min(this.data.end, high), lanes: this.lanesBetween(this.drag.y, y) };
      this.redraw();
    }
  }

  onUp(event) {
    // A busy browser may drop the last moves: where the button was let go is where the drag ends.
    if (this.drag) this.onMove(event);
    const drag = this.drag;
    this.drag = null;
    if (!drag) return;
    const { x, y } = this.place(event);
    if (drag.moved) {
      if (drag.mode === "area") {
        if (!this.area.lanes.size) this.area = null;
        if (this.area) this.say(`selected ${formatNs(this.area.t1 - this.area.t0)} in ${this.area.lanes.size} lanes`);
        this.redraw();
        this.settle(true);
      }
      return;
    }
    const flag = y < TOP && y >= RULER ? this.flagAt(x) : null;
    if (flag) return this.toFlag(flag);
    const hit = this.cellAt(x, y);
    if (!hit) return this.choose(-1, false);
    if (hit.n === 1) return this.choose(hit.index, false);
    // A merged cell is no event: look closer.
    this.zoomBy(0.1, this.timeAt(x));
  }

  onKey(event) {
    if (!this.data || event.ctrlKey || event.metaKey || event.altKey) return;
    const act = {
      w: () => this.zoomBy(1 / 1.5), "+": () => this.zoomBy(1 / 1.5), "=": () => this.zoomBy(1 / 1.5),
      s: () => this.zoomBy(1.5), "-": () => this.zoomBy(1.5),
      a: () => this.pan(-0.15), arrowleft: () => this.pan(-0.15), d: () => this.pan(0.15), arrowright: () => this.pan(0.15),
      arrowup: () => (event.shiftKey ? this.otherRow(-1) : this.scrollBy(-40)),
      arrowdown: () => (event.shiftKey ? this.otherRow(1) : this.scrollBy(40)),
      n: () => this.nextFlag(event.shiftKey ? -1 : 1),
      f: () => this.fit(), m: () => this.measure(), "?": () => this.toggleHelp(),
      "/": () => this.search.focus(), ".": () => this.neighbour(1), ",": () => this.neighbour(-1),
      enter: () => this.toMatch(event.shiftKey ? -1 : 1), g: () => this.toggleChosen(), escape: () => this.dismiss(),
      home: () => this.go(0, this.view.t1 - this.view.t0), end: () => this.go(this.data.end - (this.view.t1 - this.view.t0), this.data.end),
    }[event.key.toLowerCase()];
    if (!act) return;
    event.preventDefault();
    event.stopPropagation();
    act();
  }

  dismiss() {
    if (!this.help.hidden) return this.toggleHelp(false);
    this.measured = null;
    this.choose(-1, false);
  }

  measure() {
    const edges = this.edges();
    this.measured = edges && !(this.measured && this.measured[0] === edges[0] && this.measured[1] === edges[1]) ? edges : null;
    if (this.measured) this.say(`measured ${formatNs(edges[1] - edges[0])}`);
    this.redraw();
  }

  toggleHelp(show = this.help.hidden) {
    this.help.hidden = !show;
    if (show) this.help.querySelector("button").focus();
    else this.canvas.focus({ preventScroll: true });
  }

  itemAt(y) {
    const inside = y - TOP + this.scroll;
    return this.plan.items.find((item) => inside >= item.y && inside < item.y + item.h);
  }

  toggle(y) {
    const item = this.itemAt(y);
    if (!item) return;
    if (item.type === "counter") return;
    if (item.type === "counters") this.countersShut = !this.countersShut;
    else {
      const set = item.type === "group" ? this.folded : this.open;
      if (!set.delete(item.index)) set.add(item.index);
    }
    this.arrange();
    this.scrollBy(0);
  }

  toggleChosen() {
    if (this.chosen < 0) return;
    const { lane } = this.rows[rowOf(this.rows, this.chosen)];
    if (!this.open.delete(lane)) this.open.add(lane);
    this.arrange();
    this.scrollBy(0);
  }

  lanesBetween(a, b) {
    const [low, high] = [Math.min(a, b), Math.max(a, b)].map((y) => y - TOP + this.scroll);
    const found = new Set();
    for (const item of this.plan.items) {
      if (item.y + item.h <= low || item.y > high) continue;
      if (item.type === "lane") found.add(item.index);
      else if (item.type === "group" && this.folded.has(item.index)) this.data.lanes.forEach((lane, k) => lane.group === item.index && found.add(k));
    }
    return found;
  }

  cellAt(x, y) {
    if (x < this.gutter || y < TOP) return null;
    const inside = y - TOP + this.scroll;
    for (let k = 0; k < this.rows.length; k++) {
      const top = this.plan.rowY[k];
      if (top < 0 || inside < top || inside >= top + SIZES.row) continue;
      const cell = hitTest(this.cells[k], x - this.gutter);
      if (cell < 0) return null;
      const cells = this.cells[k];
      return { row: k, index: cells.index[cell], n: cells.n[cell], code: cells.code[cell], total: cells.total[cell] };
    }
    return null;
  }

  /** The counter at a height, if one is drawn there. */
  counterAt(x, y) {
    if (x < this.gutter || y < TOP) return -1;
    const item = this.itemAt(y);
    return item?.type === "counter" ? item.index : -1;
  }

  flagAt(x) {
    let best = null;
    for (const flag of this.data.flags) {
      const [low, high] = [this.xOf(flag.t0) - 7, this.xOf(flag.t1) + 7];
      if (x >= low && x <= high && (!best || flag.t1 - flag.t0 < best.t1 - best.t0)) best = flag;
    }
    return best;
  }
}
