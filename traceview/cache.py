"""The cache of loaded traces: what took long to read opens again in a fraction of the time.

An entry is one timeline file (:mod:`traceview.timeline_file`). Its key stands for everything that the timeline
depends on (:mod:`traceview.content`). An entry comes into being with one rename, and its name holds the checksum of
what is in it: nobody can see a part of one, and a damaged one is made anew.
"""

from __future__ import annotations

import errno
import json
import logging
import os
import secrets
import shutil
import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

import polars as pl

from traceview import timeline_file
from traceview.cache_memory import ContentMemory, removed
from traceview.cache_place import LIMIT_BYTES, OFF_VARIABLE, user_folder, user_limit
from traceview.content import Hashing, Stamp, load_key
from traceview.errors import UnreadableTraceError, UsageError
from traceview.formats import DependentFormat, FinishedFormat
from traceview.timeline_facts import UnfitFileError

if TYPE_CHECKING:
    from pathlib import Path

    from traceview.sources import Found
    from traceview.timeline import Timeline

WORTH_SECONDS: Final = 0.3
"""A load that took less is not kept: writing an entry takes about a third of the time of reading the trace."""
LEAST_BYTES: Final = 256 << 10
"""Smaller traces are not even looked up."""

ASKED_FOR: Final = frozenset({
    "Collective name", "Device Id", "Device Type", "Group size", "In msg nelems", "Out msg nelems",
    "Process Group Name", "Process Group Ranks", "Seq", "Total Reserved", "backend_kind", "category",
    "custom_call_target",
    "device_duration_ps", "device_offset_ps", "dot_precision", "dot_types", "duration_ps", "expression", "fused_ops",
    "graph node id", "original graph node id", "level 0",
    "hlo_category", "hlo_op", "hlo_text", "long_name", "mixed_scopes", "op_name", "program_id", "start_ps", "step_num",
    "tf_op", "unfused_attention",
})  # fmt: skip
"""Details that answers ask for; they are always kept. Of the others as many as cost little beside the load: in some
formats all of them take longer than the load. What is not kept is made from the trace when somebody asks for it."""

DETAIL_SHARE: Final = 0.15
"""Share of the time of the load that may go into details that no answer asks for."""

_ABANDONED_S: Final = 3600.0
"""What a killed process left unfinished is removed after this long."""
_SUFFIX: Final = ".parquet"
_UNFINISHED: Final = "traceview-new-"

Remark = Callable[[str], None]


@dataclass(frozen=True, slots=True)
class Entry:
    """One cached load.

    Attributes:
        path: The file.
        name: Name of the first trace of the load.
        files: Number of traces.
        source_bytes: Their size.
        bytes: Size of the entry.
        events: Number of events.
        seconds: How long the load took without the cache.
        used_unix_s: When it was last opened or made.
    """

    path: Path
    name: str
    files: int
    source_bytes: int
    bytes: int
    events: int
    seconds: float
    used_unix_s: float


def user_cache(remark: Remark | None = None) -> Cache | None:
    """The cache of this user, ``None`` if ``TRACEVIEW_NO_CACHE`` turns it off, or if there is no place for it.

    Args:
        remark: Told what is wrong with the cache; a logged warning if not given.

    Raises:
        UsageError: ``TRACEVIEW_CACHE_LIMIT_MB`` is no number.
    """
    if os.environ.get(OFF_VARIABLE, "") not in ("", "0"):
        return None
    limit_bytes = user_limit()
    try:
        folder = user_folder()
    except UsageError as error:
        (remark or _logged)(f"{error.why.removesuffix('.')} ({error.next_step.removesuffix('.')})")
        return None
    return Cache(folder, limit_bytes=limit_bytes, remark=remark)


def _logged(text: str) -> None:
    logging.getLogger("traceview.cache").warning(text)


