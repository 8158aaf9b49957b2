"""Input that a user in a hurry, a broken writer or an attacker produces: one clear answer, in bounded time."""

from __future__ import annotations

import gzip
import json
import os
import subprocess
import sys
import time
from typing import TYPE_CHECKING, Any

import pytest

from traceview import load
from traceview.errors import UnreadableTraceError, UsageError
from traceview.timeline import Trust

if TYPE_CHECKING:
    from pathlib import Path

PROGRAM = [sys.executable, "-c", "import sys; from traceview.cli.main import main; sys.exit(main())"]


def kernel(name: str = "k", ts: Any = 1000, dur: Any = 5, **args: Any) -> dict[str, Any]:
    return {
        "ph": "X",
        "cat": "kernel",
        "name": name,
        "pid": 0,
        "tid": 7,
        "ts": ts,
        "dur": dur,
        "args": {"device": 0, "stream": 7, **args},
    }


def trace(folder: Path, events: list[Any], **head: Any) -> Path:
    path = folder / "trace.json"
    path.write_text(json.dumps({"schemaVersion": 1, **head, "traceEvents": events}))
    return path


def test_an_empty_path_is_refused_not_taken_for_the_current_folder() -> None:
    with pytest.raises(UsageError, match="an empty path was given"):
        load("")


@pytest.mark.parametrize(
    "content",
    [
        {"traceEvents": [{"ph": "X", "cat": "toplevel", "name": "foo", "ts": 1, "dur": 2, "pid": 1, "tid": 1}]},
        {"traceEvents": {"a": 1}},
        {"traceEvents": None},
    ],
)
def test_the_envelope_alone_makes_no_pytorch_trace(tmp_path: Path, content: Any) -> None:
    path = tmp_path / "t.json"
    path.write_text(json.dumps(content))
    with pytest.raises(UnreadableTraceError):
        load(path)


def test_an_empty_trace_is_read(tmp_path: Path) -> None:
    path = tmp_path / "t.json"
    path.write_text('{"traceEvents": []}')
    assert load(path).events.height == 0


@pytest.mark.parametrize(
    ("ts", "dur", "count"),
    [
        (1000, 1e15, "lost-time-far-off"),
        (-1e15, 5, "lost-time-far-off"),
        (1e15, 5, "lost-time-far-off"),
        (1000, -1, "lost-negative-duration"),
    ],
)
def test_times_that_no_recording_holds_are_left_out_and_counted(
    tmp_path: Path, ts: float, dur: float, count: str
) -> None:
    timeline = load(trace(tmp_path, [kernel("good", 1000, 5), kernel("good", 1010, 5), kernel("bad", ts, dur)]))
    assert timeline.events["name"].to_list() == ["good", "good"]
    assert timeline.report.counts[count].n == 1
    assert timeline.report.trust is Trust.POOR  # one of two pieces of device work is lost


def test_a_duration_that_is_no_number_limits_trust(tmp_path: Path) -> None:
    path = trace(tmp_path, [kernel(dur=5), kernel(dur="x")])
    path.write_text(path.read_text().replace('"x"', "NaN"))
    timeline = load(path)
    assert timeline.report.counts["duration-missing"].n == 1
    assert timeline.report.trust is Trust.LIMITED


def test_phases_that_are_not_supported_limit_trust(tmp_path: Path) -> None:
    timeline = load(trace(tmp_path, [kernel(), {"ph": "B", "cat": "cpu_op", "name": "b", "ts": 1, "pid": 1, "tid": 1}]))
    assert timeline.report.counts["lost-unsupported-phase"].n == 1
    assert timeline.report.trust is Trust.LIMITED


def test_a_device_number_below_zero_is_no_device_of_its_own(tmp_path: Path) -> None:
    timeline = load(trace(tmp_path, [kernel(), kernel(ts=1100, device=-1)]))
    assert timeline.devices["ordinal"].to_list() == [0]


