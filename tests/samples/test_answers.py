"""No answer of a truth table goes unchecked: each key has a test here or is named with the file that has it."""

from __future__ import annotations

import gzip
import json
from collections import Counter
from decimal import Decimal
from pathlib import Path

import polars as pl
import pytest

import sample_traces
from traceview.allocations import allocations
from traceview.gaps import gaps
from traceview.loading import load
from traceview.recompiles import recompiles
from traceview.steady_state import find_steady_state
from traceview.transfers import transfers

FOLDER = Path(sample_traces.__file__).parent
TESTS = Path(__file__).parents[1]
TRUTHS = {path: json.loads(path.read_text()) for path in sorted(FOLDER.rglob("*.truth.json"))}

ABOUT_THE_FILE = {"schema", "trace", "authored", "shows", "recorded_with", "pair"}
ELSEWHERE = {
    "samples/test_authored.py": {"gaps", "work_of_pid", "repeated_host_to_device_bytes"},
    "samples/test_product.py": {
        "devices", "dispatches", "events", "host_processes", "launches", "refusals", "steps", "verdict",
    },
    "samples/test_stories.py": {
        "findings", "repeated_copies_per_step", "converted_weights_per_step", "converted_bytes_per_step", "iterations",
        "launch_bound", "graph_launches", "stages", "straggler",
    },
    "xprof/test_samples.py": {
        "attention", "attention_device_ns", "busy_ns_per_core", "collective_ns_per_core", "flops", "flops_per_image",
        "origin_unix_ns", "recompiled_steps", "recopied_bytes_per_image", "scopes", "stage_busy_ns",
        "transfers_per_step", "wait_ns_per_core", "xprof",
    },
}  # fmt: skip


def compiled(timeline):
    return recompiles(timeline, find_steady_state(timeline))


def named(timeline, name):
    return timeline.events.filter(pl.col("name").cast(pl.String) == name)


def per_step(timeline, count):
    steps = timeline.events.filter(pl.col("name").cast(pl.String).str.starts_with("ProfilerStep#"))
    return count / steps.height


def per_graph(timeline):
    work = timeline.device_work.join(named(timeline, "cudaGraphLaunch").select(launch_id="id"), on="launch_id")
    (size,) = set(Counter(work["launch_id"].to_list()).values())
    return size


def pageable(timeline):
    table = transfers(timeline, find_steady_state(timeline))
    return round(table.filter(pl.col("pageable"))["per_step"].sum())


def frames(timeline):
    return {one.partition("/")[0] for one in compiled(timeline)["compile_id"]}


def in_first_step(timeline):
    table = allocations(timeline, find_steady_state(timeline))
    assert (table["count"].sum(), table["late_count"].sum()) == (1, 0)
    return [0]


def devices(timeline):
    names = set(timeline.devices["name"].cast(pl.String).to_list())
    return names.pop() if names else None


def modules(timeline):
    return timeline.events.filter(pl.col("kind") == "xla_module").height


def programs_named(timeline, module):
    told = timeline.details["hlo_module"].filter(pl.col("value").cast(pl.String) == f'"{module}"')
    ids = timeline.details["program_id"].join(told.select("id"), on="id", how="semi")
    return ids["value"].n_unique()


def first_ns(path):
    """Start of the first event, as the file has it: decimal microseconds."""
    data = path.read_bytes()
    rows = json.loads(gzip.decompress(data) if path.suffix == ".gz" else data, parse_float=Decimal)["traceEvents"]
    return int(min(Decimal(row["ts"]) for row in rows if row["ph"] == "X") * 1000)


def notes(timeline):
    return {note.kind for note in timeline.report.notes}


# Key of a truth table to what the product says, to be equal to the answer; or to a test of both.
ANSWERS = {
    "allocations_in_steps": in_first_step,
    "compiles": lambda t: compiled(t).height,
    "recompiles_after_warmup": lambda t: compiled(t).filter(~pl.col("warmup")).height,
    "recompile_steps": lambda t: compiled(t).filter(~pl.col("warmup"))["step"].to_list(),
    "compiled_frames": lambda t: compiled(t)["compile_id"].to_list(),
    "graph_breaks_per_call": lambda t: len(frames(t)) - 1,
    "rank": lambda t: t.runs[0].rank,
    "world_size": lambda t: t.runs[0].world_size,
    "items": lambda t: named(t, "aten::item").height,
    "items_per_step": lambda t: per_step(t, named(t, "aten::item").height),
    "kernels_per_graph_launch": per_graph,
    "pageable_copies_per_step": pageable,
    "modules": modules,
    "cores": lambda t: t.devices.height,
    "load_batch_at_least_as_long": lambda t: named(t, "load_batch")["dur_ns"].min() >= 50_000_000,
}
BOTH = {
    # A device that nothing ran on is described all the same.
    "gpu": lambda t, answer, _: devices(t) == answer,
    "base_unix_ns": lambda t, answer, _: t.runs[0].origin_unix_ns - answer == first_ns(t.runs[0].path),
    "compiled_regions": lambda t, answer, _: (
        sorted(compiled(t)["compile_id"]) == sorted(one.rpartition(" ")[2] for one in answer)
    ),
    "compiles_per_step": lambda t, answer, _: (
        Counter(f"ProfilerStep#{step}" for step in compiled(t)["step"]) == {k: n for k, n in answer.items() if n}
    ),
    "launches_without_work": lambda t, answer, _: answer == 0 and "launch-without-work" not in notes(t),
    "work_without_launch": lambda t, answer, _: answer == 0 and "work-without-launch" not in notes(t),
    "sleep_per_step_ns": lambda t, answer, _: named(t, "load_batch")["dur_ns"].min() >= answer,
    "module": lambda t, answer, truth: programs_named(t, answer) == truth["programs"],
    "programs": lambda t, answer, truth: programs_named(t, truth["module"]) == answer,
}


def test_every_answer_is_checked():
    keys = {key for truth in TRUTHS.values() for key in truth}
    here = set(ANSWERS) | set(BOTH)
    there = set().union(*ELSEWHERE.values())
    assert keys - ABOUT_THE_FILE == here | there
    assert not here & there
    for file, words in ELSEWHERE.items():
        text = (TESTS / file).read_text()
        assert [word for word in words if f'"{word}"' not in text] == []


@pytest.mark.parametrize("path", TRUTHS, ids=lambda path: path.name.removesuffix(".truth.json"))
def test_answers(path):
    truth = TRUTHS[path]
    timeline = load(path.with_name(truth["trace"]))
    for key, answer in truth.items():
        if key in ANSWERS:
            assert ANSWERS[key](timeline) == answer, key
        elif key in BOTH:
            assert BOTH[key](timeline, answer, truth), key


@pytest.mark.parametrize("name", ["gaps-and-copies.cuda-authored", "image-pipeline-before.cuda-authored"])
def test_idle_stretches(name):
    """Those of at least 0.1 ms, as the author knows them."""
    (path,) = [path for path in TRUTHS if path.name == f"{name}.truth.json"]
    wanted = sorted(one["dur_ns"] for one in TRUTHS[path]["gaps"])
    found = gaps(load(path.with_name(TRUTHS[path]["trace"])))
    assert sorted(found.filter(pl.col("dur_ns") >= 100_000)["dur_ns"].to_list()) == wanted
