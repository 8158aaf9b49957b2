"""What sort of event each row is, whether it lies on a device, and whether its times can be true."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any, Final

import numpy as np
import polars as pl

from traceview import schema
from traceview.parsers.kineto.categories import (
    COMPILE_NAME,
    DEVICE_CATEGORIES,
    HOST_CATEGORIES,
    MTIA_KINDS,
    OLD_ANNOTATION_NAME,
    SYNC_CALL,
)
from traceview.parsers.kineto.raw import NULL, NULL_CODE
from traceview.timeline import Count

if TYPE_CHECKING:
    from collections.abc import Callable

    from numpy.typing import NDArray

    from traceview.parsers.kineto.raw import EventColumns

_LONGEST_NS: Final = 24 * 3_600 * 10**9
"""No recording is longer than a day: profilers run out of memory within minutes."""

_TIMED_PHASES: Final = frozenset("XiIC")

_PHASES: Final = frozenset("XiICMstf")

_STRAY_ZERO_NS: Final = 3_600 * 10**9
"""A row at time 0 is a profiler artefact when every other row is at least this far away."""


_AT_A_TIME: Final = 1 << 16
"""NumPy makes an index of eight bytes a row of whatever it is given, so it is given little at a time."""


class TextColumn:
    """A column of texts, of which there are few different ones, as a small number for each row.

    Args:
        codes: Codes of Categorical, :data:`~.raw.NULL_CODE` for null.
    """

    def __init__(self, codes: NDArray[np.uint32]) -> None:
        different = pl.Series(codes).unique()
        different = different.filter(different != NULL_CODE)
        self.texts: list[str] = different.cat.to(pl.Categorical).cast(pl.String).to_list()
        null = len(different)
        kind = np.uint8 if null < 1 << 8 else np.uint16 if null < 1 << 16 else np.uint32
        beyond = int(different.max()) + 1 if null else 0  # type: ignore[arg-type]  # UInt32, so an int
        place = np.full(beyond + 1, null, kind)
        place[different.to_numpy()] = np.arange(null)
        self._places: NDArray[np.unsignedinteger[Any]] = np.empty(len(codes), kind)
        for begin in range(0, len(codes), _AT_A_TIME):
            part = codes[begin : begin + _AT_A_TIME]
            self._places[begin : begin + _AT_A_TIME] = place[np.minimum(part, np.uint32(beyond))]

    def each(self, value_of: Callable[[str], int]) -> NDArray[np.int8]:
        """A small number for each row, worked out once per distinct text; -1 for null."""
        table = np.array([*map(value_of, self.texts), -1], np.int8)
        values = np.empty(len(self._places), np.int8)
        for begin in range(0, len(values), _AT_A_TIME):
            values[begin : begin + _AT_A_TIME] = table[self._places[begin : begin + _AT_A_TIME]]
        return values

    def count(self, text: str) -> int:
        """How many rows hold a text."""
        return int((self.each(lambda one: int(one == text)) == 1).sum())


def kinds(events: EventColumns, cat: TextColumn, ph: TextColumn) -> tuple[NDArray[np.int8], NDArray[np.bool_]]:
    """Kind number of each row, -1 for flows, metadata and anything else that is no event; and whether on a device.

    Args:
        events: The rows.
        cat: Their column ``cat``.
        ph: Their column ``ph``.
    """
    number = {name: index for index, name in enumerate(schema.KINDS)}
    device = cat.each(lambda text: number.get(DEVICE_CATEGORIES.get(text.lower(), ""), -1))
    kind = cat.each(lambda text: number.get(HOST_CATEGORIES.get(text.lower(), ""), -1))
    on_device = device >= 0
    kind[on_device] = device[on_device]
    phase = ph.each(lambda text: {"X": 0, "i": 1, "I": 1, "C": 1}.get(text, -1))
    kind[(phase == 0) & (kind < 0)] = number["other"]
    kind[phase == 1] = number["counter"]
    kind[phase < 0] = -1
    _refine_by_name(TextColumn(events.array("name")), cat, kind, number)
    return kind, on_device


def _refine_by_name(names: TextColumn, cat: TextColumn, kind: NDArray[np.int8], number: dict[str, int]) -> None:
    """Set the kinds that the category alone does not tell."""
    sync_call, compile_name = re.compile(SYNC_CALL), re.compile(COMPILE_NAME)

    def meaning(name: str) -> int:
        if sync_call.search(name):
            return number["sync"]
        if compile_name.search(name):
            return number["compile"]
        return number["annotation"] if OLD_ANNOTATION_NAME.match(name) else -1

    told = names.each(meaning)
    for source, target in (
        ("api", "sync"),
        ("op", "compile"),
        ("annotation", "compile"),
        ("op", "annotation"),
    ):
        kind[(kind == number[source]) & (told == number[target])] = number[target]
    if "mtia_ccp_events" in cat.texts:
        mtia = cat.each(lambda text: int(text == "mtia_ccp_events")) == 1
        kind[mtia] = names.each(lambda name: number[MTIA_KINDS.get(name, "other")])[mtia]


def possible_rows(events: EventColumns, ph: TextColumn) -> tuple[NDArray[np.bool_], dict[str, Count]]:
    """Rows whose times can be true, and the count of those whose times cannot."""
    counts: dict[str, Count] = {}
    starts = events.array("ts_ns")
    starts[starts == NULL] = 0
    durations = events.array("dur_ns")
    complete = ph.each(lambda text: int(text == "X")) == 1
    missing = complete & (durations == NULL)
    durations[durations == NULL] = 0
    negative = complete & (durations < 0)
    too_long = durations > _LONGEST_NS
    del durations
    at_zero = complete & (starts == 0) & ~negative
    elsewhere = starts[complete & ~at_zero & ~negative]
    if at_zero.any() and (not len(elsewhere) or elsewhere.min() < _STRAY_ZERO_NS):
        at_zero[:] = False
    # Far from the middle of the recording: a clock that was never set, or digits that were damaged.
    middle = int(np.median(elsewhere, overwrite_input=True)) if len(elsewhere) else 0
    far = (starts < middle - _LONGEST_NS) | (starts > middle + _LONGEST_NS) | too_long
    far &= (ph.each(lambda text: int(text in _TIMED_PHASES)) == 1) & ~negative & ~at_zero
    for key, mask in (
        ("lost-negative-duration", negative),
        ("lost-time-zero", at_zero),
        ("lost-time-far-off", far),
        ("duration-missing", missing),
    ):
        if mask.any():
            first = int(np.flatnonzero(mask)[0])
            counts[key] = Count(int(mask.sum()), str(events["name"][first])[:120])
    return ~negative & ~at_zero & ~far, counts


def unsupported_phases(events: EventColumns, ph: TextColumn) -> dict[str, Count]:
    """How many rows have a phase that is not read."""
    odd = np.flatnonzero(ph.each(lambda text: int(text in _PHASES)) == 0)
    if not len(odd):
        return {}
    phase, name = (events[column][int(odd[0])] for column in ("ph", "name"))
    return {"lost-unsupported-phase": Count(len(odd), f"ph {phase!r}, name {name!r}"[:120])}