@pytest.mark.parametrize("number", [10**30, -(10**30), 1.5, "0", None, True])
def test_numbers_out_of_range_in_the_head_are_passed_over(tmp_path: Path, number: Any) -> None:
    path = trace(
        tmp_path,
        [kernel()],
        distributedInfo={"rank": number, "world_size": number},
        deviceProperties=[{"id": 0, "computeMajor": number}],
    )
    assert load(path).runs[0].rank is None


def test_an_event_with_very_many_argument_names_takes_bounded_time(tmp_path: Path) -> None:
    started = time.process_time()
    timeline = load(trace(tmp_path, [kernel(), kernel(**{f"k{i}": i for i in range(60_000)})]))
    assert timeline.events.height == 2
    assert timeline.report.counts["lost-argument"].n > 50_000
    assert time.process_time() - started < 30, "was minutes when every name cost a table of its own"


def test_blanks_do_not_pile_up(tmp_path: Path) -> None:
    path = tmp_path / "t.json.gz"
    path.write_bytes(gzip.compress(b" " * (120 << 20), compresslevel=1))
    with pytest.raises(UnreadableTraceError):
        load(path)


@pytest.mark.parametrize("command", ["check-dispatch", "report", "kernels"])
def test_a_reader_that_goes_away_changes_no_exit_code(tmp_path: Path, command: str) -> None:
    path = trace(tmp_path, [kernel(f"k{i}", 1000 + 10 * i) for i in range(300)])
    usual = subprocess.run([*PROGRAM, command, str(path)], capture_output=True, check=False).returncode
    reader, writer = os.pipe()
    os.close(reader)
    with os.fdopen(writer, "wb") as closed:
        gone = subprocess.run([*PROGRAM, command, str(path)], stdout=closed, stderr=subprocess.PIPE, check=False)
    assert (gone.returncode, gone.stderr) == (usual, b"")


@pytest.mark.skipif(not os.path.exists("/dev/full"), reason="no /dev/full here")
def test_a_full_disk_is_said_and_is_exit_code_2(tmp_path: Path) -> None:
    path = trace(tmp_path, [kernel()])
    with open("/dev/full", "wb") as full:
        done = subprocess.run(
            [*PROGRAM, "report", str(path)], stdout=full, stderr=subprocess.PIPE, text=True, check=False
        )
        silent = subprocess.run([*PROGRAM, "report", "nowhere.json"], stdout=subprocess.PIPE, stderr=full, check=False)
    assert done.returncode == 2
    assert "No space left on device" in done.stderr
    assert "defect" not in done.stderr
    assert silent.returncode == 2


def test_metadata_before_the_events_may_be_long(tmp_path: Path) -> None:
    """Process groups of thousands of ranks, as PyTorch lists them, are more than the head of a file that is probed."""
    groups = [{"pg_name": str(at), "pg_size": 16384, "ranks": list(range(16384))} for at in range(4)]
    path = trace(tmp_path, [kernel()], deviceProperties=[], distributedInfo={"rank": 3, "pg_config": groups})
    assert path.stat().st_size > 300_000
    for given in (path, packed(path)):
        timeline = load(given)
        assert timeline.events["name"].to_list() == ["k"]
        assert timeline.runs[0].rank == 3


def packed(path: Path) -> Path:
    other = path.with_suffix(".json.gz")
    other.write_bytes(gzip.compress(path.read_bytes()))
    return other


HALF = "a\ud800b"
"""Half of a surrogate pair: JSON can say it, nothing else can hold it."""


