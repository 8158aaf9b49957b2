"""Checks written by hand, one for each way a check can end, that all CI renderers are tested on."""

from __future__ import annotations

from dataclasses import replace

from traceview.dispatch import Dispatch, DispatchTable, KernelShare, Reason
from traceview.findings import Confidence, Finding, Severity
from traceview.render.outcome import Expectation, Outcome, Place
from traceview.report import Device, ImportNote, ImportSummary, TraceInfo

HOSTILE = (
    "a\n::error file=x::owned\r\n##[add-mask]x \x1b[31mred\x00 ]]> <script>alert(1)</script> | `code` **bold** "
    "@admin #1 [text](https://evil.example) www.evil.example $x$ \u202e \ud800 &amp; %0A%25 \\| {0} </details>"
)

TRACE = TraceInfo(
    files=("runs/rank0.json.gz",),
    format="kineto",
    producer="PyTorch profiler (Kineto)",
    producer_version="2.13.0",
    devices=(Device(0, 0, "NVIDIA H100 80GB HBM3", "nvidia", "9.0", None, used=True),),
    events=1416,
    truncated=False,
    trust="limited",
)
IMPORTED = ImportSummary(
    "limited", False, {}, (ImportNote("work-without-launch", "509 device events have no launch.", "limited"),)
)


def dispatch(implementation="flash-2", verdict="ok", evidence="kernel", **more):
    facts = {
        "op": "aten::scaled_dot_product_attention", "family": "attention", "implementation": implementation, "provider": "pytorch",
        "direction": "forward", "stage": None, "count": 6, "device_ns": 21_839_000, "share": 0.731, "host_ns": None,
        "attribution": "attributed", "evidence": evidence, "verdict": verdict,
        "inputs": {"dims": "[[1,16,4096,64],[1,4,4096,64]]", "dtypes": '["float","float"]', "strides": None, "concrete": None},
        "reasons": (Reason("observed", "observed", "an op that only this path calls is recorded"),),
        "kernels": (KernelShare("softmax", 6, 4_823_000),), "event_ids": (1,),
    }  # fmt: skip
    return Dispatch(**(facts | more))


def table(*rows):
    return DispatchTable(rows, busy_ns=29_875_000, device_events=1000, unknown_ns=0, unknown_names=())


MATH = Finding(
    code="TV102",
    severity=Severity.ERROR,
    title="6 SDPA calls fell back to math: 21.839 ms of device time, 73.1 % of busy time",
    where="Attention, model/attn.py(338): forward; model/other.py(12): run",
    evidence=("6 × aten::scaled_dot_product_attention: an op that only this path calls (dims [[1,16,4096,64]])",),
    cost_ns=21_839_000,
    confidence=Confidence.MEASURED,
    fix="Give the call what a fused backend accepts.",
    false_alarm_if="the math backend was chosen on purpose",
)
UNTOLD = replace(
    MATH,
    code="TV103",
    severity=Severity.WARNING,
    title="2 attention calls cannot be told",
    where="no call stack recorded",
    evidence=(),
    cost_ns=None,
    confidence=Confidence.INFERRED,
)
INFO = replace(UNTOLD, severity=Severity.INFO, title="expected by dispatch.toml:3: 1 call ran unfused", code="TV101")


def outcome(verdict, summary, exit_code, rows, findings=(), expectations=None, **more):
    return Outcome(verdict, summary, exit_code, TRACE, IMPORTED, table(*rows), findings, expectations, **more)


PASS = outcome("pass", "every attention call ran fused (6 flash-2)", 0, [dispatch()])
FAIL = outcome(
    "fail", MATH.title, 1,
    [dispatch("math", "slow", "op"), dispatch("unknown", "unknown", "none", count=2), dispatch("unfused", "slow", "order", provider=None)],
    (MATH, UNTOLD, INFO),
)  # fmt: skip
INCONCLUSIVE = outcome(
    "inconclusive", "2 of 2 attention calls cannot be judged", 3, [dispatch("unknown", "unknown", "none", count=2)], (UNTOLD,)
)  # fmt: skip
WARNED = replace(INCONCLUSIVE, exit_code=0)
NOTHING = outcome("inconclusive", "no device kernel is recorded, so there is nothing to judge", 3, [])
EXPECTED = outcome(
    "fail", "1 of 4 expectations is violated", 1, [dispatch("math", "slow", "op")], (MATH,),
    (
        Expectation(Place("ci/dispatch.toml", 4), "gemm: on tensor cores", "pass", "100.0 % of 8.1 ms", None),
        Expectation(Place("ci/dispatch.toml", 7), "attention: flash or cudnn", "fail", "math (6 calls, 21.8 ms)", None),
        Expectation(Place("ci/dispatch.toml", 12), "attention in decode*: flash", "inconclusive", "no stage is recorded", None),
        Expectation(Place("ci/dispatch.toml", 16), "forbid kernel *sgemm*", "fail", "3 calls", "until 2027-01-31: card ordered"),
    ),
    notes=("baseline.toml:3: it accepts nothing that is here",),
)  # fmt: skip
UNTOLD_EXPECTATION = replace(
    EXPECTED,
    verdict="inconclusive",
    summary="1 of 1 expectations is not to be told from this trace",
    exit_code=3,
    findings=(),
    expectations=EXPECTED.expectations[2:3],
    notes=(),
)
EVIL = outcome(
    "fail", HOSTILE, 1,
    [dispatch("math", "slow", "op", op=HOSTILE, stage=HOSTILE), dispatch("math", "slow", "op", op="k" * 10_000)],
    (
        replace(MATH, title=HOSTILE, where=HOSTILE, evidence=(HOSTILE, "e" * 10_000), fix=HOSTILE),
        replace(MATH, title="t" * 10_000, where="w" * 10_000),
    ),
    (Expectation(Place("dir with space/%41,:é\n.toml", 3), HOSTILE, "fail", HOSTILE, None),),
    notes=(HOSTILE,),
)  # fmt: skip
OUTCOMES = {
    "pass": PASS,
    "fail": FAIL,
    "inconclusive": INCONCLUSIVE,
    "warned": WARNED,
    "nothing": NOTHING,
    "expected": EXPECTED,
    "untold-expectation": UNTOLD_EXPECTATION,
    "hostile": EVIL,
}
