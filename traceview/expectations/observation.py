"""What was observed of some work, in words: which implementations, how much of each, and why some cannot be told."""

from __future__ import annotations

from collections import defaultdict
from typing import TYPE_CHECKING, Final

from traceview.expectations.pieces import hidden_by_a_graph, without_op
from traceview.expectations.words import calls, time
from traceview.kernels import Family

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence

    from traceview.expectations.model import Wanted
    from traceview.expectations.pieces import Piece

MOST_GROUPS: Final = 4
"""Kinds of work that are named one by one."""


def remarks(scope: Sequence[Piece], suspects: Sequence[Piece]) -> list[str]:
    """How the work was found, and what was left aside."""
    words = []
    opaque, bare = hidden_by_a_graph(scope), without_op(scope)
    if opaque:
        words.append(f"{number(opaque)} told by the kernel alone: a graph replay hides the op (opaque)")
    if bare:
        words.append(f"{number(bare)} told by the kernel alone: its op is not recorded (kernel-only)")
    if suspects:
        device_ns = sum(piece.device_ns for piece in suspects)
        words.append(f"{number(suspects)} ({time(device_ns)}) cannot be told to belong to it")
    return words


def why_untold(pieces: Sequence[Piece], wanted: Wanted) -> str:
    """What the trace lacks to tell whether some pieces are as wanted."""
    reasons = {
        "only attention tells forward from backward": wanted.direction is not None
        and any(piece.family != "attention" for piece in pieces),
        "attention by hand is only inferred from the order of kernels": any(piece.is_inferred for piece in pieces),
        "no signature knows the kernel": any(
            piece.family == Family.UNKNOWN.value or (piece.kernel is None and piece.implementation == "unknown")
            for piece in pieces
        ),
        "the type of the inputs is not recorded": bool(wanted.dtype) and any(piece.dtype is None for piece in pieces),
        "its stage is not known, because its launch is not recorded": wanted.stage is not None
        and any(piece.row.stage is None for piece in pieces),
        "the op is not recorded": any(piece.row.op is None and piece.kernel is not None for piece in pieces),
    }
    found = [reason for reason, holds in reasons.items() if holds]
    return ", ".join(found) or "the kernel name does not say it"


def groups(
    pieces: Iterable[Piece], weigh: Callable[[Piece], int], *, times: bool = True, unlike: Wanted | None = None
) -> str:
    """The pieces by implementation, heaviest first: ``math 3 calls (12.5 ms)``."""
    found: dict[str, list[Piece]] = defaultdict(list)
    for piece in pieces:
        found[_label(piece, unlike)].append(piece)
    order = sorted(found.items(), key=lambda item: (-sum(map(weigh, item[1])), item[0]))
    words = []
    for label, group in order[:MOST_GROUPS]:
        count = sum(piece.count for piece in group)
        device_ns = sum(piece.device_ns for piece in group)
        host_ns = sum(piece.row.host_ns or 0 for piece in group if piece.kernel is None)
        if not times:
            words.append(f"{label} {count:,}")
        elif device_ns or not host_ns:
            words.append(f"{label} {number(group)}" + (f" ({time(device_ns)})" if device_ns else ""))
        else:
            words.append(f"{label} {number(group)} ({time(host_ns)} of host time)")
    if len(order) > MOST_GROUPS:
        words.append(f"{len(order) - MOST_GROUPS} more kinds")
    return ", ".join(words)


def number(pieces: Sequence[Piece]) -> str:
    """``24 calls`` of attention, ``24 kernels`` of anything else."""
    return calls(sum(piece.count for piece in pieces), "call" if all(p.kernel is None for p in pieces) else "kernel")


def _label(piece: Piece, unlike: Wanted | None) -> str:
    """The piece in words; of a piece that is not as wanted, also the property that differs."""
    words = [piece.label]
    if piece.family == Family.UNKNOWN.value and piece.kernel:
        words = [f"unidentified {piece.kernel[:60]}"]
    if unlike is not None:
        if unlike.provider and piece.provider not in unlike.provider:
            words.append(f"by {piece.provider}")
        if unlike.tensor_core is not None and piece.tensor_core is not unlike.tensor_core:
            words.append("on tensor cores" if piece.tensor_core else "not on tensor cores")
        if unlike.precision and piece.precision not in unlike.precision:
            words.append(f"in {piece.precision}")
    return " ".join(words)
