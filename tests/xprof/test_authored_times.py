"""Small spaces written by hand: times, numbers beyond measure, and what is lost."""

from __future__ import annotations

import polars as pl
import pytest

from sample_traces.xspace_bytes import Space, Unsigned, number
from traceview.gate import check
from xspace_planes import gpu


class TestTimes:
    def test_end_points_are_rounded_not_durations(self, loaded):
        """Three ops of 333.4 ns, back to back: rounded one by one they would lose a nanosecond."""
        space = Space()
        ops = space.plane("/device:TPU:0").line("XLA Ops", 3)
        for index in range(3):
            ops.event(f"fusion.{index}", 1000 + 333.4 * index, 333.4)
        timeline = loaded(space.encode())
        assert timeline.events["dur_ns"].to_list() == [333, 333, 334]
        assert timeline.details["duration_ps"]["value"].to_list() == [333_400] * 3
        assert timeline.details["start_ps"]["value"].to_list() == [0, 400, 800]

    def test_unix_times_of_a_raw_space_do_not_overflow(self, loaded):
        """In picoseconds such a time would not fit into 64 bits."""
        space = Space()
        line = space.plane("/host:CPU").line("python", 1, timestamp_ns=1_767_225_600_000_000_000)
        line.event("a", 5, 10)
        line.event("b", 20, 10)
        timeline = loaded(space.encode())
        assert timeline.events["start_ns"].to_list() == [0, 15]
        assert timeline.runs[0].origin_unix_ns == 1_767_225_600_000_000_005

    def test_start_of_the_profile_gives_unix_time(self, loaded):
        space = Space()
        space.plane("/host:CPU").line("python", 1, timestamp_ns=250).event("a", 0, 10)
        space.plane("Task Environment", profile_start_time=Unsigned(1_767_225_600_000_000_000))
        assert loaded(space.encode()).runs[0].origin_unix_ns == 1_767_225_600_000_000_250

    def test_impossible_times_are_counted(self, loaded):
        space = Space()
        plane = space.plane("/host:CPU")
        line = plane.line("python", 1)
        for index in range(3):
            line.event("fine", 20 * index, 10)
        line.events.append(number(1, plane.name_id("negative")) + number(3, -5000))
        line.event("years later", 10**17, 10)
        timeline = loaded(space.encode())
        assert timeline.events["name"].to_list() == ["fine"] * 3
        counts = timeline.report.counts
        assert (counts["lost-negative-duration"].n, counts["lost-negative-duration"].example) == (1, "negative")
        assert (counts["lost-time-far-off"].n, counts["lost-time-far-off"].example) == (1, "years later")

    @pytest.mark.parametrize(("lost", "trust"), [(0, "good"), (1, "limited"), (100, "poor"), (500, "poor")])
    def test_lost_device_work_lowers_the_trust(self, loaded, lost, trust):
        space = Space()
        space.plane("/host:CPU").line("python", 1).event("a", 0, 10)
        ops = space.plane("/device:TPU:0").line("XLA Ops", 3)
        for index in range(1000):
            ops.event("fusion.1", 4_000_000 * 10**9 if index >= 1000 - lost else 2_000 * index, 1000)
        timeline = loaded(space.encode())
        # Half of the rows far off do not take the good half with them.
        assert timeline.device_work.height == 1000 - lost
        (note,) = [note for note in timeline.report.notes if note.kind == "unreadable-events"] or [None]
        assert (note.trust if note else "good") == trust
        if lost == 100:
            assert note.text == (
                "Parts of the profile could not be read (lost-time-far-off 100); 100 of 1,000 device events (10.0 %) are "
                "lost: totals are lower bounds."
            )

    def test_lost_host_events_limit_the_trust(self, loaded):
        space = Space()
        line = space.plane("/host:CPU").line("python", 1)
        line.event("a", 0, 10)
        line.event("b", 20, 10)
        line.event("years later", 10**17, 10)
        (note,) = [note for note in loaded(space.encode()).report.notes if note.kind == "unreadable-events"]
        assert (note.trust, note.text) == (
            "limited",
            "Parts of the profile could not be read (lost-time-far-off 1).",
        )

    def test_without_the_device_work_that_was_lost_nothing_passes(self, loaded):
        space = Space()
        line = space.plane("/device:TPU:0").line("XLA Ops", 3)
        for index in range(600):
            line.event("fusion.1", 2_000 * index, 1000)
        late = space.plane("/device:TPU:1").line("XLA Ops", 3, timestamp_ns=(1 << 63) - 1)
        for index in range(100):
            late.event("fusion.1", 2_000 * index, 1000)
        assert check(loaded(space.encode())).verdict == "inconclusive"


class TestNumbersBeyondMeasure:
    """Numbers in the names of planes and lines are text: nothing bounds them."""

    @pytest.mark.parametrize("number", ["9" * 9, str(1 << 63), "9" * 5000])
    @pytest.mark.parametrize("kind", ["GPU", "TPU"])
    def test_of_a_device(self, loaded, kind, number):
        space = Space()
        space.plane(f"/device:{kind}:{number}").line("Stream #1" if kind == "GPU" else "XLA Ops", 1).event("k", 0, 10)
        timeline = loaded(space.encode())
        assert timeline.events.height == 1
        fits = len(number) < 10
        assert timeline.devices["ordinal"].to_list() == ([int(number)] if fits else [])
        notes = [note.text for note in timeline.report.notes if note.kind == "device-number"]
        assert notes == (
            []
            if fits
            else [
                f"The number of 1 {kind} cannot be true: its 1 event is read as of no device. Totals are lower bounds."
            ]
        )
        assert fits or timeline.report.trust == "poor"

    @pytest.mark.parametrize("number", [str(1 << 63), "9" * 5000])
    def test_of_a_stream_a_core_and_a_thread(self, loaded, number):
        space = Space()
        gpu(space).line(f"Stream #{number}(Compute)", 7).event("k", 0, 10)
        space.plane(f"/device:TPU:0 SparseCore {number}").line("XLA Ops", 1).event("fusion.1", 0, 10)
        space.plane("/host:CPU", process_id=Unsigned((1 << 64) - 1)).line(f"python/{number}", 3).event("a", 0, 10)
        timeline = loaded(space.encode())
        assert timeline.events.filter(pl.col("kind") == "kernel")["stream"].to_list() == [7]
        assert timeline.devices.height == 1
        # The core that cannot be told is a thread of its own.
        assert timeline.threads["tid"].to_list() == [1, 3]
        assert timeline.processes["pid"].to_list() == [None]
