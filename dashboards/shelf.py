"""The traces that are open: read and analysed once each, in the background, the last few kept.

A trace is known by what its files hold, not by where they lie: the same content is never read twice, and a link
with its id works as long as the server has it.
"""

from __future__ import annotations

import hashlib
import itertools
import os
import threading
from collections import OrderedDict
from dataclasses import dataclass, field
from enum import StrEnum
from functools import cached_property
from typing import TYPE_CHECKING, Final

from traceview import sniffing, sources
from traceview.dashboards.preload import preload
from traceview.dashboards.uploads import is_upload
from traceview.errors import TraceviewError, UsageError

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from traceview.expectations.pieces import Pieces
    from traceview.gate import CheckResult
    from traceview.partition import Partition
    from traceview.report import Report
    from traceview.timeline import Timeline

MOST_OPEN: Final = 3
"""Analysed traces kept in memory; the one not used for longest goes first."""

MOST_KNOWN: Final = 50
"""Traces whose files are remembered, so that one that was let go can be read again."""

_BLOCK: Final = 1 << 20
_ID_DIGITS: Final = 16


class State(StrEnum):
    """How far a trace is."""

    WORKING = "working"
    READY = "ready"
    FAILED = "failed"
    LEFT = "left"


class _LeftError(Exception):
    """The user does not want the trace any more."""


class Opened:
    """A trace and what was found out about it; what costs time is found out once, when first asked for.

    Attributes:
        id: Its content, as 16 hexadecimal digits.
        title: Name of its file, or of the first of several.
        timeline: The trace itself.
        report: What ``traceview report`` says.
        check: What ``traceview check-dispatch`` says without expectations.
    """

    def __init__(self, trace_id: str, title: str, timeline: Timeline, report: Report, check: CheckResult) -> None:
        self.id = trace_id
        self.title = title
        self.timeline = timeline
        self.report = report
        self.check = check
        self._lock = threading.RLock()

    def prepare(self) -> None:
        """Find out what the first page needs, so that no reader waits for it there."""
        _ = self.partition

    @cached_property
    def pieces(self) -> Pieces:
        """The trace as expectations see it."""
        from traceview.expectations.pieces import Pieces

        with self._lock:
            return Pieces(self.timeline, self.check.table)

    @cached_property
    def partition(self) -> Partition | None:
        """The wall time of each steady step by stage; ``None`` where no stage or step is known."""
        from traceview.partition import partition
        from traceview.stages import assign_stages

        with self._lock:
            if self.report.time is None or self.report.stages is None or self.report.stages.stages is None:
                return None
            return partition(assign_stages(self.timeline), self.report.time.table.steady)


@dataclass(slots=True)
class Job:
    """The reading of one trace.

    Attributes:
        id: Of the trace.
        title: Name of its file, or of the first of several.
        paths: Where it lies.
        named: Whoever opened it chose the title; else it is the first file that was read.
        state: How far it is.
        phase: What is being done, in words.
        share: Part of the files that has been read, 0 to 1.
        report: Where the time went, known before what ran is judged; ``None`` until then, and once it is ready.
        opened: The result, once it is ready.
        error: What went wrong, one line each.
        number: Which one it is of all that were opened, from 0.
    """

    id: str
    title: str
    paths: tuple[str, ...]
    named: bool = False
    state: State = State.WORKING
    phase: str = "Waiting for another trace"
    share: float = 0.0
    report: Report | None = None
    opened: Opened | None = None
    error: tuple[str, ...] = ()
    number: int = 0
    done: threading.Event = field(default_factory=threading.Event)
    leave: threading.Event = field(default_factory=threading.Event)


