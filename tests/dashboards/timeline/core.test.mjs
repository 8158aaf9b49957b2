// Run by `node --test`; pytest does so where Node is installed.
import assert from "node:assert/strict";
import { test } from "node:test";

// Node takes a file named .js for a module only beside a package.json; its text is one in any case.
import { readFileSync } from "node:fs";
const source = readFileSync(process.env.TRACEVIEW_CORE_JS, "utf8");
const core = await import("data:text/javascript," + encodeURIComponent(source));

const columns = (events) => ({
  start: Float64Array.from(events, (e) => e[0]),
  dur: Float64Array.from(events, (e) => e[1]),
  stage: Uint8Array.from(events, (e) => e[2] ?? core.NO_STAGE),
  kind: Uint8Array.from(events, (e) => e[3] ?? 7),
  name: Uint32Array.from(events, (e) => e[4] ?? 0),
  launch: Uint32Array.from(events, (e) => e[5] ?? core.NONE),
  id: Uint32Array.from(events, (_, i) => i),
});

const cellsOf = (cells) =>
  Array.from({ length: cells.size }, (_, k) => ({
    x0: cells.x0[k], x1: cells.x1[k], index: cells.index[k], n: cells.n[k], code: cells.code[k], hit: cells.hit[k],
    total: cells.total[k],
  }));

const merge = (cols, view, width, mask = null) =>
  cellsOf(core.mergeRow(cols, 0, cols.start.length, view, width, 2, mask, core.cellList()));

test("durations keep every digit and nothing more", () => {
  assert.deepEqual(
    [0, 812, 12345, 1000, 53901, 1234567, 9007199254740991, -1500].map(core.formatNs),
    ["0 ns", "812 ns", "12.345 us", "1 us", "53.901 us", "1.234567 ms", "9007199.254740991 s", "-1.5 us"],
  );
});

test("counts are grouped", () => assert.equal(core.formatCount(1234567), "1,234,567"));

test("ticks are round, inside the view and far enough apart", () => {
  const { step, marks } = core.ticks(130_845_138, 131_923_159, 900);
  assert.equal(step, 200_000);
  assert.deepEqual(marks, [131_000_000, 131_200_000, 131_400_000, 131_600_000, 131_800_000]);
  assert.deepEqual(core.ticks(0, 10, 500).marks, [0, 5, 10]);
  assert.deepEqual(core.ticks(5, 5, 500).marks, []);
  for (const mark of core.ticks(0, 1e18, 900).marks) assert.ok(Number.isFinite(mark));
});

test("a view is moved into the trace, not cut", () => {
  assert.deepEqual(core.clampView(-50, 50, 0, 1000), { t0: 0, t1: 100 });
  assert.deepEqual(core.clampView(950, 1050, 0, 1000), { t0: 900, t1: 1000 });
  assert.deepEqual(core.clampView(-10, 5000, 0, 1000), { t0: 0, t1: 1000 });
  assert.deepEqual(core.clampView(500, 501, 0, 1000), { t0: 500, t1: 550 });
});

test("zooming keeps the moment under the pointer", () => {
  const view = core.zoom({ t0: 0, t1: 1000 }, 250, 0.5);
  assert.deepEqual(view, { t0: 125, t1: 625 });
  assert.equal((250 - view.t0) / (view.t1 - view.t0), 0.25);
});

test("wide events stay alone, narrow ones of one bucket become a cell that knows how many they are", () => {
  // 100 px for 1000 ns: 10 ns a pixel, so less than 20 ns is narrow.
  const cols = columns([[0, 300, 1], [300, 5, 1], [305, 5, 2], [312, 5, 2], [500, 5, 3], [600, 100]]);
  assert.deepEqual(merge(cols, { t0: 0, t1: 1000 }, 100), [
    { x0: 0, x1: 30, index: 0, n: 1, code: 1, hit: 1, total: 300 },
    { x0: 30, x1: 32, index: 1, n: 3, code: 2, hit: 1, total: 15 },
    { x0: 50, x1: 51, index: 4, n: 1, code: 3, hit: 1, total: 5 },
    { x0: 60, x1: 70, index: 5, n: 1, code: 256 + 7, hit: 1, total: 100 },
  ]);
});

