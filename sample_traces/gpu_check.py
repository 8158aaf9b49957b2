"""Compare the traces of ``make_gpu.py`` with its truth table, as traceview reads them."""

from __future__ import annotations

import json
import sys
from typing import TYPE_CHECKING, Any, Final

import polars as pl

from traceview import load
from traceview.dispatch import dispatch_table
from traceview.eligibility import State
from traceview.gap_report import gap_report
from traceview.report import kernel_report
from traceview.sdpa import SdpaExplainer
from traceview.stages import assign_stages
from traceview.transfer_report import transfer_report

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from traceview.timeline import Timeline

BACKEND_OF: Final = {
    "cpu-flash": "flash", "flash-1": "flash", "flash-2": "flash", "flash-3": "flash", "flash-4": "flash",
    "mem-efficient": "efficient", "cudnn": "cudnn", "math": "math", "unfused": "unfused",
}  # fmt: skip
"""Implementation in a dispatch table to backend."""


def check_folder(path: Path) -> int:
    """Print every difference; 0 if there is none, 1 if there is, 2 if nothing could be compared."""
    if not path.exists():
        print(f"make_gpu: {path} does not exist: record first.", file=sys.stderr)
        return 2
    table = json.loads(path.read_text(encoding="utf-8"))
    ran = [case for case in table["cases"] if not case["failed"]]
    differ = 0
    for case in ran:
        differences = list(differences_of(case, load(path.parent / case["trace"])))
        differ += bool(differences)
        print(f"{'differs' if differences else 'agrees':8} {case['name']}")
        for one in differences:
            print(f"    {one}")
    failed = len(table["cases"]) - len(ran)
    print(f"{len(ran) - differ} of {len(ran)} traces agree; {failed} cases could not be recorded.")
    return 2 if not ran else 1 if differ else 0


def differences_of(case: dict[str, Any], timeline: Timeline) -> Iterator[str]:
    """What the trace shows otherwise than the table, one sentence each."""
    kinds = {"attention": _attention, "gemm": _gemm, "host": _host}
    yield from kinds[case["kind"]](case, timeline)


def _attention(case: dict[str, Any], timeline: Timeline) -> Iterator[str]:
    rows = [row for row in dispatch_table(timeline).attention if row.direction == "forward"]
    count = sum(row.count for row in rows)
    ran = {BACKEND_OF.get(row.implementation or "", str(row.implementation)) for row in rows}
    said = case["says"]["choice"]
    if count != case["steps"]:
        yield f"{count} calls found, {case['steps']} made"
    if ran != {said}:
        yield f"{', '.join(sorted(ran)) or 'nothing'} found, the framework says {said}"
    if case["asked"].get("how", "eager") == "eager" and "can_use" in case["says"]:
        yield from _rules(case["says"]["can_use"], timeline, rows)


def _rules(can_use: dict[str, bool], timeline: Timeline, rows: list[Any]) -> Iterator[str]:
    """Each backend: what the rulebook says against ``can_use_*_attention``."""
    devices = timeline.device_work["device"].unique().to_list()
    explainer = SdpaExplainer(timeline)
    for row in rows:
        found = explainer.explain(row.op, row.event_ids[0], row.implementation, devices) if row.event_ids else None
        for backend, usable in can_use.items() if found is not None else ():
            answer = found.backend(backend)
            state = None if answer is None else answer.state
            if usable and state is State.REFUSED:
                rules = ", ".join(rule.rule.id for rule in answer.refused_by)
                yield f"{backend}: refused by {rules}, but the framework says it can be used"
            if not usable and state is State.ALLOWED:
                yield f"{backend}: nothing refuses it, but the framework says it cannot be used"


def _gemm(case: dict[str, Any], timeline: Timeline) -> Iterator[str]:
    wanted = case["says"]["tensor_core"]
    products = [one for one in kernel_report(timeline).kernels or () if one.family == "gemm"]
    if wanted is not None and not products:
        yield "no kernel of a matrix product found"
    for one in products:
        if wanted is not None and one.tensor_core is not None and one.tensor_core is not wanted:
            yield f"{one.name}: tensor cores {'used' if one.tensor_core else 'not used'}, expected otherwise"


def _host(case: dict[str, Any], timeline: Timeline) -> Iterator[str]:
    said, steps = case["says"], case["steps"]
    slept = assign_stages(timeline).ranges.filter(pl.col("stage") == "load")
    lengths = slept.select(ns=pl.col("end_ns") - pl.col("start_ns"))["ns"]
    if slept.height != steps or (lengths < said["sleep_ns"]).any():
        yield f"{slept.height} stages load of at least {said['sleep_ns']} ns expected {steps} times"
    if "items_per_step" in said:
        waits = gap_report(timeline).waits
        items = int(waits.filter(pl.col("name").str.contains("item|_local_scalar_dense"))["count"].sum())
        if items != said["items_per_step"] * steps:
            yield f"{items} reads of one number found, {said['items_per_step'] * steps} planted"
    moved = transfer_report(timeline).transfers
    same = None if moved is None else moved.filter(pl.col("bytes") == said["bytes_per_copy"])
    copies = 0 if same is None else int(same["count"].sum())
    if case["framework"] == "torch" and copies != said["copies_per_step"] * steps:
        yield f"{copies} copies of {said['bytes_per_copy']} bytes found, {said['copies_per_step'] * steps} made"