class Shelf:
    """Opens traces, one after another, and keeps the last few. Safe to use from several sessions."""

    def __init__(self, most: int = MOST_OPEN) -> None:
        self._most = most
        self._jobs: OrderedDict[str, Job] = OrderedDict()
        self._lock = threading.RLock()
        self._opened = itertools.count()
        # Two traces read at once would need twice the memory and come no sooner.
        self._turn = threading.Lock()

    def open(self, paths: Sequence[str], *, title: str | None = None) -> Job:
        """Start to read a trace, or find it read already.

        Args:
            paths: Its files or folders.
            title: What to call it, if not by its first file.

        Raises:
            UsageError: a file does not exist or may not be read.
            UnreadableTraceError: none of them is a trace.
        """
        trace_id = content_id(paths)
        with self._lock:
            job = self._jobs.get(trace_id)
            if job is None or job.state in {State.FAILED, State.LEFT} or _let_go(job):
                name = title or os.path.basename(os.path.normpath(paths[0]))
                number = next(self._opened) if job is None else job.number
                self._start(Job(trace_id, name, tuple(paths), named=title is not None, number=number))
            return self._touch(trace_id)

    def get(self, trace_id: str) -> Job | None:
        """The job of a trace that was opened before; one that was let go since is read again."""
        with self._lock:
            job = self._jobs.get(trace_id)
            if job is None:
                return None
            if _let_go(job):
                if content_id_or_none(job.paths) != trace_id:
                    del self._jobs[trace_id]
                    return None
                self._start(Job(job.id, job.title, job.paths, job.named, number=job.number))
            return self._touch(trace_id)

    def leave(self, trace_id: str) -> None:
        """Stop reading a trace."""
        with self._lock:
            job = self._jobs.get(trace_id)
            if job is not None and job.state is State.WORKING:
                job.leave.set()
                job.state = State.LEFT
                job.done.set()

    def forget(self, trace_id: str) -> None:
        """Let go of a trace and of where its files lie."""
        with self._lock:
            self.leave(trace_id)
            self._jobs.pop(trace_id, None)

    @property
    def jobs(self) -> tuple[Job, ...]:
        """All known traces, last used first."""
        with self._lock:
            return tuple(reversed(self._jobs.values()))

    def _touch(self, trace_id: str) -> Job:
        self._jobs.move_to_end(trace_id)
        while len(self._jobs) > MOST_KNOWN:
            self._jobs.popitem(last=False)
        return self._jobs[trace_id]

    def _start(self, job: Job) -> None:
        preload()
        self._jobs[job.id] = job
        threading.Thread(target=self._work, args=(job,), name=f"trace-{job.id}", daemon=True).start()

    def _work(self, job: Job) -> None:
        try:
            with self._turn:
                _analyse(job)
        except _LeftError:
            pass
        except TraceviewError as error:
            self._end(job, State.FAILED, error.lines)
        except MemoryError:
            self._end(job, State.FAILED, ("out of memory. Give fewer files at once, or record fewer steps.",))
        except BaseException as error:  # noqa: BLE001 - Polars raises panics of its Rust part as BaseException
            self._end(job, State.FAILED, (defect(error),))
        else:
            self._end(job, State.READY, ())

    def _end(self, job: Job, state: State, error: tuple[str, ...]) -> None:
        with self._lock:
            if job.state is State.WORKING:
                job.state, job.error = state, error
            job.report = None
            if self._jobs.get(job.id) is job:
                # Nobody has seen it yet, however many were looked at meanwhile.
                self._jobs.move_to_end(job.id)
            ready = [one for one in self._jobs.values() if one.opened is not None]
            for one in ready[: max(0, len(ready) - self._most)]:
                one.opened = None
            job.done.set()


def _let_go(job: Job) -> bool:
    """It was read, and had to make room for others."""
    return job.state is State.READY and job.opened is None


def _analyse(job: Job) -> None:
    from traceview.gate import check
    from traceview.loading import load
    from traceview.report import report
    from traceview.rules.base import Facts

    def progress(share: float) -> None:
        job.share = share
        if job.leave.is_set():
            raise _LeftError

    job.phase = "Reading"
    progress(0.0)
    # An upload is to be gone when its session ends, so nothing of it may stay in the cache.
    timeline = load(list(job.paths), progress=progress, cache=not any(map(is_upload, job.paths)))
    job.phase = "Accounting for the time"
    progress(1.0)
    facts = Facts.of(timeline)
    found = report(timeline, facts=facts)
    if not job.named:
        # Only now it is known which files of a folder are traces.
        job.title = os.path.basename(found.trace.files[0])
    job.report = found
    job.phase = "Judging what ran"
    progress(1.0)
    judged = check(timeline, facts=facts)
    opened = Opened(job.id, job.title, timeline, found, judged)
    job.phase = "Cutting the steps by stage"
    progress(1.0)
    opened.prepare()
    progress(1.0)
    job.opened = opened


def defect(error: BaseException) -> str:
    """What is said of an error that is ours."""
    first_line = next(iter(str(error).splitlines()), "")
    return (
        f"defect in traceview ({type(error).__name__}: {first_line}); please report it with the output of "
        "`traceview report TRACE --debug`."
    )


def content_id_or_none(paths: Sequence[str]) -> str | None:
    """:func:`content_id`, ``None`` if the files are gone."""
    try:
        return content_id(paths)
    except TraceviewError:
        return None


def content_id(paths: Sequence[str]) -> str:
    """Name the traces that some paths mean by what they hold: 16 hexadecimal digits of a SHA-256.

    Args:
        paths: Files, folders or patterns.

    Raises:
        UsageError: there is no such file, or it may not be read.
        UnreadableTraceError: none of them is a trace.
    """
    found = sources.find(list(paths), sniffing.installed_formats())
    digests = []
    for path in (file for source in found.traces for file in _files(source.path)):
        digest = hashlib.sha256()
        try:
            with open(path, "rb") as file:
                while block := file.read(_BLOCK):
                    digest.update(block)
        except OSError as error:
            raise UsageError("unreadable", where=str(path), why=f"cannot be read: {error.strerror}.") from None
        digests.append(digest.hexdigest())
    if len(digests) == 1:
        return digests[0][:_ID_DIGITS]
    return hashlib.sha256("\n".join(sorted(digests)).encode()).hexdigest()[:_ID_DIGITS]


def _files(path: Path) -> list[Path]:
    return sorted(one for one in path.iterdir() if one.is_file()) if path.is_dir() else [path]