test("no event is lost and none is counted twice, at any zoom", () => {
  let seed = 7;
  const random = () => (seed = (seed * 1103515245 + 12345) % 2147483648) / 2147483648;
  const events = [];
  for (let at = 0; events.length < 5000; ) {
    const length = Math.floor(random() ** 4 * 5000);
    events.push([at, length, Math.floor(random() * 5)]);
    at += length + Math.floor(random() * 30);
  }
  const cols = columns(events);
  const [last, lastLength] = events.at(-1);
  for (const width of [10, 333, 1200, 100000]) {
    const cells = merge(cols, { t0: 0, t1: last + lastLength + 1 }, width);
    assert.equal(cells.reduce((sum, cell) => sum + cell.n, 0), events.length);
    assert.equal(cells.reduce((sum, cell) => sum + cell.total, 0), events.reduce((sum, event) => sum + event[1], 0));
  }
});

test("the colour of a cell is the stage with most of its time, not with most of its events", () => {
  const [cell] = merge(columns([[0, 1, 4], [2, 1, 4], [4, 1, 4], [6, 9, 2]]), { t0: 0, t1: 1000 }, 100);
  assert.equal(cell.n, 4);
  assert.equal(cell.code, 2);
});

test("what was merged before counts with all its events", () => {
  const cols = { ...columns([[0, 5, 1], [6, 5, 1], [400, 300, 1]]), count: Uint32Array.of(7, 1, 40), total: Float64Array.of(4, 5, 200) };
  const cells = merge(cols, { t0: 0, t1: 1000 }, 100);
  assert.deepEqual(cells.map((cell) => [cell.n, cell.total]), [[8, 9], [40, 200]]);
});

test("only what the view shows is drawn, and what reaches into it", () => {
  const cols = columns([[0, 100], [150, 100], [300, 100], [450, 100], [600, 100]]);
  assert.deepEqual(merge(cols, { t0: 200, t1: 460 }, 260).map((cell) => cell.index), [1, 2, 3]);
});

test("a cell is a match if any of its events is", () => {
  const cols = columns([[0, 2, 1, 7, 0], [4, 2, 1, 7, 1], [500, 2, 1, 7, 0]]);
  assert.deepEqual(merge(cols, { t0: 0, t1: 1000 }, 100, Uint8Array.of(0, 1)).map((cell) => cell.hit), [1, 0]);
});

test("a hit is the cell under the pointer, else the nearest close by", () => {
  const cells = { size: 3, x0: [0, 40, 41], x1: [30, 60, 42] };
  assert.equal(core.hitTest(cells, 10), 0);
  assert.equal(core.hitTest(cells, 41.5), 2, "the later one lies on top");
  assert.equal(core.hitTest(cells, 50), 1);
  assert.equal(core.hitTest(cells, 32), 0);
  assert.equal(core.hitTest(cells, 35), -1);
  assert.equal(core.hitTest({ size: 0, x0: [], x1: [] }, 5), -1);
});

test("search looks at every event, in time order, and goes around the end", () => {
  const cols = columns([[0, 1, 1, 7, 0], [5, 1, 1, 7, 1], [9, 1, 1, 7, 0], [12, 1, 1, 7, 2]]);
  const mask = core.matchNames(["aten::MM", "softmax", "gemm_mm"], " mm ");
  assert.deepEqual([...mask], [1, 0, 1]);
  assert.equal(core.countMatches(cols.name, mask), 3);
  const at = core.indexById(cols.id);
  assert.equal(core.nextMatch(at, cols.name, mask, -1, 1), 0);
  assert.equal(core.nextMatch(at, cols.name, mask, 0, 1), 2);
  assert.equal(core.nextMatch(at, cols.name, mask, 3, 1), 0);
  assert.equal(core.nextMatch(at, cols.name, mask, 0, -1), 3);
  assert.equal(core.nextMatch(at, cols.name, core.matchNames(["a", "b", "c"], "zz"), 0, 1), -1);
  assert.equal(core.matchNames(["a"], "  "), null);
});

test("an id that is only merged with others is nowhere", () => {
  assert.deepEqual([...core.indexById(Uint32Array.of(0, 3, 1), Uint32Array.of(9, 1, 1))], [-1, 2, -1, 1]);
});

