"""What a reader of Kineto JSON hands on: the file's events as columns, before any meaning is given to them.

There are two readers with this one contract: :mod:`.reference` (plain and slow) and :mod:`.reader`
(vectorised). Tests hold both to the same result. :mod:`.mapping` turns a :class:`RawTrace` into a timeline.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final

import polars as pl

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from traceview.timeline import Count

LABEL_BASE: Final = -(1 << 62)
"""A text ``pid``/``tid``/``id`` is stored as ``LABEL_BASE + index`` into :attr:`RawTrace.labels`.

A text that is a whole number (``"25738"``) counts as that number, ``"stream 7"`` is a label."""

NULL: Final = -(1 << 63)
"""Stands for a missing number; no field of an event can have this value."""
NULL_CODE: Final = 0xFFFFFFFF
"""Stands for a missing text."""

INT_ARGS: Final = frozenset(
    {
        "External id", "external id", "correlation", "device", "stream", "context", "bytes", "cbid", "cid",
        "Sequence number", "Fwd thread id", "Ev Idx", "Record function id", "Profiler Event Index",
        "Python id", "Python parent id", "Python module id", "Trace iteration",
        "registers per thread", "shared memory", "queued", "graph id", "graph node id", "priority",
        "Bytes", "Addr", "Device Id", "Device Type", "Total Allocated", "Total Reserved",
        "wait_on_stream", "wait_on_cuda_event_id", "wait_on_cuda_event_record_corr_id",
        "In msg nelems", "Out msg nelems", "Group size", "Process Group ID", "Device", "external ts",
        "size", "flops", "sort_index",
    }
)  # fmt: skip
"""Arguments stored as integers when they are JSON integers that fit int64, or such integers in quotes."""

EVENT_COLUMNS: Final[dict[str, Any]] = {
    "ph": pl.Categorical,
    "cat": pl.Categorical,
    "name": pl.Categorical,
    "pid": pl.Int64,
    "tid": pl.Int64,
    "ts_ns": pl.Int64,
    "dur_ns": pl.Int64,
    "flow_id": pl.Int64,
}
"""Columns of :attr:`RawTrace.events`; all may be null except ``ph``, and ``ts_ns`` of events that are no metadata
(``ph`` is not ``M``).

``name`` and ``cat`` are unescaped text. ``ts_ns``/``dur_ns`` are microsecond decimal text turned into exact
integer nanoseconds (digits beyond 3 decimals are rounded half up); ``flow_id`` is the event's ``id``."""


class EventColumns(Mapping[str, pl.Series]):
    """The columns of :data:`EVENT_COLUMNS` by name, each made when it is asked for.

    Attributes:
        height: Number of rows.
    """

    height: int

    @abstractmethod
    def array(self, name: str) -> NDArray[Any]:
        """A column of numbers as int64, :data:`NULL` for null; one of texts as their codes, :data:`NULL_CODE`."""

    def frame(self) -> pl.DataFrame:
        """All of them, several times the memory of what they are made from."""
        return pl.DataFrame([self[name] for name in self])


@dataclass(frozen=True, slots=True)
class RawTrace:
    """A Kineto file as columns.

    Attributes:
        events: One row per event in file order; see :data:`EVENT_COLUMNS`.
        int_args: Argument name to ``(row: UInt32, value: Int64)``, rows ascending.
        text_args: Argument name to ``(row: UInt32, value: Categorical)``, the JSON text of the value exactly as in
            the file (a string keeps its quotes and escapes), rows ascending. Every argument that is not in
            ``int_args`` is here, so that nothing is lost. Unknown keys of the event itself are kept under their name
            among the arguments, or as ``event:NAME`` where an argument has that name. What is no JSON (``inf``,
            ``N/A``) is ``null`` and counted; a string may hold control characters, which JSON forbids.
        labels: Text values of ``pid``, ``tid`` and ``id``; see :data:`LABEL_BASE`.
        head: The file's top-level keys other than ``traceEvents``, before and after it, as parsed JSON.
        counts: What had to be repaired (``repaired-…``) or given up (``lost-…``), by kind, with an example; see
            :data:`.tally.KINDS`.
        truncated: The file ends before its JSON does, or its gzip stream does.
        damage: What is wrong with the file, in words, if it does not simply break off; else ``""``.
    """

    events: EventColumns
    int_args: Mapping[str, pl.DataFrame]
    text_args: Mapping[str, pl.DataFrame]
    labels: tuple[str, ...]
    head: Mapping[str, Any]
    counts: Mapping[str, Count] = field(default_factory=dict)
    truncated: bool = False
    damage: str = ""
