"""cuDNN attention built a new execution plan inside the recorded window.

What it finds
    Calls of PyTorch's cuDNN attention op that took the host 20 ms or more and 20 times as long as the median call.

Why it costs
    cuDNN compiles a plan for each new combination of batch and length: about half a second each on a B200. With varying
    lengths it happens again and again.

Evidence it needs
    The op's host durations, at least three calls.

When it is wrong
    The calls of a first step are the warm-up; they are left out where profiler steps are recorded. The host may also
    have been slow for another reason.

Fix
    Bucket the lengths; ``TORCH_CUDNN_SDPA_AVOID_RECOMPILE=1`` (PyTorch 2.9 and later); or
    ``torch.backends.cuda.enable_cudnn_sdp(False)``.

Scope and sources
    PyTorch 2.5 and later, compute capability 9.0 and 10.0. modelscope/FunASR issue #3704 (59 of 382 steps took 1.05 s
    instead of 0.098 s), pytorch ``aten/src/ATen/native/cudnn/MHA.cpp``, read in source code 2026-11.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from traceview.findings import Confidence, CostOf, Finding, Severity, Window
from traceview.other_compilations import attention_plans
from traceview.quantities import milliseconds
from traceview.rules.kernel_evidence import located, on_the_host, plural

if TYPE_CHECKING:
    from collections.abc import Iterator

    from traceview.rules.base import Facts

CODE: Final = "TV304"
NAME: Final = "attention-plan"
SEVERITY: Final = Severity.WARNING


def check(facts: Facts) -> Iterator[Finding]:
    """One finding for all calls that stand out."""
    slow = attention_plans(facts.timeline)
    steady = facts.steady
    if steady:
        slow = steady.within(slow)
    if not slow.height:
        return
    cost_ns = round((slow["dur_ns"] - slow["usual_ns"]).sum())
    shapes = slow["inputs"].n_unique() if slow["inputs"].null_count() == 0 else None
    yield Finding(
        code=CODE,
        severity=Severity.WARNING if steady else Severity.INFO,
        title=f"{plural(slow.height, 'cuDNN attention call')} took far longer than usual: "
        f"{milliseconds(cost_ns)} {on_the_host(slow)}",
        **located(facts, slow["id"]),
        evidence=(
            f"usual call {milliseconds(round(slow['usual_ns'][0]))}, longest {milliseconds(int(slow['dur_ns'].max()))}",  # type: ignore[arg-type]
            f"{plural(shapes, 'input signature')} among them" if shapes else "input shapes are not recorded",
        ),
        cost_ns=cost_ns,
        cost_of=CostOf.HOST,
        window=Window.STEPS if steady else Window.TRACE,
        confidence=Confidence.INFERRED,
        fix="Bucket sequence lengths, or set TORCH_CUDNN_SDPA_AVOID_RECOMPILE=1.",
        false_alarm_if="the calls belong to the warm-up, or the host was busy with something else",
    )
