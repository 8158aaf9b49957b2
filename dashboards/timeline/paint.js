// How the timeline is drawn: lanes, cells, flags, the selection and its flows, names and ruler, on a 2D canvas.
import { KIND_CODE, formatNs, formatValue, lowerBound, ticks, mergeRow, flows, rowOf, layout, cut, brief, inkOn } from "./core.js";

/** Most room for the names of lanes, and most of the whole width: a phone has little. */
export const GUTTER = 216, GUTTER_SHARE = 0.34;
export const RULER = 24, FLAGS = 16, LEAST_PX = 2, HEIGHT = 500;
export const TOP = RULER + FLAGS;
export const SIZES = { group: 22, row: 17, gap: 5, counter: 30 };

/** What draws; the subclass owns the canvas, the data and the state. */
export class Painter {
  gutter = GUTTER;

  width() {
    return Math.max(50, this.canvas.clientWidth - this.gutter);
  }

  timeAt(x) {
    return this.view.t0 + ((x - this.gutter) / this.width()) * (this.view.t1 - this.view.t0);
  }

  xOf(time) {
    return this.gutter + ((time - this.view.t0) / (this.view.t1 - this.view.t0)) * this.width();
  }

  colour(code) {
    return code < KIND_CODE ? this.data.stages[code].colour : this.data.kinds[code - KIND_CODE].colour;
  }

  redraw() {
    if (this.frame || !this.data) return;
    this.frame = requestAnimationFrame(() => {
      this.frame = 0;
      const begin = performance.now();
      this.draw();
      this.canvas.dataset.drawMs = (performance.now() - begin).toFixed(2);
      this.canvas.dataset.draws = String(Number(this.canvas.dataset.draws ?? 0) + 1);
      this.canvas.dataset.view = `${Math.floor(this.view.t0)}-${Math.ceil(this.view.t1)}`;
      this.canvas.dataset.flows = this.links ? String((this.links.from >= 0 ? 1 : 0) + this.links.to.length) : "0";
      this.canvas.dataset.counters = String(this.countersShut ? 0 : this.data.counters.length);
      this.canvas.dataset.entries = String(this.cols.start.length);
      this.canvas.dataset.chosen = this.chosen >= 0 ? String(this.cols.id[this.chosen]) : "";
    });
  }

  arrange() {
    const { groups, lanes, counters } = this.data;
    this.plan = layout(groups, lanes, this.rows, this.folded, this.open, SIZES, counters.length, this.countersShut);
  }

  draw() {
    this.arrange();
    const height = Math.min(HEIGHT, Math.max(160, this.plan.height + TOP + 8));
    const width = this.canvas.parentElement.clientWidth;
    if (!width) return;
    this.gutter = Math.min(GUTTER, Math.round(width * GUTTER_SHARE));
    const ratio = window.devicePixelRatio || 1;
    if (this.canvas.width !== Math.round(width * ratio) || this.canvas.height !== Math.round(height * ratio)) {
      this.canvas.width = Math.round(width * ratio);
      this.canvas.height = Math.round(height * ratio);
      this.canvas.style.height = `${height}px`;
    }
    const room = Math.max(0, this.plan.height - (height - TOP));
    this.scroll = Math.min(this.scroll, room);
    const ctx = this.canvas.getContext("2d", { alpha: false });
    ctx.setTransform(ratio, 0, 0, ratio, 0, 0);
    ctx.textBaseline = "middle";
    ctx.font = `11px ${this.theme.font}`;
    this.charWidth = ctx.measureText("abcdefghijklmnopqrstuvwxyz_0123456789").width / 37;
    ctx.fillStyle = this.theme.back;
    ctx.fillRect(0, 0, width, height);
    this.drawLanes(ctx, width, height);
    this.drawCells(ctx, width, height);
    this.drawCounters(ctx, width, height);
    this.drawFlags(ctx, width, height);
    this.drawSelection(ctx, width, height);
    this.drawLabels(ctx, height);
    this.drawRuler(ctx, width, height);
    if (room > 0) {
      const track = height - TOP, bar = Math.max(24, (track * track) / this.plan.height);
      ctx.fillStyle = this.theme.text;
      ctx.globalAlpha = 0.35;
      ctx.fillRect(width - 6, TOP + (this.scroll / room) * (track - bar), 5, bar);
      ctx.globalAlpha = 1;
    }
    this.span.textContent = `${formatNs(this.view.t0)} + ${formatNs(this.view.t1 - this.view.t0)}`;
  }

