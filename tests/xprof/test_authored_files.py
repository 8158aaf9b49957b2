"""Small spaces written by hand, one question each: details, programs, folders and viewer files."""

from __future__ import annotations

import json

import polars as pl
import pytest

import traceview
from sample_traces.xspace_bytes import Instruction, Interned, Space, Unsigned, program
from traceview.errors import UnreadableTraceError
from traceview.gate import check
from traceview.report import kernel_report


class TestDetails:
    def test_two_sorts_of_values_under_one_name(self, loaded):
        space = Space()
        line = space.plane("/host:CPU").line("python", 1)
        for index, value in enumerate([7, 0.5, "many", Interned("more"), Unsigned((1 << 64) - 1)]):
            line.event("MemoryAllocation", index, 0, size=value)
        timeline = loaded(space.encode())
        assert timeline.details["size"]["value"].to_list() == [7]
        assert timeline.details["size (text)"]["value"].cast(pl.String).to_list() == [
            "0.5",
            '"many"',
            '"more"',
            str((1 << 64) - 1),
        ]

    def test_what_an_event_says_outweighs_what_its_name_says(self, loaded):
        space = Space()
        ops = space.plane("/device:TPU:0").line("XLA Ops", 3)
        ops.event(
            "fusion.1",
            0,
            10,
            of_name={"hlo_category": "loop fusion", "flops": 5},
            hlo_category=Interned("custom fusion"),
        )
        ops.event("fusion.1", 10, 10, of_name={"hlo_category": "loop fusion", "flops": 5})
        timeline = loaded(space.encode())
        assert timeline.details["hlo_category"]["value"].cast(pl.String).to_list() == [
            '"custom fusion"',
            '"loop fusion"',
        ]
        assert timeline.events["flops"].to_list() == [5, 5]

    def test_a_file_that_changed_is_not_read_again(self, tmp_path):
        space = Space()
        space.plane("/host:CPU").line("python", 1).event("a", 0, 10, note="long ago")
        path = tmp_path / "host.xplane.pb"
        path.write_bytes(space.encode())
        timeline = traceview.load(path)
        path.write_bytes(b"something else")
        with pytest.raises(UnreadableTraceError, match="has changed or gone since it was loaded"):
            timeline.details["note"]

    def test_a_text_that_is_no_utf8(self, loaded):
        space = Space()
        plane = space.plane("/host:CPU")
        line = plane.line("python", 1)
        line.event("a", 0, 10)
        data = space.encode().replace(b"\x12\x01a", b"\x12\x01\xff")
        assert loaded(data).events["name"].to_list() == ["\ufffd"]


class TestFusions:
    def test_a_fusion_that_mixes_scopes_is_flagged(self, loaded):
        space = Space()
        text = program(
            "jit_f",
            {
                "inner": [
                    Instruction("p", "parameter", (8,)),
                    Instruction("add.1", "add", (8,), ("p", "p"), "jit(f)/encoder/add"),
                    Instruction("multiply.1", "multiply", (8,), ("add.1", "p"), "jit(f)/decoder/mul"),
                ],
                "main": [
                    Instruction("x", "parameter", (8,)),
                    Instruction("fusion.1", "fusion", (8,), ("x",), "jit(f)/decoder/mul", "inner", fusion_kind="kLoop"),
                ],
            },
            entry="main",
        )
        space.plane("/host:metadata").name_id("jit_f(3)", stats={"Hlo Proto": text, "program_id": 3})
        ops = space.plane("/device:TPU:0").line("XLA Ops", 3)
        ops.event("%fusion.1 = f32[8] fusion(%x)", 0, 10, display_name="fusion.1", of_name={"program_id": 3})
        timeline = loaded(space.encode())

        def told(key):
            return json.loads(timeline.details[key]["value"].cast(pl.String)[0])

        assert told("op_name") == "jit(f)/decoder/mul"
        assert told("mixed_scopes") == ["encoder", "decoder"]
        assert told("fused_ops") == ["add", "multiply"]
        assert told("hlo_category") == "loop fusion"
        assert told("long_name") == "%fusion.1 = f32[8] fusion(%x)"

    def test_programs_with_one_name_are_kept_apart_by_id(self, loaded):
        space = Space()
        metadata = space.plane("/host:metadata")
        for key in (3, 4):
            text = program(
                "jit_f", {"main": [Instruction("add.1", "add", (8,), (), f"jit(f)/stage{key}/add")]}, entry="main"
            )
            metadata.name_id(f"jit_f({key})", stats={"Hlo Proto": text})
        ops = space.plane("/device:TPU:0").line("XLA Ops", 3)
        for key in (3, 4):
            ops.event("add.1", 10 * key, 10, of_name={"program_id": key})
        paths = loaded(space.encode()).details["op_name"]["value"].cast(pl.String).to_list()
        assert paths == ['"jit(f)/stage3/add"', '"jit(f)/stage4/add"']

    @pytest.mark.parametrize(
        ("summed", "found"), [(True, 1), (False, 0)], ids=["softmax", "an activation: nothing sums the exponential"]
    )
    def test_attention_needs_a_sum_of_the_exponential(self, loaded, summed, found):
        scores = (4, 64, 64)
        middle = (
            [
                Instruction("reduce.1", "reduce", (4, 64), ("exp.1",)),
                Instruction("b.1", "broadcast", scores, ("reduce.1",)),
            ]
            if summed
            else [Instruction("b.1", "add", scores, ("exp.1", "exp.1"))]
        )
        text = program(
            "jit_f",
            {
                "main": [
                    Instruction("q", "parameter", (4, 64, 32)),
                    Instruction("dot.1", "dot", scores, ("q", "q")),
                    Instruction("exp.1", "exponential", scores, ("dot.1",)),
                    *middle,
                    Instruction("div.1", "divide", scores, ("exp.1", "b.1")),
                    Instruction("dot.2", "dot", (4, 64, 32), ("div.1", "q")),
                ]
            },
            entry="main",
        )
        space = Space()
        space.plane("/host:metadata").name_id("jit_f(3)", stats={"Hlo Proto": text})
        ops = space.plane("/device:TPU:0").line("XLA Ops", 3)
        for index, name in enumerate(("dot.1", "exp.1", "b.1", "div.1", "dot.2")):
            ops.event(name, 100 * index, 90, of_name={"program_id": 3})
        calls = check(loaded(space.encode())).table.attention
        assert sum(row.count for row in calls if row.evidence == "shapes") == found


