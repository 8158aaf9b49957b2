"""What a mark of :func:`traceview.capture.stage` costs while nothing records, beside what it stands in for.

Run ``python benchmarks/marks.py``; needs PyTorch.
"""

from __future__ import annotations

import timeit
from contextlib import nullcontext
from typing import TYPE_CHECKING

import torch

from traceview.capture import stage

if TYPE_CHECKING:
    from collections.abc import Callable

_USES = 10_000


def _mark() -> None:
    with stage("x"):
        pass


def _record_function() -> None:
    with torch.profiler.record_function("x"):
        pass


def _nothing() -> None:
    with nullcontext():
        pass


def main() -> None:
    """Measure and print a table."""
    cases: dict[str, Callable[[], None]] = {
        "stage": _mark,
        "torch.profiler.record_function": _record_function,
        "contextlib.nullcontext": _nothing,
    }
    print("| with … while nothing records | best ns per use |\n|---|---|")
    for name, case in cases.items():
        print(f"| {name} | {min(timeit.repeat(case, number=_USES, repeat=7)) / _USES * 1e9:,.0f} |")


if __name__ == "__main__":
    main()