  drawLanes(ctx, width, height) {
    for (const item of this.plan.items) {
      const y = TOP + item.y - this.scroll;
      if (y + item.h < TOP || y > height) continue;
      if (item.type === "group" || item.type === "counters") {
        ctx.fillStyle = this.theme.panel;
        ctx.fillRect(0, y, width, item.h);
      } else {
        ctx.fillStyle = this.theme.line;
        ctx.globalAlpha = 0.5;
        ctx.fillRect(0, y + item.h - 1, width, 1);
        ctx.globalAlpha = 1;
      }
    }
  }

  drawCells(ctx, width, height) {
    const room = width - this.gutter, row = SIZES.row;
    ctx.save();
    ctx.beginPath();
    ctx.rect(this.gutter, TOP, room, height - TOP);
    ctx.clip();
    const byCode = new Map();
    const titles = [];
    for (let k = 0; k < this.rows.length; k++) {
      const top = this.plan.rowY[k];
      const y = TOP + top - this.scroll;
      this.cells[k].size = 0;
      if (top < 0 || y + row < TOP || y > height) continue;
      const cells = mergeRow(this.cols, this.rows[k].first, this.rows[k].count, this.view, room, LEAST_PX, this.mask, this.cells[k]);
      for (let c = 0; c < cells.size; c++) {
        const key = cells.code[c] * 4 + (cells.hit[c] ? 2 : 0) + (cells.n[c] > 1 ? 1 : 0);
        let list = byCode.get(key);
        if (!list) byCode.set(key, (list = []));
        const x0 = Math.max(cells.x0[c], -1), x1 = Math.min(cells.x1[c], room + 1);
        // A merged cell is lower than an event, so that the two are told apart without colour too.
        if (cells.n[c] > 1) list.push(x0, y + 4, x1 - x0, row - 8);
        else {
          const w = Math.max(1, x1 - x0);
          list.push(x0, y + 1, w > 4 ? w - 0.5 : w, row - 2);
          if (w > 34) titles.push([x0, y, w, cells.index[c], cells.code[c], cells.hit[c]]);
        }
      }
    }
    for (const [key, list] of byCode) {
      ctx.fillStyle = this.colour(key >> 2);
      ctx.globalAlpha = (key & 2 ? 1 : 0.2) * (key & 1 ? 0.85 : 1);
      for (let k = 0; k < list.length; k += 4) ctx.fillRect(this.gutter + list[k], list[k + 1], list[k + 2], list[k + 3]);
    }
    ctx.globalAlpha = 1;
    for (const [x, y, w, index, code, hit] of titles) {
      const text = cut(brief(this.data.names[this.cols.name[index]]), Math.floor((w - 6) / this.charWidth));
      if (!text) continue;
      ctx.fillStyle = hit ? this.inkFor(code) : this.theme.text;
      ctx.fillText(text, this.gutter + x + 3, y + row / 2 + 0.5);
    }
    ctx.restore();
  }

  /** Values over time, from nothing to the highest: each holds until the next one. */
  drawCounters(ctx, width, height) {
    ctx.save();
    ctx.beginPath();
    ctx.rect(this.gutter, TOP, width - this.gutter, height - TOP);
    ctx.clip();
    for (const item of this.plan.items) {
      const y = TOP + item.y - this.scroll;
      if (item.type !== "counter" || y + item.h < TOP || y > height) continue;
      const { least, most } = this.data.counters[item.index], { at, value } = this.samples;
      const { first, last } = this.series[item.index];
      const low = Math.min(0, least), room = item.h - 6, bottom = y + item.h - 2;
      const yOf = (one) => bottom - ((one - low) / (Math.max(most, 0) - low || 1)) * room;
      let k = Math.max(first, lowerBound(at, this.view.t0, first, last) - 1);
      if (k >= last) continue;
      ctx.beginPath();
      const start = Math.max(this.xOf(at[k]), this.gutter - 2);
      ctx.moveTo(start, yOf(0));
      let x = start;
      for (; k < last && at[k] < this.view.t1; k++) {
        ctx.lineTo(Math.max(this.xOf(at[k]), start), yOf(value[k]));
        // The last one holds until the trace ends.
        x = Math.min(this.xOf(k + 1 < last ? at[k + 1] : this.data.end), width + 2);
        ctx.lineTo(x, yOf(value[k]));
      }
      ctx.lineTo(x, yOf(0));
      ctx.closePath();
      ctx.fillStyle = this.theme.accent;
      ctx.globalAlpha = 0.3;
      ctx.fill();
      ctx.globalAlpha = 1;
      ctx.strokeStyle = this.theme.accent;
      ctx.stroke();
    }
    ctx.restore();
  }

  inkFor(code) {
    if (!this.ink.has(code)) this.ink.set(code, inkOn(this.colour(code)));
    return this.ink.get(code);
  }

