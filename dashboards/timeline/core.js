// The arithmetic of the timeline: ticks, merging of what is narrower than a pixel, hit test, search, layout.
// No DOM and no canvas here, so that it runs under `node --test`.

export const NONE = 0xffffffff;
export const NO_STAGE = 255;
// Colour codes: a stage is its own number, an event without one is 256 + its kind.
export const KIND_CODE = 256;
const CODES = 512;

/** First index in [low, high) whose value is not below x; `values` ascends there. */
export function lowerBound(values, x, low, high) {
  while (low < high) {
    const middle = (low + high) >>> 1;
    if (values[middle] < x) low = middle + 1;
    else high = middle;
  }
  return low;
}

/** Nanoseconds in words, every recorded digit kept: 12345 -> "12.345 us". */
export function formatNs(ns) {
  const sign = ns < 0 ? "-" : "";
  let size = Math.abs(ns);
  // Integers only: 1234567.891 would print the error of a double.
  size = Math.round(size);
  if (size < 1e3) return `${sign}${size} ns`;
  const [unit, digits] = size < 1e6 ? ["us", 3] : size < 1e9 ? ["ms", 6] : ["s", 9];
  const one = 10 ** digits;
  const whole = Math.floor(size / one);
  const rest = String(size - whole * one).padStart(digits, "0").replace(/0+$/, "");
  return `${sign}${whole}${rest ? "." + rest : ""} ${unit}`;
}

/** 1234567 -> "1,234,567". */
export function formatCount(n) {
  return String(n).replace(/\B(?=(\d{3})+(?!\d))/g, ",");
}

/** Marks of the time axis: round values in [t0, t1], at least `apart` pixels from each other. */
export function ticks(t0, t1, width, apart = 110) {
  const span = t1 - t0;
  if (!(span > 0) || !(width > 0)) return { step: 1, marks: [] };
  const least = Math.max(1, (span * apart) / width);
  const power = 10 ** Math.floor(Math.log10(least));
  const step = [1, 2, 5, 10].map((k) => k * power).find((s) => s >= least * 0.999999);
  const marks = [];
  for (let k = Math.ceil(t0 / step); k * step <= t1; k++) marks.push(Math.round(k * step));
  return { step, marks };
}

/** A view inside [low, high], never narrower than `least` ns, moved rather than cut. */
export function clampView(t0, t1, low, high, least = 50) {
  let span = Math.min(Math.max(t1 - t0, least), Math.max(high - low, least));
  let start = Math.min(Math.max(t0, low), Math.max(low, high - span));
  return { t0: start, t1: start + span };
}

/** Zoom by `factor` (below 1: in) so that the moment `at` stays where it is. */
export function zoom(view, at, factor) {
  return { t0: at - (at - view.t0) * factor, t1: at + (view.t1 - at) * factor };
}

/** Room for the cells of one row; reused from draw to draw. */
export function cellList() {
  return { size: 0, x0: [], x1: [], index: [], n: [], code: [], hit: [], total: [] };
}

function push(cells, x0, x1, index, n, code, hit, total) {
  const k = cells.size++;
  cells.x0[k] = x0;
  cells.x1[k] = x1;
  cells.index[k] = index;
  cells.n[k] = n;
  cells.code[k] = code;
  cells.hit[k] = hit;
  cells.total[k] = total;
}

const weight = new Float64Array(CODES);
const touched = [];

/**
 * What to draw of one row. Events at least `least` pixels wide become a cell each; narrower ones that start within the
 * same `least` pixels become one cell, which knows how many they are (`n`), their summed time (`total`, ns) and the
 * colour code that most of that time has. A cell with n > 1 is never one event: its `index` is its first.
 *
 * cols: start, dur (Float64Array), stage, kind (Uint8Array), name (Uint32Array); optional count and total: how many events
 * are already merged into each entry, and their summed time. Entries [first, first + count) ascend by start and do not overlap, but for the rounding of nested
 * calls. mask: one flag per name, or null.
 */
