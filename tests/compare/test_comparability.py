"""Each condition of a comparison: where it holds, limits, forbids, or is not recorded."""

from __future__ import annotations

from dataclasses import replace

import pytest

from traceview.comparability import Comparable, Effect, conditions, overall
from traceview.compared_setting import Setting, Work
from traceview.report_parts import Device, TraceInfo

H100 = Device(0, 0, "NVIDIA H100 80GB HBM3", "nvidia", "9.0", None, used=True, architecture="sm90")
A100 = replace(H100, name="NVIDIA A100-SXM4-80GB", compute_capability="8.0", architecture="sm80")
TRACE = TraceInfo(("a.json",), "kineto", "PyTorch profiler (Kineto)", "2.9.1", (H100,), 100, truncated=False,
                  trust="good")  # fmt: skip
SHAPES = {f"gemm [[{n}, 64], [64, 64]]": 2.0 for n in range(10)}
BASE = Setting(
    trace=TRACE,
    work=Work(SHAPES, {"k": 100}, frozenset({"forward"})),
    steps=("profiler steps", 5),
    warmup=True,
    versions={"torch": "2.9.1", "cuda runtime": "12080"},
    flags=frozenset({"shapes"}),
)
OTHER = replace(BASE, trace=replace(TRACE, files=("b.json",)))


def judged(before, after, what):
    found = conditions(before, after)
    return next(one for one in found if one.what == what), overall(found)


def traced(setting, **changes):
    return replace(setting, trace=replace(setting.trace, **changes))


def test_nothing_differs():
    found = conditions(BASE, OTHER)
    assert overall(found) is Comparable.YES
    assert {one.effect for one in found} == {Effect.HOLDS}
    assert all(one.consequence == "" for one in found)


@pytest.mark.parametrize(
    ("after", "what", "effect"),
    [
        (traced(OTHER, devices=(A100,)), "device", Effect.FORBIDS),
        (traced(OTHER, devices=(replace(H100, name=None, architecture=None),)), "device", Effect.LIMITS),
        (traced(OTHER, devices=(replace(H100, used=False),)), "device", Effect.FORBIDS),
        (traced(OTHER, devices=(H100, replace(H100, device=1))), "number of devices", Effect.LIMITS),
        (traced(OTHER, producer="Nsight Systems"), "recorded by", Effect.LIMITS),
        (traced(OTHER, producer_version="2.10.0"), "recorded by", Effect.LIMITS),
        (traced(OTHER, trust="limited"), "trust", Effect.LIMITS),
        (traced(OTHER, trust="poor"), "trust", Effect.FORBIDS),
        (traced(OTHER, files=("a.json",)), "traces", Effect.LIMITS),
        (replace(OTHER, versions={"torch": "2.10.0", "cuda runtime": "12080"}), "torch version", Effect.LIMITS),
        (replace(OTHER, versions={}), "versions", Effect.UNKNOWN),
        (replace(OTHER, flags=frozenset({"shapes", "Python stacks"})), "also recorded", Effect.LIMITS),
        (replace(OTHER, steps=("requests", 5)), "steps", Effect.FORBIDS),
        (replace(OTHER, warmup=False), "steps", Effect.LIMITS),
    ],
)
def test_one_thing_differs(after, what, effect):
    found, whole = judged(BASE, after, what)
    assert found.effect is effect
    assert found.consequence
    assert whole is {
        Effect.FORBIDS: Comparable.NO,
        Effect.LIMITS: Comparable.LIMITED,
        Effect.UNKNOWN: Comparable.YES,
    }[effect]  # fmt: skip
    assert conditions(BASE, after)[0].effect is effect  # The worst stands first.


def test_whole_recordings_without_steps_are_limited():
    whole = replace(BASE, steps=("the whole trace", 1), warmup=False)
    assert judged(whole, replace(OTHER, steps=("the whole trace", 1), warmup=False), "steps")[0].effect is Effect.LIMITS


@pytest.mark.parametrize(
    ("kept", "effect"), [(10, Effect.HOLDS), (8, Effect.HOLDS), (7, Effect.LIMITS), (2, Effect.FORBIDS)]
)
def test_shapes_in_common(kept, effect):
    """A batch of another size changes nearly all shapes; a merged projection changes some."""
    shapes = dict(list(SHAPES.items())[:kept]) | {f"gemm [[{n}, 99], [99, 99]]": 2.0 for n in range(10 - kept)}
    assert judged(BASE, replace(OTHER, work=replace(BASE.work, shapes=shapes)), "input shapes")[0].effect is effect


def test_attention_written_out_and_its_fused_call_are_the_same_work():
    gemm = {"gemm [[8, 64], [64, 64]]": 2.0}
    by_hand = Work(gemm | {"attention [[1, 4, 9, 9]]": 2.0}, scores=gemm | {"attention [[4, 9, 9]]": 2.0}, by_hand=True)
    fused = Work(gemm | {"attention [[1, 4, 9, 16]]": 2.0}, scores=gemm | {"attention [[4, 9, 9]]": 2.0})
    other = Work(gemm | {"attention [[1, 4, 5, 16]]": 2.0}, scores=gemm | {"attention [[4, 5, 5]]": 2.0})
    pair = replace(BASE, work=by_hand), replace(OTHER, work=fused)
    assert judged(*pair, "input shapes")[0].effect is Effect.HOLDS
    assert judged(*reversed(pair), "calls of those shapes per step")[0].effect is Effect.HOLDS
    assert judged(pair[0], replace(OTHER, work=other), "input shapes")[0].effect is Effect.LIMITS


def test_twice_the_calls_per_step_limit():
    work = replace(BASE.work, shapes=dict.fromkeys(SHAPES, 4.0))
    found, _ = judged(BASE, replace(OTHER, work=work), "calls of those shapes per step")
    assert (found.effect, found.before, found.after) == (Effect.LIMITS, "20", "40")


def test_without_shapes_names_tell():
    bare = replace(BASE, work=Work({}, {"k": 100, "m": 10}, frozenset({"forward"})))
    assert judged(bare, replace(OTHER, work=bare.work), "work")[0].effect is Effect.LIMITS
    other = replace(OTHER, work=Work({}, {"x": 100}, frozenset({"decode"})))
    assert judged(bare, other, "work")[0].effect is Effect.FORBIDS
    same_stage = replace(OTHER, work=Work({}, {"x": 100}, frozenset({"forward"})))
    assert judged(bare, same_stage, "work")[0].effect is Effect.LIMITS


def test_tokens_of_a_serving_engine():
    serving = replace(BASE, work=replace(BASE.work, tokens={"requests": 8.0, "decode_tokens": 8.0}))
    more = replace(OTHER, work=replace(BASE.work, tokens={"requests": 16.0, "decode_tokens": 8.0}))
    assert judged(serving, more, "requests per step")[0].effect is Effect.LIMITS
    assert judged(serving, more, "decode tokens per step")[0].effect is Effect.HOLDS
