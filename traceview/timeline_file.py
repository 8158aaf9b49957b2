"""A whole timeline in one Parquet file: a row per event, a column per detail, everything else in the file's metadata.

Any reader of Parquet sees the events; :func:`read` makes the same :class:`~traceview.timeline.Timeline` again. The page
``docs/timeline-file.md`` describes the file.
"""

from __future__ import annotations

import errno
import json
import os
import shutil
import tempfile
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any, BinaryIO, Final, Literal

import numpy as np
import polars as pl

from traceview import schema
from traceview.building import NO_KEY, key_series
from traceview.odd_paths import is_utf8, readable
from traceview.timeline import Timeline
from traceview.timeline_details import DETAIL, FileDetails, SharedFile
from traceview.timeline_facts import UnfitFileError, read_report, read_runs, written_report, written_run

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

    from traceview.timeline_details import Layout

MARK: Final = "traceview.timeline"
"""Metadata key that makes a Parquet file a timeline."""
VERSION: Final = 1
"""Of this layout; raised when a file of it can no longer be read by what is written here."""
TABLES: Final = {
    "processes": schema.PROCESSES, "threads": schema.THREADS, "devices": schema.DEVICES, "inputs": schema.INPUTS,
}  # fmt: skip
"""The small frames, each a JSON object of columns under ``traceview.<name>``."""
MAGIC: Final = b"PAR1"

_ROWS: Final = 1 << 14
"""Rows that are made at a time; a group in the file is four times that, as what is not written yet stays in memory."""
_IN_MEMORY: Final = 1 << 20
"""So many cells of details are held while a file is written; of more each lies in a temporary file."""
_MOST_FOOTER: Final = 1 << 28
_NO_ROOM: Final = 1 << 16
"""With fewer bytes free than this, a file that could not be written found no room."""
_LEAST_BYTES_A_ROW: Final = 16
_LINKS: Final = ("launch_id", "op_id", "parent_id")
_KEYS: Final = ("process", "thread", "device", "inputs")

More = Callable[[pl.DataFrame], list[pl.Series]]
"""Further columns for some rows of the events."""


def write(
    timeline: Timeline,
    path: Path,
    *,
    compression: Literal["uncompressed", "lz4", "zstd"] = "zstd",
    more: More | None = None,
    facts: Mapping[str, Any] | None = None,
    wanted: Callable[[str], bool] | None = None,
) -> None:
    """Write a timeline.

    Args:
        timeline: Linked or not.
        path: A file that may be overwritten.
        compression: Of the columns.
        more: Makes columns for other readers; :func:`read` passes over them.
        facts: Further JSON values to keep in the file.
        wanted: Says of each detail, just before it is made, whether it goes into the file; all do if not given. Of the
            others the file has the names.

    Raises:
        OSError: the file cannot be written.
    """
    with tempfile.TemporaryDirectory(prefix="traceview-", dir=path.parent) as folder:
        columns = _detail_columns(timeline, Path(folder), wanted)
        head = {
            "version": VERSION,
            "schema": schema.SCHEMA_VERSION,
            "rows": timeline.events.height,
            "details": [
                [key, columns[key].text, columns[key].several] if key in columns else [key] for key in timeline.details
            ],
            "runs": [written_run(run) for run in timeline.runs],
            "report": written_report(timeline.report),
            **(facts or {}),
        }
        metadata = {MARK: json.dumps(head)}
        for name in TABLES:
            metadata[f"traceview.{name}"] = json.dumps(getattr(timeline, name).to_dict(as_series=False))

        def piece(start: int) -> pl.DataFrame:
            rows = timeline.events.slice(start, _ROWS)
            made = [column.part(start, rows.height) for column in columns.values()]
            return rows.hstack([*(more(rows) if more else []), *made])

        def pieces(
            with_columns: list[str] | None, _predicate: pl.Expr | None, _rows: int | None, _batch: int | None
        ) -> Iterator[pl.DataFrame]:
            for start in range(0, max(timeline.events.height, 1), _ROWS):
                frame = piece(start)
                yield frame.select(with_columns) if with_columns is not None else frame

        from polars.io.plugins import register_io_source

        frame_schema = piece(timeline.events.height).schema
        with _written_to(path) as target:
            register_io_source(pieces, schema=frame_schema).sink_parquet(
                target,
                compression=compression,
                compression_level=1 if compression == "zstd" else None,
                statistics=False,
                row_group_size=_ROWS * 4,
                metadata=metadata,
            )


