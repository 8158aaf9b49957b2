"""Under what a trace was recorded and what its program computes in a step, as far as a comparison looks at it."""

from __future__ import annotations

import json
from collections import Counter
from dataclasses import dataclass, field
from math import prod
from typing import TYPE_CHECKING, Final

import polars as pl

from traceview.knowledge.sdpa import signature_of

if TYPE_CHECKING:
    from collections.abc import Mapping

    from traceview.dispatch import Dispatch, DispatchTable
    from traceview.report_parts import TraceInfo
    from traceview.steps import StepTable
    from traceview.timeline import Timeline

SHAPED_FAMILIES: Final = ("attention", "gemm", "conv", "norm")
"""Work whose shapes tell what the program computes; those of element-wise work and optimizers follow from them."""

_FLAGS: Final = {"record_shapes": "shapes", "with_stack": "Python stacks", "profile_memory": "memory",
                 "with_modules": "modules", "with_flops": "FLOP"}  # fmt: skip


@dataclass(frozen=True, slots=True)
class Work:
    """What a program computes in a step, as far as that is recorded.

    Attributes:
        shapes: Calls per step by family and shapes of their tensors.
        scores: The same where attention counts by the shape of its scores, which holds however it is computed.
        by_hand: Whether attention is written out here, so that only its scores have a shape.
        names: Device time by name of kernel, ns.
        stages: Names of stages.
        tokens: Median requests, prompt tokens and decoded tokens of a step of a serving engine, where recorded.
    """

    shapes: Mapping[str, float] = field(default_factory=dict)
    names: Mapping[str, int] = field(default_factory=dict)
    stages: frozenset[str] = frozenset()
    tokens: Mapping[str, float] = field(default_factory=dict)
    scores: Mapping[str, float] = field(default_factory=dict)
    by_hand: bool = False

    def shapes_beside(self, other: Work) -> Mapping[str, float]:
        """``shapes`` as they can be compared with those of ``other``.

        Attention that was written out before and is a call of a fused op now has other arguments, and is the same work.
        """
        return self.scores if self.by_hand or other.by_hand else self.shapes


@dataclass(frozen=True, slots=True)
class Setting:
    """Under what a trace was recorded, as far as it is recorded.

    Attributes:
        trace: Which trace.
        work: What a step computes.
        steps: What marks the steps, and how many steady ones there are.
        warmup: Whether warm-up could be told.
        versions: Versions of libraries and drivers.
        flags: What the profiler was asked to record besides, and what is seen of it.
    """

    trace: TraceInfo
    work: Work
    steps: tuple[str, int]
    warmup: bool
    versions: Mapping[str, str]
    flags: frozenset[str]


def setting(
    timeline: Timeline,
    trace: TraceInfo,
    steps: StepTable,
    table: DispatchTable,
    names: Mapping[str, int],
    stages: frozenset[str],
) -> Setting:
    """Under what a trace was recorded.

    Args:
        timeline: With launches linked.
        trace: Which it is.
        steps: Its steps.
        table: Its dispatches.
        names: Device time by name of kernel, ns.
        stages: Names of its stages.
    """
    versions: dict[str, str] = {}
    flags: set[str] = set()
    for run in timeline.runs:
        for key, value in run.metadata.items():
            if key.endswith("_version") and key != "schema_version":
                versions[key.removesuffix("_version").replace("_", " ")] = str(value)
        flags |= {word for key, word in _FLAGS.items() if run.metadata.get(key)}
    kinds = set(timeline.events["kind"].unique().cast(pl.String))
    # What is seen was recorded, whatever the header says of it.
    flags |= {"Python stacks"} if "python" in kinds else set()
    flags |= {"shapes"} if timeline.inputs.height else set()
    marked = max(steps.steps.height, 1)
    calls, scores = (_shapes(table, marked, by_scores=by_scores) for by_scores in (False, True))
    tokens = {
        name: float(median)
        for name in ("requests", "prefill_tokens", "decode_tokens")
        if (median := steps.steady[name].median()) is not None and isinstance(median, (int, float))
    }
    return Setting(
        trace=trace,
        work=Work(
            calls,
            names,
            stages,
            tokens,
            scores,
            by_hand=any(row.implementation == "unfused" for row in table.attention),
        ),
        steps=(steps.source.value, steps.steady.height),
        warmup=steps.steps["warmup"].null_count() < steps.steps.height,
        versions=versions,
        flags=frozenset(flags),
    )


def _shapes(table: DispatchTable, steps: int, *, by_scores: bool) -> dict[str, float]:
    """Calls per step by what they compute; implementations, dtypes and scalar arguments make no difference."""
    counted: Counter[str] = Counter()
    for row in table.dispatches:
        dims = row.inputs.get("dims") if row.inputs and row.family in SHAPED_FAMILIES else None
        if not dims:
            continue
        tensors = [shape for shape in _tensors(dims) if len(shape) > 1]
        if by_scores and row.family == "attention":
            # What an op of the step back is given depends on the implementation.
            tensors = _scores(row, tensors) if row.direction == "forward" else []
        if tensors:
            counted[f"{row.family} {sorted(tensors)}"] += row.count
    return {key: count / steps for key, count in counted.items()}


def _scores(row: Dispatch, tensors: list[list[int]]) -> list[list[int]]:
    """Matrices × queries × keys of an attention call, with all batch sizes folded into one."""
    if row.implementation == "unfused":
        *batch, queries, keys = tensors[0] if tensors else [0, 0]
        return [[prod(batch), queries, keys]] if tensors else []
    if row.op is None or signature_of(row.op) is None or len(tensors) < 3:
        return tensors
    (*batch, queries, _), (*_, keys, _) = tensors[:2]
    return [[prod(batch), queries, keys]]


def _tensors(dims: str) -> list[list[int]]:
    try:
        read = json.loads(dims)
    except ValueError:
        return []
    shapes = read if isinstance(read, list) else []
    return [one for one in shapes if isinstance(one, list) and all(isinstance(number, int) for number in one)]