  drawFlags(ctx, width, height) {
    ctx.save();
    ctx.beginPath();
    ctx.rect(this.gutter, RULER, width - this.gutter, height - RULER);
    ctx.clip();
    for (const flag of this.data.flags) {
      const x0 = this.xOf(flag.t0), x1 = this.xOf(flag.t1);
      if (x1 < this.gutter || x0 > width) continue;
      const lane = flag.device === null || flag.device === undefined ? null : flag.device;
      ctx.fillStyle = this.theme.text;
      if (x1 - x0 > 3) {
        // Only a gap is shaded: over a finding lies work, whose colours would change.
        ctx.globalAlpha = 0.09;
        for (const item of flag.kind === "gap" ? this.plan.items : []) {
          if (item.type !== "lane" || (lane !== null && this.data.lanes[item.index].device !== lane)) continue;
          ctx.fillRect(x0, TOP + item.y - this.scroll, x1 - x0, item.h - 1);
        }
        ctx.globalAlpha = 0.55;
        ctx.fillRect(x0, RULER + FLAGS - 3, x1 - x0, 2);
        ctx.globalAlpha = 1;
      }
      const middle = Math.min(Math.max((x0 + x1) / 2, this.gutter + 6), width - 6);
      ctx.beginPath();
      if (flag.kind === "gap") ctx.rect(middle - 4, RULER + 3, 8, 8);
      else {
        ctx.moveTo(middle - 5, RULER + 3);
        ctx.lineTo(middle + 5, RULER + 3);
        ctx.lineTo(middle, RULER + 12);
      }
      ctx.fill();
    }
    ctx.restore();
  }

  drawSelection(ctx, width, height) {
    ctx.save();
    ctx.beginPath();
    ctx.rect(this.gutter, TOP, width - this.gutter, height - TOP);
    ctx.clip();
    if (this.area) {
      ctx.fillStyle = this.theme.accent;
      ctx.strokeStyle = this.theme.accent;
      const x0 = this.xOf(this.area.t0), x1 = this.xOf(this.area.t1);
      for (const item of this.plan.items) {
        const inside = item.type === "lane" ? this.area.lanes.has(item.index)
          : item.type === "group" && this.folded.has(item.index) && this.data.lanes.some((lane, k) => lane.group === item.index && this.area.lanes.has(k));
        if (!inside) continue;
        ctx.globalAlpha = 0.18;
        ctx.fillRect(x0, TOP + item.y - this.scroll, x1 - x0, item.h);
      }
      ctx.globalAlpha = 1;
      ctx.strokeRect(x0 + 0.5, TOP, x1 - x0, height - TOP);
    }
    if (this.chosen >= 0) {
      if (!this.links) this.links = this.cols.count ? { from: -1, to: [] } : flows(this.cols, this.at, this.chosen);
      const { from, to } = this.links;
      ctx.strokeStyle = this.theme.text;
      ctx.lineWidth = 1.25;
      if (from >= 0) this.arrow(ctx, from, this.chosen);
      for (const index of to) this.arrow(ctx, this.chosen, index);
      ctx.lineWidth = 2;
      this.outline(ctx, this.chosen, this.theme.text);
      ctx.lineWidth = 1.25;
      for (const index of [from, ...to]) if (index >= 0) this.outline(ctx, index, this.theme.text);
      ctx.lineWidth = 1;
    }
    ctx.restore();
  }

  /** Middle of the row of an entry; of what is folded away, the middle of its group's or lane's line. */
  yOf(index) {
    const k = rowOf(this.rows, index);
    const { lane } = this.rows[k];
    const own = this.plan.rowY[k];
    if (own >= 0) return TOP + own - this.scroll + SIZES.row / 2;
    const item = this.plan.items.find((one) => one.type === "lane" && one.index === lane)
      ?? this.plan.items.find((one) => one.type === "group" && one.index === this.data.lanes[lane].group);
    return TOP + item.y - this.scroll + SIZES.row / 2;
  }

  outline(ctx, index, colour) {
    const x0 = this.xOf(this.cols.start[index]), x1 = this.xOf(this.cols.start[index] + this.cols.dur[index]);
    ctx.strokeStyle = colour;
    ctx.strokeRect(x0 - 0.5, this.yOf(index) - SIZES.row / 2 + 0.5, Math.max(2, x1 - x0) + 1, SIZES.row - 1);
  }