@contextmanager
def _written_to(path: Path) -> Iterator[Path | BinaryIO]:
    """Where Polars may write, and its errors as what they are: it reports those of the system as its own.

    Raises:
        OSError: the file cannot be written.
    """
    try:
        if is_utf8(path):
            yield path
        else:  # Polars takes names as text; Python can open any.
            with open(path, "wb") as file:
                yield file
    except pl.exceptions.ComputeError as error:
        if not str(error).startswith("parquet:"):  # What makes the rows failed, not what writes them.
            raise
        if shutil.disk_usage(path.parent).free < _NO_ROOM:
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC), os.fspath(path)) from error
        raise OSError(errno.EIO, str(error), os.fspath(path)) from error


class _Column:
    """One detail on its way into the file."""

    def __init__(self, key: str, frame: pl.DataFrame) -> None:
        self.key = key
        self.text = frame.schema["value"] == pl.Categorical
        ids = frame["id"].to_numpy()
        # Almost no argument occurs twice in one event, and a list in every row would cost all readers.
        self.several = bool((ids[1:] == ids[:-1]).any())
        if self.several:
            frame = frame.group_by("id", maintain_order=True).agg("value").sort("id")
        self.ids: NDArray[np.uint32] = frame["id"].to_numpy()
        self.values = frame["value"]

    def part(self, start: int, count: int) -> pl.Series:
        name = DETAIL + self.key
        low, high = (int(at) for at in np.searchsorted(self.ids, [start, start + count]))
        if low == high:
            return pl.Series(name, [None], dtype=self.values.dtype).new_from_index(0, count)
        take = np.full(count, NO_KEY, np.uint32)
        take[self.ids[low:high] - np.uint32(start)] = np.arange(low, high, dtype=np.uint32)
        return self.values.gather(key_series(take)).alias(name)


def _detail_columns(timeline: Timeline, folder: Path, wanted: Callable[[str], bool] | None) -> dict[str, _Column]:
    """Details by name, in memory or, if there are many, in files that the system maps in and lets go as it likes."""
    details = timeline.details
    read = getattr(details, "read", details.__getitem__)
    columns = {}
    held = 0
    for at, key in enumerate(details):
        if wanted is not None and not wanted(key):
            continue
        frame = read(key)
        held += frame.height
        if held > _IN_MEMORY:
            spilled = folder / f"{at}.arrow"
            with open(spilled, "wb") as file:
                frame.write_ipc(file)
            frame = pl.read_ipc(readable(spilled))
        columns[key] = _Column(key, frame)
    return columns


def marked(path: Path) -> bool:
    """Whether a Parquet file says that it is a timeline."""
    try:
        return MARK in _metadata(path)
    except (OSError, UnfitFileError):
        return False


def read(
    path: Path,
    *,
    paths: Sequence[Path] | None = None,
    rest: Callable[[], Mapping[str, pl.DataFrame]] | None = None,
    checked: bool = True,
) -> tuple[Timeline, dict[str, Any]]:
    """Read a timeline.

    Args:
        path: The file. It is kept open, as details are read from it when they are asked for.
        paths: The path of each run; ``path`` if not given.
        rest: Where details come from that are not in the file; without it they count as not recorded.
        checked: Hold every column to its contract, as is due to a file of unknown origin.

    Returns:
        The timeline, and what else is written in the file's head.

    Raises:
        OSError: the file cannot be opened.
        UnfitFileError: it holds no timeline, one of a later version, or a damaged one.
    """
    metadata = _metadata(path)
    if MARK not in metadata:
        raise UnfitFileError("it is Parquet, but no timeline written by traceview")
    file = SharedFile(path)
    try:
        head = json.loads(metadata[MARK])
        _require_version(head)
        rows, details = _layout(head, os.stat(path).st_size)
        if rest is None:
            details = {key: layout for key, layout in details.items() if layout is not None}
        events = _events(file, rows, checked=checked)
        tables = {name: _table(metadata, name, frame) for name, frame in TABLES.items()}
        timeline = Timeline(
            events=events,
            details=FileDetails(file, details, rest),
            runs=read_runs(head.get("runs"), paths or [path]),
            report=read_report(head.get("report")),
            **tables,
        )
        if checked:
            _require_sound(timeline)
    except UnfitFileError:
        raise
    except (ValueError, TypeError, KeyError, RecursionError, OverflowError, pl.exceptions.PolarsError) as error:
        raise UnfitFileError(_first_line(error)) from error
    except pl.exceptions.PanicException as error:
        raise UnfitFileError("it is damaged") from error
    return timeline, head


def _first_line(error: BaseException) -> str:
    return next(iter(str(error).splitlines()), type(error).__name__).rstrip(".")


def read_metadata(path: Path) -> dict[str, str]:
    """The metadata of a Parquet file; opened here, as Polars takes no name that is not UTF-8.

    Raises:
        OSError: the file cannot be opened.
        PolarsError: it is no Parquet file, or a damaged one.
    """
    with open(path, "rb") as file:
        return pl.read_parquet_metadata(file)