export function mergeRow(cols, first, count, view, width, least, mask, out) {
  out.size = 0;
  const { start, dur, stage, kind, name, count: merged, total: summed } = cols;
  const last = first + count;
  const scale = width / (view.t1 - view.t0);
  let i = lowerBound(start, view.t0, first, last);
  while (i > first && start[i - 1] + dur[i - 1] > view.t0) i--;
  let bucket = -1, from = -1, n = 0, hit = 0, total = 0;
  const flush = () => {
    if (!n) return;
    let best = touched[0];
    for (const code of touched) if (weight[code] > weight[best]) best = code;
    for (const code of touched) weight[code] = 0;
    touched.length = 0;
    if (n === 1) {
      const x = (start[from] - view.t0) * scale;
      push(out, x, Math.max(x + dur[from] * scale, x + 1), from, 1, best, hit, total);
    } else push(out, bucket * least, (bucket + 1) * least, from, n, best, hit, total);
    n = 0;
  };
  for (; i < last && start[i] < view.t1; i++) {
    const length = dur[i];
    const code = stage[i] === NO_STAGE ? KIND_CODE + kind[i] : stage[i];
    const wide = length * scale >= least;
    const matches = mask === null || mask[name[i]] === 1 ? 1 : 0;
    if (wide) {
      flush();
      const x = (start[i] - view.t0) * scale;
      push(out, x, x + length * scale, i, merged ? merged[i] : 1, code, matches, summed ? summed[i] : length);
      continue;
    }
    const at = Math.floor(((start[i] - view.t0) * scale) / least);
    if (at !== bucket || n === 0) {
      flush();
      bucket = at;
      from = i;
      hit = total = 0;
    }
    n += merged ? merged[i] : 1;
    hit |= matches;
    total += summed ? summed[i] : length;
    if (weight[code] === 0) touched.push(code);
    weight[code] += length + 1e-3;
  }
  flush();
  return out;
}

/** The cell at pixel x, or the nearest within `slop` pixels; -1: none. Cells ascend; a later one lies on top. */
export function hitTest(cells, x, slop = 3) {
  let best = -1, distance = slop;
  let k = lowerBound(cells.x0, x + slop, 0, cells.size) - 1;
  for (let tries = 0; k >= 0 && tries < 8; k--, tries++) {
    const away = x < cells.x0[k] ? cells.x0[k] - x : x > cells.x1[k] ? x - cells.x1[k] : 0;
    if (away === 0) return k;
    if (away < distance) [best, distance] = [k, away];
  }
  return best;
}

/** One flag per name: it contains the text, whatever the case. null for an empty text. */
export function matchNames(names, text) {
  const wanted = text.trim().toLowerCase();
  if (!wanted) return null;
  const mask = new Uint8Array(names.length);
  for (let i = 0; i < names.length; i++) if (names[i].toLowerCase().includes(wanted)) mask[i] = 1;
  return mask;
}

/** How many events have a matching name. */
export function countMatches(nameColumn, mask) {
  let found = 0;
  for (let i = 0; i < nameColumn.length; i++) found += mask[nameColumn[i]];
  return found;
}

/** Index by event id, -1 where an id is not drawn, or only merged with others (`merged`: events in each entry). */
export function indexById(ids, merged = null) {
  let most = -1;
  for (let i = 0; i < ids.length; i++) if (ids[i] > most) most = ids[i];
  const at = new Int32Array(most + 1).fill(-1);
  for (let i = 0; i < ids.length; i++) if (!merged || merged[i] === 1) at[ids[i]] = i;
  return at;
}

/** The next matching event in time order after event id `after` (direction 1) or before it (-1), around the end. */
export function nextMatch(at, nameColumn, mask, after, direction) {
  const n = at.length;
  for (let step = 1; step <= n; step++) {
    const id = (((after + direction * step) % n) + n) % n;
    const index = at[id];
    if (index >= 0 && mask[nameColumn[index]]) return index;
  }
  return -1;
}

