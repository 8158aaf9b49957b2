"""Which call started a run of a program on the CPU that had to wait for an input.

Such a run does not begin within its call or within a task that the call made: it begins when the copy or the run
before it ends. What is left to go by: the run knows its compiled program and its number, and the call lies within a
``PjitFunction(name)``. XLA names the program after the function (``jit_name``), and counts the runs of each compiled
program up by one with each call. Several programs of one name (a function compiled for several shapes) are told apart
by the order in which they ran, which is that of the calls.

Sources: recorded profiles of JAX 0.10 on a CPU: all runs of one program have successive ``run_id``; those of several
programs begin at numbers that have nothing to do with each other. Older profiles have one count for all programs.
XLA's client for CPUs (xla/pjrt/cpu/cpu_client.cc) makes a run wait for the one that was enqueued before it, unless it
is part of a collective.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

import numpy as np

from .host_events import OP
from .rows import integers, labels

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from .rows import PlaneRows

_FUNCTION: Final = re.compile(r"^PjitFunction\((.*)\)$", re.DOTALL)
_MODULE: Final = re.compile(r"^(?:jit|pjit|pmap)_(.*)$", re.DOTALL)
_SPELLED_ANEW: Final = re.compile(r"[\W_]+")
"""XLA writes an underscore for what it does not allow in a name, and drops it at the end."""


@dataclass(frozen=True, slots=True)
class Runs:
    """Runs of programs.

    Attributes:
        first: Row of the first op of each.
        number: Its ``run_id``.
    """

    first: NDArray[np.intp]
    number: NDArray[np.int64]


def pair_the_rest(
    rows: PlaneRows, line_of: NDArray[np.intp], runs: Runs, callers: NDArray[np.int64], calls: NDArray[np.int64]
) -> None:
    """Set the call of runs that have none, where only one answer is possible.

    Args:
        rows: The rows of the host.
        line_of: Line of each row.
        runs: The runs.
        callers: Row of the call of each run, -1: not known; it is filled in.
        calls: Rows of all calls that execute a program.
    """
    if not (callers < 0).any() or not len(calls):
        return
    calls = calls[np.argsort(rows.start_ns[calls], kind="stable")]
    asked = [_plain(_FUNCTION, name) for name in _functions_around(rows, line_of, calls)]
    codes, words = labels(rows.plane, "hlo_module")
    ran = [_plain(_MODULE, words[code]) for code in codes[runs.first].tolist()]
    program = integers(rows.plane, "program_id")
    compiled = codes[runs.first].astype(np.int64) if program is None else program[runs.first]
    for name in {one for one in ran if one is not None}:
        own = np.flatnonzero(np.array([one == name for one in ran]))
        # The calls of a function that was compiled for several shapes do not say which of its programs ran.
        if (callers[own] < 0).any() and len(np.unique(compiled[own])) == 1:
            _by_number(rows, runs, callers, own, calls[[one == name for one in asked]])
    _in_order(rows, runs, callers, calls[[one is None for one in asked]])
    if (callers < 0).any() and len(np.unique(line_of[calls])) == 1 and len(np.unique(rows.device[runs.first])) == 1:
        _in_turn(rows, runs, callers, calls, list(zip(ran, compiled.tolist(), strict=True)), asked)


def _by_number(
    rows: PlaneRows, runs: Runs, callers: NDArray[np.int64], own: NDArray[np.intp], calls: NDArray[np.int64]
) -> None:
    """Pair the runs of one program with the calls of its function: the n-th call is the n-th number."""
    if not len(calls):
        return
    numbers = runs.number[own]
    place = np.searchsorted(rows.start_ns[calls], rows.start_ns[callers[own]])
    known = (callers[own] >= 0) & np.isin(callers[own], calls)
    with np.errstate(over="ignore"):
        if known.any():
            offsets = np.unique(numbers[known] - place[known])
        elif len(np.unique(numbers)) == len(calls) and numbers.max() - numbers.min() == len(calls) - 1:
            offsets = numbers.min(keepdims=True)
        else:
            return
        at = numbers - offsets[0]
    if len(offsets) != 1:
        return
    open_ = (callers[own] < 0) & (at >= 0) & (at < len(calls))
    found = calls[np.clip(at, 0, len(calls) - 1)]
    if (rows.start_ns[found[open_]] <= rows.start_ns[runs.first[own[open_]]]).all():
        callers[own[open_]] = found[open_]


def _in_order(rows: PlaneRows, runs: Runs, callers: NDArray[np.int64], calls: NDArray[np.int64]) -> None:
    """Pair runs with calls around which no function is recorded: ids of runs count up in the order of the calls.

    Only where as many runs as calls are left, each behind its call, is that unambiguous.
    """
    missing = np.flatnonzero(callers < 0)
    missing = missing[np.argsort(runs.number[missing], kind="stable")]
    spare = calls[~np.isin(calls, callers)]
    if len(missing) == len(spare) and (rows.start_ns[spare] <= rows.start_ns[runs.first[missing]]).all():
        callers[missing] = spare


def _in_turn(
    rows: PlaneRows,
    runs: Runs,
    callers: NDArray[np.int64],
    calls: NDArray[np.int64],
    ran: list[tuple[str | None, int]],
    asked: list[str | None],
) -> None:
    """Pair all runs of a device with all calls of one thread in order, if nothing that is recorded speaks against it.

    Args:
        rows: The rows of the host.
        runs: The runs.
        callers: The call of each run; filled in.
        calls: The calls, by start.
        ran: Name and id of the program of each run.
        asked: Name of the function around each call.
    """
    if len(calls) != len(runs.first):
        return
    order = np.argsort(rows.start_ns[runs.first], kind="stable")
    last: dict[tuple[str | None, int], int] = {}
    for call, name, run in zip(calls.tolist(), asked, order.tolist(), strict=True):
        number = int(runs.number[run])
        if (
            rows.start_ns[call] > rows.start_ns[runs.first[run]]
            or callers[run] not in (-1, call)
            or (None not in (name, ran[run][0]) and name != ran[run][0])
            or number <= last.get(ran[run], number - 1)
        ):
            return
        last[ran[run]] = number
    callers[order] = calls


def _plain(pattern: re.Pattern[str], name: str | None) -> str | None:
    """The name of a function, spelled in the same way for both; ``None`` if it is no such name."""
    found = pattern.match(name) if name else None
    return _SPELLED_ANEW.sub("", found[1]) if found else None


def _functions_around(rows: PlaneRows, line_of: NDArray[np.intp], calls: NDArray[np.int64]) -> list[str | None]:
    """Name of the innermost call of a compiled function around each of some calls."""
    names = [entry.name for entry in rows.plane.names]
    is_function = np.array([bool(OP.match(name)) for name in names] or [False], np.bool_)[rows.plane.name_of]
    functions = np.flatnonzero(is_function)
    every = np.concatenate((functions, calls))
    order = np.lexsort((-rows.dur_ns[every], rows.start_ns[every], line_of[every]))
    found: dict[int, str] = {}
    open_: list[tuple[int, int]] = []
    line = -1
    for row in every[order].tolist():
        if line_of[row] != line:
            line, open_ = int(line_of[row]), []
        start = int(rows.start_ns[row])
        while open_ and open_[-1][0] <= start:
            open_.pop()
        if is_function[row]:
            open_.append((start + int(rows.dur_ns[row]), row))
        elif open_:
            found[row] = names[rows.plane.name_of[open_[-1][1]]]
    return [found.get(row) for row in calls.tolist()]