def _metadata(path: Path) -> dict[str, str]:
    with open(path, "rb") as file:
        size = file.seek(0, os.SEEK_END)
        if size < 12:
            raise UnfitFileError("it ends before its own end")
        file.seek(size - 8)
        tail = file.read(8)
    footer = int.from_bytes(tail[:4], "little")
    if tail[4:] != MAGIC or footer > size:
        raise UnfitFileError("it ends before its own end")
    if footer > _MOST_FOOTER:
        raise UnfitFileError("its footer is too large")
    try:
        return read_metadata(path)
    except (pl.exceptions.PolarsError, pl.exceptions.PanicException, UnicodeDecodeError) as error:
        raise UnfitFileError("its footer is damaged") from error


def _require_version(head: Any) -> None:
    if not isinstance(head, dict):
        raise UnfitFileError("its description is damaged")
    for name, known in (("version", VERSION), ("schema", schema.SCHEMA_VERSION)):
        if head.get(name) != known:
            raise UnfitFileError(f"its {name} is {head.get(name)!r:.40}, and this version of traceview reads {known}")


def _layout(head: dict[str, Any], size: int) -> tuple[int, dict[str, Layout | None]]:
    rows = head.get("rows")
    # Times do not repeat, so that no honest file is smaller; a few bytes could else stand for gigabytes.
    if not isinstance(rows, int) or not 0 <= rows <= min(NO_KEY, 1_000_000 + size * _LEAST_BYTES_A_ROW):
        raise UnfitFileError("its number of events cannot be")
    details: dict[str, Layout | None] = {}
    for key, *layout in head["details"]:
        if not isinstance(key, str) or len(layout) not in (0, 2):
            raise UnfitFileError("its list of details is damaged")
        details[key] = (layout[0] is True, layout[1] is True) if layout else None
    return rows, details


def _events(file: SharedFile, rows: int, *, checked: bool) -> pl.DataFrame:
    names = list(schema.EVENTS.dtypes)
    events = file.columns(names if checked else names[1:])
    if events.height != rows:
        raise UnfitFileError(f"it holds {events.height} events and says {rows}")
    if not checked:
        # Quicker made than read, and by Polars itself: the way over NumPy imports its masked arrays.
        events.insert_column(0, pl.int_range(rows, dtype=pl.UInt32, eager=True).alias("id"))
    if events.schema["kind"] != schema.Kind:
        # A list of kinds that has grown since: the same words, other numbers.
        events = events.with_columns(pl.col("kind").cast(pl.String).cast(schema.Kind))
    return events


def _table(metadata: dict[str, str], name: str, frame: schema.FrameSchema) -> pl.DataFrame:
    columns = json.loads(metadata[f"traceview.{name}"])
    if not isinstance(columns, dict):
        raise UnfitFileError(f"its table {name!r} is damaged")
    return pl.DataFrame(columns, schema=frame.dtypes, strict=True)


def _require_sound(timeline: Timeline) -> None:
    """Hold what a stranger may have written to what every analysis relies on."""
    for name, frame in (("events", schema.EVENTS), *TABLES.items()):
        frame.validate(getattr(timeline, name))
    events = timeline.events
    count = events.height
    wrong = events.select(
        id=(pl.col("id") != pl.int_range(pl.len(), dtype=pl.UInt32)).any(),
        dur_ns=(pl.col("dur_ns") < 0).any(),
        end=(pl.col("start_ns") > (1 << 62)).any() | (pl.col("dur_ns") > (1 << 62)).any(),
        start_ns=(pl.col("start_ns") < 0).any() | ~pl.col("start_ns").is_sorted(),
        **{name: (pl.col(name) >= count).any() for name in _LINKS},
    ).row(0, named=True)
    if bad := [name for name, is_wrong in wrong.items() if is_wrong]:
        raise UnfitFileError(f"column {bad[0]!r} of its events breaks the contract")
    for name, table in zip(_KEYS, ("processes", "threads", "devices", "inputs"), strict=True):
        keys = getattr(timeline, table)[name]
        if keys.n_unique() != len(keys) or not events[name].drop_nulls().unique().is_in(keys.implode()).all():
            raise UnfitFileError(f"column {name!r} of its events does not fit table {table!r}")
    runs = len(timeline.runs)
    for table in ("processes", "devices"):
        if any(run >= runs for run in getattr(timeline, table)["run"]):
            raise UnfitFileError(f"table {table!r} speaks of a run that is not there")
    if not timeline.threads["process"].is_in(timeline.processes["process"].implode()).all():
        raise UnfitFileError("table 'threads' speaks of a process that is not there")