  arrow(ctx, from, to) {
    const x0 = this.xOf(this.cols.start[from] + this.cols.dur[from]), x1 = this.xOf(this.cols.start[to]);
    const y0 = this.yOf(from), y1 = this.yOf(to);
    const bend = Math.max(20, Math.abs(x1 - x0) / 2);
    ctx.beginPath();
    ctx.moveTo(x0, y0);
    ctx.bezierCurveTo(x0 + bend, y0, x1 - bend, y1, x1, y1);
    ctx.moveTo(x1 - 5, y1 - 4);
    ctx.lineTo(x1, y1);
    ctx.lineTo(x1 - 5, y1 + 4);
    ctx.stroke();
  }

  drawLabels(ctx, height) {
    ctx.save();
    ctx.beginPath();
    ctx.rect(0, TOP, this.gutter, height - TOP);
    ctx.clip();
    const room = Math.floor((this.gutter - 22) / this.charWidth);
    for (const item of this.plan.items) {
      const y = TOP + item.y - this.scroll;
      if (y + item.h < TOP || y > height) continue;
      const head = item.type === "group" || item.type === "counters";
      ctx.fillStyle = head ? this.theme.panel : this.theme.back;
      ctx.fillRect(0, y, this.gutter - 1, item.h - 1);
      ctx.fillStyle = this.theme.text;
      if (head) {
        const own = item.type === "group";
        const shut = own ? this.folded.has(item.index) : this.countersShut;
        const label = own ? this.data.groups[item.index].label : `counters (${this.data.counters.length})`;
        ctx.font = `600 11px ${this.theme.font}`;
        ctx.fillText(`${shut ? "▸" : "▾"} ${cut(label, room)}`, 4, y + item.h / 2);
        ctx.font = `11px ${this.theme.font}`;
        continue;
      }
      if (item.type === "counter") {
        const { label, unit, most } = this.data.counters[item.index];
        ctx.fillText(cut(label, room), 16, y + 9);
        ctx.globalAlpha = 0.7;
        ctx.fillText(cut(`at most ${formatValue(most, unit)}`, room), 16, y + 21);
        ctx.globalAlpha = 1;
        continue;
      }
      const lane = this.data.lanes[item.index];
      const more = lane.rows > 1 ? (this.open.has(item.index) ? "▾ " : "▸ ") : "   ";
      const hidden = lane.rows > 1 && !this.open.has(item.index) ? ` (+${lane.rows - 1})` : "";
      ctx.fillText(more + cut(lane.label, room - hidden.length) + hidden, 8, y + SIZES.row / 2 + 1);
    }
    ctx.restore();
    ctx.fillStyle = this.theme.line;
    ctx.fillRect(this.gutter - 1, 0, 1, height);
  }

  drawRuler(ctx, width, height) {
    ctx.fillStyle = this.theme.back;
    ctx.fillRect(0, 0, width, RULER);
    ctx.fillStyle = this.theme.text;
    ctx.globalAlpha = 0.7;
    ctx.fillText(this.data.flags.length ? "gaps ■  findings ▼" : "", 8, RULER + FLAGS / 2 - 1);
    ctx.globalAlpha = 1;
    ctx.save();
    ctx.beginPath();
    ctx.rect(this.gutter, 0, width - this.gutter, height);
    ctx.clip();
    for (const mark of ticks(this.view.t0, this.view.t1, width - this.gutter).marks) {
      const x = this.xOf(mark);
      ctx.globalAlpha = 0.25;
      ctx.fillStyle = this.theme.line;
      ctx.fillRect(x, RULER, 1, height);
      ctx.globalAlpha = 1;
      ctx.fillStyle = this.theme.text;
      ctx.fillRect(x, RULER - 6, 1, 6);
      ctx.fillText(formatNs(mark), x + 4, RULER / 2);
    }
    if (this.measured) {
      const [x0, x1] = this.measured.map((time) => this.xOf(time));
      ctx.fillStyle = this.theme.accent;
      ctx.fillRect(x0, 0, 1, height);
      ctx.fillRect(x1, 0, 1, height);
      ctx.fillRect(x0, RULER - 2, Math.max(1, x1 - x0), 2);
      const text = formatNs(this.measured[1] - this.measured[0]);
      const w = ctx.measureText(text).width + 8;
      const x = Math.min(Math.max((x0 + x1 - w) / 2, this.gutter + 2), width - w - 2);
      ctx.fillRect(x, 3, w, RULER - 8);
      ctx.fillStyle = this.theme.back;
      ctx.fillText(text, x + 4, RULER / 2 - 1);
    }
    ctx.restore();
    ctx.strokeStyle = this.theme.line;
    ctx.beginPath();
    ctx.moveTo(0, TOP - 0.5);
    ctx.lineTo(width, TOP - 0.5);
    ctx.stroke();
  }
}