test("flows lead from the launch and to what was launched", () => {
  const cols = columns([[0, 1], [5, 1, 1, 7, 0, 0], [9, 1, 1, 7, 0, 0], [12, 1, 1, 7, 0, 99]]);
  const at = core.indexById(cols.id);
  assert.deepEqual(core.flows(cols, at, 0), { from: -1, to: [1, 2] });
  assert.deepEqual(core.flows(cols, at, 2), { from: 0, to: [] });
  assert.deepEqual(core.flows(cols, at, 3), { from: -1, to: [] }, "its launch is not drawn");
});

test("shut lanes show one row, folded groups none", () => {
  const lanes = [{ group: 0, rows: 1 }, { group: 0, rows: 3 }, { group: 1, rows: 1 }];
  const rows = [{ lane: 0, row: 0 }, { lane: 1, row: 0 }, { lane: 1, row: 1 }, { lane: 1, row: 2 }, { lane: 2, row: 0 }];
  const sizes = { group: 20, row: 10, gap: 2 };
  const open = core.layout([{}, {}], lanes, rows, new Set(), new Set([1]), sizes);
  assert.deepEqual([...open.rowY], [20, 32, 42, 52, 84]);
  assert.equal(open.height, 96);
  const shut = core.layout([{}, {}], lanes, rows, new Set([1]), new Set(), sizes);
  assert.deepEqual([...shut.rowY], [20, 32, -1, -1, -1]);
  assert.deepEqual(shut.items.map((item) => item.type), ["group", "lane", "lane", "group"]);
});

test("values over time lie above the lanes, or in one line when they are shut", () => {
  const sizes = { group: 20, row: 10, gap: 2, counter: 30 };
  const lanes = [{ group: 0, rows: 1 }], rows = [{ lane: 0, row: 0 }];
  const open = core.layout([{}], lanes, rows, new Set(), new Set(), sizes, 2, false);
  assert.deepEqual(open.items.map((item) => [item.type, item.y]), [["counters", 0], ["counter", 20], ["counter", 50], ["group", 80], ["lane", 100]]);
  assert.deepEqual([...open.rowY], [100]);
  const shut = core.layout([{}], lanes, rows, new Set(), new Set(), sizes, 2, true);
  assert.deepEqual(shut.items.map((item) => item.type), ["counters", "group", "lane"]);
  assert.equal(core.layout([{}], lanes, rows, new Set(), new Set(), sizes).items[0].type, "group");
});

test("a value holds until the next one", () => {
  const at = [10, 20, 20, 30, 5, 15];
  assert.deepEqual([5, 10, 15, 20, 29, 30, 99].map((t) => core.sampleAt(at, t, 0, 4)), [-1, 0, 0, 2, 2, 3, 3]);
  assert.deepEqual([4, 5, 14, 15].map((t) => core.sampleAt(at, t, 4, 6)), [-1, 4, 4, 5]);
  assert.equal(core.sampleAt(at, 1, 2, 2), -1);
});

test("values in words", () => {
  assert.deepEqual([0, 999, 1536, 2707847680, -860295680, 5e12].map((v) => core.formatValue(v, "bytes")),
    ["0 B", "999 B", "1.536 kB", "2.708 GB", "-860.3 MB", "5 TB"]);
  assert.equal(core.formatValue(100.5, "W"), "100.5 W");
  assert.equal(core.formatValue(1 / 3, ""), "0.333333");
});

test("the row of an entry", () => {
  const rows = [{ first: 0 }, { first: 4 }, { first: 9 }];
  assert.deepEqual([0, 3, 4, 8, 9, 50].map((index) => core.rowOf(rows, index)), [0, 0, 1, 1, 2, 2]);
});

test("a brief name keeps what tells kernels apart", () => {
  assert.equal(core.brief("void at::native::(anonymous namespace)::softmax_warp_forward<float>"), "softmax_warp_forward<float>");
  assert.equal(core.brief("void pytorch_flash::flash_fwd_kernel"), "pytorch_flash::flash_fwd_kernel");
  assert.equal(core.brief("aten::mm"), "aten::mm");
  assert.equal(core.brief("std::"), "std::");
});

test("words are cut to the room they have, ink suits its ground", () => {
  assert.equal(core.cut("softmax", 20), "softmax");
  assert.equal(core.cut("softmax", 5), "soft…");
  assert.equal(core.cut("softmax", 2), "");
  assert.deepEqual(["#0072B2", "#E69F00", "#ffffff", "#000000"].map(core.inkOn), ["#ffffff", "#000000", "#000000", "#ffffff"]);
});