def test_half_a_character_is_replaced_wherever_it_stands(tmp_path: Path) -> None:
    capture = {"schema": "traceview.capture/1", "framework": "torch", "versions": {"torch": HALF}, "gpus": [HALF]}
    path = trace(
        tmp_path,
        [kernel(HALF, **{HALF: HALF}), {"ph": "M", "name": "thread_name", "pid": 0, "tid": 7, "args": {"name": HALF}}],
        deviceProperties=[{"id": 0, "name": HALF}],
        distributedInfo={"backend": HALF, "rank": 0},
        torch_version=HALF,
        traceview={**capture, "contract": {"model": HALF}},
        **{HALF: [HALF]},
    )
    timeline = load(path)
    assert timeline.events["name"].to_list() == ["a\ufffdb"]
    assert timeline.devices["name"].to_list() == ["a\ufffdb"]
    for command in ("report", "kernels", "check-dispatch"):
        for form in ("text", "json"):
            done = subprocess.run([*PROGRAM, command, str(path), "--format", form], capture_output=True, check=False)
            assert b"defect" not in done.stderr
            assert done.returncode in (0, 3)
            done.stdout.decode("utf-8")


def test_half_a_character_beside_the_trace_or_in_one_of_xprof(tmp_path: Path) -> None:
    path = trace(tmp_path, [kernel()])
    document = {"schema": "traceview.capture/1", "framework": "jax", "versions": {"jax": HALF}, "contract": {"m": HALF}}
    (tmp_path / "trace.json.traceview.json").write_text(json.dumps(document))
    meta = {"ph": "M", "pid": 1, "name": "process_name", "args": {"name": "/device:TPU:0"}}
    lane = {"ph": "M", "pid": 1, "tid": 3, "name": "thread_name", "args": {"name": "XLA Ops"}}
    event = {"ph": "X", "pid": 1, "tid": 3, "ts": 1, "dur": 2, "name": HALF, "args": {"hlo_category": HALF, HALF: HALF}}
    viewer = tmp_path / "viewer.trace.json"
    viewer.write_text(json.dumps({"displayTimeUnit": "ns", "metadata": {}, "traceEvents": [meta, lane, event]}))
    for one in (path, viewer):
        for form in ("text", "json"):
            done = subprocess.run([*PROGRAM, "report", str(one), "--format", form], capture_output=True, check=False)
            assert (done.returncode, done.stderr) == (0, b"")
            done.stdout.decode("utf-8")


@pytest.mark.parametrize("command", ["report", "check-dispatch"])
def test_a_name_of_a_megabyte_fills_no_screen(tmp_path: Path, command: str) -> None:
    name = "x \n" * 300_000
    path = trace(tmp_path, [kernel(name)], deviceProperties=[{"id": 0, "name": name}], torch_version=name)
    done = subprocess.run([*PROGRAM, command, str(path)], capture_output=True, text=True, check=False)
    assert done.stderr == ""
    assert len(done.stdout) < 40_000
    assert name[:40].replace("\n", "\\x0a") in done.stdout


@pytest.mark.parametrize(
    "arguments", [["report", "--format", "json"], ["report", "--format", "html"]]
    + [["check-dispatch", "--output", form] for form in ("json", "junit", "sarif")],
)  # fmt: skip
@pytest.mark.parametrize("encoding", ["ascii", "latin-1"])
def test_no_character_is_lost_in_a_form_for_machines(tmp_path: Path, arguments: list[str], encoding: str) -> None:
    path = trace(tmp_path, [kernel("\u043a\u0435\u0440_\u00b5", 1000, 500)])
    environment = {**os.environ, "PYTHONIOENCODING": encoding}
    done = subprocess.run([*PROGRAM, *arguments, str(path)], capture_output=True, check=False, env=environment)
    assert done.stderr == b""
    text = done.stdout.decode("ascii")
    if "html" in arguments or "junit" in arguments:
        assert "&#1082;&#1077;&#1088;_&#181;" in text
    else:
        assert "\u043a\u0435\u0440_\u00b5" in str(json.loads(text))


def test_a_second_list_of_events_is_counted(tmp_path: Path) -> None:
    path = tmp_path / "t.json"
    path.write_text(
        f'{{"schemaVersion": 1, "traceEvents": [{json.dumps(kernel())}], "traceEvents": [{json.dumps(kernel())}]}}'
    )
    timeline = load(path)
    assert timeline.events["name"].to_list() == ["k"]
    assert timeline.report.counts["lost-trailing"].n == 1