/** What belongs to an event: the call that launched it, and the device work that it launched. Indices. */
export function flows(cols, at, index, most = 200) {
  const launch = cols.launch[index];
  const from = launch !== NONE && launch < at.length && at[launch] >= 0 ? at[launch] : -1;
  const to = [];
  const id = cols.id[index];
  for (let i = 0; i < cols.launch.length && to.length < most; i++) if (cols.launch[i] === id) to.push(i);
  return { from, to };
}

/** Row (index into `rows`) that holds an entry. */
export function rowOf(rows, index) {
  let low = 0, high = rows.length - 1;
  while (low < high) {
    const middle = (low + high + 1) >>> 1;
    if (rows[middle].first <= index) low = middle;
    else high = middle - 1;
  }
  return low;
}

/**
 * Where groups, lanes and rows lie, from the top. `folded`: groups that are shut; `open`: lanes whose rows are all shown
 * (a shut lane shows its first row only). rows: {lane, row} in order. `counters`: how many values over time lie above
 * them, `shut`: folded into one line. Returns {items, height, rowY}, where rowY[k] is the top of row k, or -1 if it is
 * not shown.
 */
export function layout(groups, lanes, rows, folded, open, sizes, counters = 0, shut = false) {
  const rowsOf = lanes.map(() => []);
  rows.forEach((row, k) => rowsOf[row.lane].push(k));
  const rowY = new Float64Array(rows.length).fill(-1);
  const items = [];
  let y = 0, group = -1;
  if (counters) {
    items.push({ type: "counters", index: 0, y, h: sizes.group });
    y += sizes.group;
    for (let k = 0; k < counters && !shut; k++, y += sizes.counter) items.push({ type: "counter", index: k, y, h: sizes.counter });
  }
  lanes.forEach((lane, index) => {
    if (lane.group !== group) {
      group = lane.group;
      items.push({ type: "group", index: group, y, h: sizes.group });
      y += sizes.group;
    }
    if (folded.has(group)) return;
    const shown = open.has(index) ? lane.rows : 1;
    const h = shown * sizes.row + sizes.gap;
    items.push({ type: "lane", index, y, h });
    for (const k of rowsOf[index]) if (rows[k].row < shown) rowY[k] = y + rows[k].row * sizes.row;
    y += h;
  });
  return { items, height: y, rowY };
}

/** Index of the sample that holds at time t: the last one in [first, last) that is not later; -1: none yet. */
export function sampleAt(at, t, first, last) {
  let k = lowerBound(at, t, first, last);
  while (k < last && at[k] === t) k++;
  return k > first ? k - 1 : -1;
}

/** A value in words: bytes in their decimal unit, anything else with six digits at most. */
export function formatValue(value, unit) {
  if (unit !== "bytes") return `${Number(value.toPrecision(6))}${unit ? ` ${unit}` : ""}`;
  const size = Math.abs(value);
  const [name, one] = size < 1e3 ? ["B", 1] : size < 1e6 ? ["kB", 1e3] : size < 1e9 ? ["MB", 1e6] : size < 1e12 ? ["GB", 1e9] : ["TB", 1e12];
  return `${Number((value / one).toPrecision(4))} ${name}`;
}

/** A text cut to `room` characters, with an ellipsis if anything is missing. */
export function cut(text, room) {
  if (text.length <= room) return text;
  return room < 3 ? "" : text.slice(0, room - 1) + "…";
}

/** A name without what says nothing of it, for where there is little room. The whole name is shown when pointed at. */
export function brief(name) {
  return name.replace(/^void /, "").replace(/\(anonymous namespace\)::|\b(at::native|at|c10|std)::/g, "") || name;
}

/** Black or white, whichever is easier to read on a colour "#rrggbb". */
export function inkOn(colour) {
  const part = (k) => {
    const c = parseInt(colour.slice(k, k + 2), 16) / 255;
    return c <= 0.04045 ? c / 12.92 : ((c + 0.055) / 1.055) ** 2.4;
  };
  const light = 0.2126 * part(1) + 0.7152 * part(3) + 0.0722 * part(5);
  return light > 0.179 ? "#000000" : "#ffffff";
}