class TestFolders:
    def write(self, folder, run, host, offset_ns=0):
        space = Space()
        space.plane("/device:TPU:0", device_type_string="TPU v5e").line("XLA Ops", 3).event(f"fusion.{host}", 0, 10)
        space.plane("Task Environment", profile_start_time=Unsigned(1_767_225_600_000_000_000 + offset_ns))
        path = folder / "plugins" / "profile" / run / f"{host}.xplane.pb"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(space.encode())

    def test_hosts_of_a_run_are_aligned_by_their_start(self, tmp_path):
        self.write(tmp_path, "run", "a")
        self.write(tmp_path, "run", "b", offset_ns=5)
        timeline = traceview.load(tmp_path)
        assert timeline.events.select(pl.col("name").cast(pl.String), "start_ns").rows() == [
            ("fusion.a", 0),
            ("fusion.b", 5),
        ]
        assert {note.kind for note in timeline.report.notes} >= {"clocks-aligned"}

    def test_of_several_runs_the_last_is_read(self, tmp_path):
        for run in ("2026_01_01_00_00_00", "2026_01_02_00_00_00"):
            self.write(tmp_path, run, run[8:10])
        timeline = traceview.load(tmp_path)
        assert timeline.events["name"].to_list() == ["fusion.02"]
        (note,) = [note for note in timeline.report.notes if note.kind == "trace-left-out"]
        assert "2026_01_02_00_00_00 is a later one" in note.text

    def test_a_copy_is_counted_once(self, tmp_path):
        self.write(tmp_path, "run", "a")
        run = tmp_path / "plugins" / "profile" / "run"
        (run / "copy.xplane.pb").write_bytes((run / "a.xplane.pb").read_bytes())
        timeline = traceview.load(run)
        assert timeline.events.height == 1
        assert {note.kind for note in timeline.report.notes} >= {"duplicate-file"}


class TestViewerFiles:
    def viewer(self, spans):
        names = [
            {"ph": "M", "pid": 3, "name": "process_name", "args": {"name": "/device:TPU:0"}},
            {"ph": "M", "pid": 3, "tid": 3, "name": "thread_name", "args": {"name": "XLA Ops"}},
        ]
        return json.dumps(
            {"displayTimeUnit": "ns", "metadata": {"highres-ticks": True}, "traceEvents": [*names, *spans, {}]}
        ).encode()

    def span(self, index, **args):
        return {"ph": "X", "pid": 3, "tid": 3, "ts": 10.5 * index, "dur": 1.25, "name": f"fusion.{index}", "args": args}

    def test_ops_with_their_arguments(self, loaded):
        spans = [
            self.span(0, hlo_category="convolution fusion", long_name="%fusion.0 = f32[]", bytes_accessed="128"),
            self.span(1),
        ]
        timeline = loaded(self.viewer(spans), "host.trace.json")
        assert timeline.runs[0].format == "xprof"
        assert timeline.events.select("start_ns", "dur_ns", "bytes").rows() == [(0, 1250, 128), (10_500, 1250, None)]
        assert {(row.name, row.family) for row in kernel_report(timeline).kernels} == {
            ("fusion", "gemm"),
            ("fusion", "fusion"),
        }

    @pytest.mark.parametrize(("events", "capped"), [(3, True), (2, False), (4, False)])
    def test_exactly_the_cap_means_that_the_tail_is_missing(self, loaded, monkeypatch, events, capped):
        monkeypatch.setattr("traceview.parsers.xprof.trace_json.CAPS", (3,))
        timeline = loaded(self.viewer([self.span(index) for index in range(events)]), "host.trace.json")
        assert timeline.report.truncated is capped
        assert any(note.kind == "viewer-file-capped" for note in timeline.report.notes) is capped
        assert (timeline.report.trust == "poor") is capped

    def test_the_caps_are_those_of_xprof(self):
        from traceview.parsers.xprof.trace_json import CAPS

        assert CAPS == (1_000_000, 5_000_000)

    def test_a_cut_viewer_file_keeps_what_is_whole(self, loaded):
        data = self.viewer([self.span(index) for index in range(50)])
        timeline = loaded(data[: len(data) // 2], "host.trace.json")
        assert timeline.report.truncated
        assert 10 < timeline.events.height < 40