class Cache:
    """A folder of cached loads.

    Args:
        folder: Made when the first entry is written, for this user alone.
        limit_bytes: The entries that were not used for longest go when all together are larger.
        worth_seconds: Loads that took less are not kept.
        least_bytes: Traces smaller than this are passed over.
        detail_share: Share of the time of a load that may go into details that no answer asks for.
        remark: Told in one sentence about a damaged entry, or a cache that cannot be written.
    """

    def __init__(
        self,
        folder: Path,
        *,
        limit_bytes: int = LIMIT_BYTES,
        worth_seconds: float = WORTH_SECONDS,
        least_bytes: int = LEAST_BYTES,
        detail_share: float = DETAIL_SHARE,
        remark: Remark | None = None,
    ) -> None:
        self.folder = folder
        self.limit_bytes = limit_bytes
        self.worth_seconds = worth_seconds
        self.least_bytes = least_bytes
        self.detail_share = detail_share
        self._remark = remark or _logged
        self._memory = ContentMemory(folder / "seen")

    def through(self, found: Found, read: Callable[[], Timeline]) -> Timeline:
        """The timeline of these traces: from the cache, or read and then kept if that took long.

        Args:
            found: The traces.
            read: Reads them.
        """
        if not self._is_fit(found):
            return read()
        before = [Stamp.of(source) for source in found.traces]
        total = sum(stamp.bytes for stamp in before)
        memo = [self._memory.recall(stamp) for stamp in before]
        if any(known is None for known in memo) and any(size == total for size, *_ in self._names()):
            # Another name or another time of the same content, perhaps.
            memo = [known or self._memory.look(stamp) for known, stamp in zip(memo, before, strict=True)]
        key = load_key(found, [known for known in memo if known is not None]) if None not in memo else None
        if key is not None and (timeline := self._open(key, found, before, read)) is not None:
            return timeline
        hashing = Hashing([stamp for stamp, known in zip(before, memo, strict=True) if known is None])
        started = time.perf_counter()
        timeline = read()
        seconds = time.perf_counter() - started
        if seconds < self.worth_seconds:
            hashing.stop()
            return timeline
        fresh = iter(hashing.result())
        digests = [known or next(fresh, None) for known in memo]
        unchanged = [Stamp.of(source) for source in found.traces] == before
        if unchanged and None not in digests:
            known_digests = [digest for digest in digests if digest is not None]
            self._keep(load_key(found, known_digests), timeline, found, total, seconds)
            for stamp, digest in zip(before, known_digests, strict=True):
                self._memory.keep(stamp, digest)
        return timeline

    def entries(self) -> list[Entry]:
        """What is cached, last used first. Files that are no entries are passed over.

        Raises:
            OSError: the folder cannot be listed.
        """
        found = []
        for source_bytes, _, _, path in self._listed():
            try:
                head = json.loads(timeline_file.read_metadata(path)[timeline_file.MARK])
                about, status = head["cache"], path.stat()
                found.append(
                    Entry(
                        path=path, name=str(about["name"]), files=int(about["files"]), source_bytes=source_bytes,
                        bytes=status.st_size, events=int(head["rows"]), seconds=float(about["seconds"]),
                        used_unix_s=status.st_mtime,
                    )
                )  # fmt: skip
            except (OSError, ValueError, KeyError, TypeError, pl.exceptions.PolarsError, pl.exceptions.PanicException):
                continue
        return sorted(found, key=lambda entry: entry.used_unix_s, reverse=True)

    def clear(self) -> tuple[int, int]:
        """Remove all entries and everything else that this class wrote; number and size in bytes of the entries.

        Raises:
            OSError: something cannot be removed.
        """
        count = freed = 0
        for _, _, _, path in self._listed():
            try:
                size = path.stat().st_size
                path.unlink()
            except FileNotFoundError:
                continue  # Another process was quicker.
            count, freed = count + 1, freed + size
        self._memory.forget()
        self._sweep(abandoned_s=0.0)
        return count, freed

    # What a load is.

    def _is_fit(self, found: Found) -> bool:
        if sum(source.size for source in found.traces) < self.least_bytes:
            return False
        for source in found.traces:
            if isinstance(source.format, FinishedFormat):
                return False
            if isinstance(source.format, DependentFormat) and source.format.depends_on_more(source.path):
                return False
        return True

    # Entries.

    def _names(self) -> Iterator[tuple[int, str, str, Path]]:
        """Size of the traces, key, checksum and path of every entry; none if the folder cannot be listed."""
        try:
            yield from self._listed()
        except OSError:
            return  # Whoever wants to write there says why it cannot be.

    def _listed(self) -> list[tuple[int, str, str, Path]]:
        """The same for those who must know: no folder holds nothing, any other failure is one."""
        try:
            names = os.listdir(self.folder)
        except FileNotFoundError:
            return []
        found = []
        for name in names:
            parts = name.removesuffix(_SUFFIX).split("-")
            if name.endswith(_SUFFIX) and len(parts) == 3 and parts[0].isdecimal():
                found.append((int(parts[0]), parts[1], parts[2], self.folder / name))
        return found

    def _open(self, key: str, found: Found, stamps: list[Stamp], read: Callable[[], Timeline]) -> Timeline | None:
        def rest() -> Mapping[str, pl.DataFrame]:
            if [Stamp.of(source) for source in found.traces] != stamps:
                raise UnreadableTraceError(
                    "file-changed",
                    where=str(found.traces[0].path),
                    why="the trace has changed since it was loaded, so no more can be read from it.",
                    next_step="Load it again.",
                )
            return read().details

        for _, own_key, checksum, path in self._names():
            if own_key != key:
                continue
            try:
                if _checksum(path) != checksum:
                    raise UnfitFileError("its checksum is wrong")
                head = json.loads(timeline_file.read_metadata(path)[timeline_file.MARK])
                paths = [found.traces[at].path for at in head["cache"]["sources"]]
                timeline, _ = timeline_file.read(path, paths=paths, rest=rest, checked=False)
                os.utime(path)
            except FileNotFoundError:
                continue  # Removed by another process a moment ago.
            except (OSError, ValueError, KeyError, IndexError, pl.exceptions.PolarsError) as error:
                reason = getattr(error, "strerror", None) or str(error)
                self._remark(f"a cached trace was damaged and is made anew ({reason})")
                removed(path)
                continue
            return timeline
        return None

    def _keep(self, key: str, timeline: Timeline, found: Found, total: int, seconds: float) -> None:
        order = {source.path: at for at, source in enumerate(found.traces)}
        if any(run.path not in order for run in timeline.runs):
            return  # A parser that names another file than it was given: its paths could not be given back.
        if self._twins(key):
            return  # Another process read the same at the same time, and was quicker.
        about = {
            "name": found.traces[0].path.name,
            "files": len(found.traces),
            "seconds": round(seconds, 3),
            "sources": [order[run.path] for run in timeline.runs],
        }
        new = None
        try:
            self._make_folder()
            new = self.folder / f"{_UNFINISHED}{secrets.token_hex(8)}"
            new.mkdir(mode=0o700)
            written = new / "entry"
            wanted = _Wanted(seconds * self.detail_share)
            timeline_file.write(timeline, written, compression="uncompressed", facts={"cache": about}, wanted=wanted)
            if written.stat().st_size <= self.limit_bytes:
                os.replace(written, self.folder / f"{total}-{key}-{_checksum(written)}{_SUFFIX}")
                # Where several came here together, they agree on the one that stays.
                for twin in self._twins(key)[1:]:
                    removed(twin)
        except (OSError, pl.exceptions.PolarsError) as error:
            reason = getattr(error, "strerror", None) or next(iter(str(error).splitlines()), "")
            self._remark(f"the trace could not be cached ({reason}; traceview cache path says where)")
        finally:
            if new is not None:
                shutil.rmtree(new, ignore_errors=True)
        self._evict()

    def _twins(self, key: str) -> list[Path]:
        """The entries of a key, in an order on which all processes agree."""
        return sorted(path for _, own, _, path in self._names() if own == key)

    def _make_folder(self) -> None:
        if self.folder.exists() and not self.folder.is_dir():
            raise NotADirectoryError(errno.ENOTDIR, os.strerror(errno.ENOTDIR), str(self.folder))
        self.folder.mkdir(parents=True, exist_ok=True, mode=0o700)
        self._memory.make_folder()

    def _evict(self) -> None:
        """Make room: the entries that were not used for longest go."""
        ages = []
        for _, _, _, path in self._names():
            try:
                status = path.stat()
            except OSError:
                continue
            ages.append((status.st_mtime, status.st_size, path))
        left = sum(size for _, size, _ in ages)
        for _, size, path in sorted(ages):
            if left <= self.limit_bytes:
                break
            if removed(path):
                left -= size
        self._sweep(abandoned_s=_ABANDONED_S)

    def _sweep(self, *, abandoned_s: float) -> None:
        """Remove what killed processes left, and the memos of files that nobody asked for in a long time."""
        now = time.time()
        try:
            for path in self.folder.iterdir():
                if path.name.startswith(_UNFINISHED) and now - path.stat().st_mtime >= abandoned_s:
                    shutil.rmtree(path, ignore_errors=True)
        except OSError:
            return  # Another process sweeps.
        self._memory.thin()


class _Wanted:
    """Whether a detail is kept: those that answers ask for, and others until their time is used up."""

    def __init__(self, seconds: float) -> None:
        self._left = seconds
        self._last = time.perf_counter()
        self._is_counted = False

    def __call__(self, key: str) -> bool:
        now = time.perf_counter()
        if self._is_counted:
            self._left -= now - self._last
        self._last = now
        self._is_counted = key not in ASKED_FOR
        return not self._is_counted or self._left > 0


def _checksum(path: Path) -> str:
    """CRC-32 of a file: it finds damage, and a user's own cache has no other enemy."""
    from isal import isal_zlib

    value = 0
    with open(path, "rb") as file:
        while block := file.read(1 << 20):
            value = isal_zlib.crc32(block, value)
    return f"{value:08x}"
