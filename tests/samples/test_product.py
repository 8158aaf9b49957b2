"""The product gives the answers of the truth tables."""

from __future__ import annotations

import json
from collections import Counter
from pathlib import Path

import polars as pl
import pytest

from sample_traces import make_authored

pytest.importorskip("traceview.kernels")
pytest.importorskip("traceview.parsers.kineto.reader")

from traceview.busy import busy
from traceview.dispatch import dispatch_table
from traceview.gate import check
from traceview.loading import load
from traceview.timeline import Trust

FOLDER = Path(make_authored.__file__).parent
TRUTHS = {
    path.relative_to(FOLDER).as_posix().removesuffix(".truth.json"): json.loads(path.read_text())
    for path in sorted([*FOLDER.glob("*.truth.json"), *FOLDER.glob("*/rank*.truth.json")])
}
KINDS = {"kernel": ("kernel", "collective"), "gpu_memcpy": ("memcpy",), "gpu_memset": ("memset",)}


class Sample:
    def __init__(self, name: str):
        self.truth = TRUTHS[name]
        self.path = (FOLDER / name).with_name(self.truth["trace"])
        self.timeline = load(self.path)


@pytest.fixture(scope="module", params=TRUTHS)
def sample(request) -> Sample:
    return Sample(request.param)


def test_nothing_is_lost_or_repaired(sample):
    report = sample.timeline.report
    assert not [kind for kind in report.counts if kind.startswith(("lost-", "repaired-"))]
    assert report.trust == (Trust.LIMITED if "host_processes" in sample.truth else Trust.GOOD)


def test_kinds_and_counts(sample):
    seen = Counter(sample.timeline.device_work["kind"].to_list())
    for category, kinds in KINDS.items():
        assert sum(seen[kind] for kind in kinds) == sample.truth["events"].get(category, 0), category


def test_device_busy_time(sample):
    timeline = sample.timeline
    ordinals = dict(timeline.devices.select("device", "ordinal").iter_rows())
    found = {ordinals[d.device]: d.busy_ns for d in busy(timeline)}
    assert {k: v for k, v in found.items() if v} == {d["ordinal"]: d["busy_ns"] for d in sample.truth["devices"]}


def test_all_work_is_linked_within_its_process(sample):
    events = sample.timeline.events
    work = sample.timeline.device_work
    assert work["launch_id"].null_count() == 0
    calls = events.select(launch_id="id", call_process="process", call_start="start_ns")
    joined = work.join(calls, on="launch_id")
    assert joined.filter(pl.col("process") != pl.col("call_process")).is_empty()
    assert joined.filter(pl.col("start_ns") <= pl.col("call_start")).is_empty()
    assert joined["launch_id"].n_unique() == sample.truth["launches"]


def test_merged_ranks_keep_their_own_kernels():
    sample = Sample("merged-ranks.cuda-authored")
    pids = dict(sample.timeline.processes.select("process", "pid").iter_rows())
    ordinals = dict(sample.timeline.devices.select("device", "ordinal").iter_rows())
    pairs = {
        (str(pids[p]), ordinals[d]) for p, d in sample.timeline.device_work.select("process", "device").iter_rows()
    }
    assert pairs == set(sample.truth["work_of_pid"].items())


def test_steps(sample):
    marks = sample.timeline.events.filter(
        pl.col("name").cast(pl.String).str.starts_with("ProfilerStep#") & pl.col("device").is_null()
    )
    names = [step if isinstance(step, str) else step["name"] for step in sample.truth["steps"]]
    assert sorted(marks["name"].to_list()) == sorted(names)
    indices = {int(name.partition("#")[2]) for name in names}
    assert set(sample.timeline.device_work["step"].drop_nulls().to_list()) <= indices


def test_attention(sample):
    wanted: Counter[tuple] = Counter()
    device: Counter[tuple] = Counter()
    for row in sample.truth.get("dispatches", []):
        key = (row["implementation"], row["provider"], row["attribution"])
        wanted[key] += row["count"]
        device[key] += row.get("device_ns", 0)
    rows = dispatch_table(sample.timeline).attention
    found: Counter[tuple] = Counter()
    spent: Counter[tuple] = Counter()
    for row in rows:
        key = (row.implementation, row.provider, row.attribution)
        found[key] += row.count
        spent[key] += row.device_ns
    assert found == wanted
    assert spent == device


def test_verdict_of_the_builtin_policy(sample):
    if "verdict" in sample.truth:
        assert check(sample.timeline).verdict == sample.truth["verdict"]


def test_refusals():
    """The rules that the sample was made to break, each for its backend, and no other."""
    sample = Sample("flash-requested-math-ran.cuda-authored")
    wanted = {(one["backend"], one["rule"]) for one in sample.truth["refusals"]}
    (row,) = [row for row in dispatch_table(sample.timeline).attention if row.implementation == "math"]
    told = [reason for reason in row.reasons if reason.status == "refuses"]
    backends = {"flash": "flash", "memory-efficient": "mem-efficient", "cuDNN": "cudnn"}
    assert {(backends[reason.detail.backends[0]], reason.rule) for reason in told} == wanted
    (finding,) = [one for one in check(sample.timeline).findings if one.code == "TV102"]
    assert "flash by F1 (query, key and value are float32)" in finding.evidence[0]
    assert "memory-efficient by F10" in finding.evidence[0]


def test_two_ranks_lie_on_one_clock():
    timeline = load(FOLDER / "two-ranks")
    assert len(timeline.runs) == 2
    nccl = timeline.device_work.filter(pl.col("kind") == "collective")
    ends = (nccl["start_ns"] + nccl["dur_ns"]).to_list()
    assert len(ends) == 4
    assert sorted(Counter(ends).values()) == [2, 2]


def test_a_large_integer_keeps_its_digits():
    timeline = load(FOLDER / "bad" / "big-integer.json")
    values = [
        v for key, frame in timeline.details.items() if key.startswith("Comms Id") for v in frame["value"].to_list()
    ]
    assert [str(v) for v in values] == ["18446744073709551615"]
