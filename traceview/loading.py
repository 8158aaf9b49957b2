"""The public door: from paths to one :class:`~traceview.timeline.Timeline`."""

from __future__ import annotations

import os
import re
from collections import Counter
from dataclasses import replace
from typing import TYPE_CHECKING

from traceview import merging, sidecars, sniffing, sources
from traceview.count_words import count_words
from traceview.errors import StrictModeError, UnreadableTraceError, UsageError
from traceview.formats import FinishedFormat
from traceview.losses import loss_notes
from traceview.timeline import Count, ImportReport, Note, Timeline, Trust

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence
    from pathlib import Path

    from traceview.cache import Cache

    Progress = Callable[[float], None]


def load(
    path_or_paths: str | os.PathLike[str] | Iterable[str | os.PathLike[str]],
    *,
    strict: bool = False,
    progress: Progress | None = None,
    cache: Cache | bool = False,
) -> Timeline:
    """Read a trace, or the traces of several ranks, into one timeline.

    Args:
        path_or_paths: A file, a folder, a glob pattern, or several of them. A folder means itself if it is one trace
            (one file per table), else the traces directly in it, or, if it has none, those in the folders below.
        strict: Fail if the import had to skip or repair anything, or if a file is cut off.
        progress: Called with the share of the input that has been read, 0 to 1.
        cache: Keep what took long to read in the user's cache and open it from there as long as no file has changed;
            ``True`` for :func:`traceview.cache.user_cache`, or a :class:`traceview.cache.Cache` of your own.

    Returns:
        The timeline, with launches linked and steps marked. Its report says what was skipped, repaired or left out.

    Raises:
        UsageError: a path does not exist or may not be read.
        UnreadableTraceError: a file is no trace, or nothing could be read from it.
        StrictModeError: ``strict`` and the import was not clean.
    """
    paths = [path_or_paths] if isinstance(path_or_paths, (str, os.PathLike)) else list(path_or_paths)
    found = sources.find(paths, sniffing.installed_formats())
    if cache is True:
        from traceview.cache import user_cache

        keeper = user_cache()
    else:
        keeper = cache or None
    timeline = keeper.through(found, lambda: _read(found, progress)) if keeper else _read(found, progress)
    if progress:
        progress(1.0)
    if strict:
        require_clean(timeline.report)
    return timeline


def _read(found: sources.Found, progress: Progress | None) -> Timeline:
    """Parse, merge and link, or read what is all that already."""
    from traceview.linking import finish

    found = _finished_apart(found)
    if isinstance(found.traces[0].format, FinishedFormat):
        timeline = found.traces[0].format.parse(found.traces[0].path, run=0, progress=progress)
        return replace(timeline, report=timeline.report + _folder_report(found))
    timelines, report = _parse_all(found, progress)
    timeline = merging.merge(timelines)
    return finish(replace(timeline, report=timeline.report + report))


def _finished_apart(found: sources.Found) -> sources.Found:
    """A timeline file beside traces of a folder is most likely an export of one of them, and is left out."""
    finished = [source for source in found.traces if isinstance(source.format, FinishedFormat)]
    if not finished or len(found.traces) == 1:
        return found
    others = tuple(source for source in found.traces if source not in finished)
    if not others or any(source.named for source in finished):
        raise UsageError(
            "timeline-among-others",
            where=str(finished[0].path),
            why="this is a timeline that traceview wrote; it can only be loaded by itself.",
            next_step="Give it alone, or give the traces that it was made of.",
        )
    reasons = tuple((source.path, "traceview wrote it from a trace") for source in finished)
    return replace(found, traces=others, left_out=(*found.left_out, *reasons))


def _folder_report(found: sources.Found) -> ImportReport:
    """What was left out beside the traces."""
    report = ImportReport().with_notes(*_skip_notes(found.others))
    report = report.with_notes(*_left_out_notes(found.left_out))
    for path, why in found.unreadable:
        report = _without_file(report, path, why)
    return report


def require_clean(report: ImportReport) -> None:
    """Refuse a trace whose import was not clean.

    Raises:
        StrictModeError: lists each thing that was lost or repaired, with its count.
    """
    problems = [
        f"{count_words(kind)}: {count.n:,}" + (f" (e.g. {count.example})" if count.example else "")
        for kind, count in sorted(report.counts.items())
        if kind.startswith(("lost-", "repaired-")) and count.n
    ]
    if report.truncated:
        problems.insert(0, "the file is damaged" if report.damaged else "the file ends before its own end")
    if problems:
        raise StrictModeError(
            "not-clean",
            why=f"strict mode: the import was not clean: {'; '.join(problems)}.",
            next_step="Record the trace again, or drop --strict to use what could be read.",
        )


def _parse_all(found: sources.Found, progress: Progress | None) -> tuple[list[Timeline], ImportReport]:
    """Read the files one after another: reading several at once would multiply the peak of memory."""
    whole = sum(source.size for source in found.traces) or 1
    done = 0
    timelines: list[Timeline] = []
    known: dict[tuple[object, ...], str] = {}
    report = _folder_report(found)
    first_failure: UnreadableTraceError | None = None
    for source in found.traces:
        step = _share(progress, done / whole, source.size / whole) if progress else None
        done += source.size
        try:
            timeline = _parsed(source, len(timelines), step)
        except UnreadableTraceError as error:
            if source.named:
                raise
            first_failure = first_failure or error
            report = _without_file(report, source.path, error.why)
            continue
        recording = merging.recording_key(timeline)
        twin = known.get(recording) if recording is not None else None
        if twin is not None:
            text = f"{source.path.name} holds the same recording as {twin} and is counted once."
            report = report.with_notes(Note("duplicate-file", text))
            continue
        if recording is not None:
            known[recording] = timeline.runs[0].path.name
        timeline = sidecars.attach(timeline, source.path)
        # File by file: a rank that lost half of its work must not be hidden by the many that lost none.
        timelines.append(replace(timeline, report=timeline.report.with_notes(*loss_notes(timeline))))
    if first_failure and not timelines:
        raise first_failure
    return timelines, report


def _parsed(source: sources.Source, run: int, progress: Progress | None) -> Timeline:
    """Parse one file; one that went away, or cannot be read any more, is no reason to lose the others."""
    try:
        return source.format.parse(source.path, run=run, progress=progress)
    except OSError as error:
        raise UnreadableTraceError(
            "cannot-read",
            where=str(source.path),
            why=f"the file cannot be read: {error.strerror or error}.",
            next_step="Is it still there, and may it be read?",
        ) from error


def _without_file(report: ImportReport, path: Path, why: str) -> ImportReport:
    text = f"{path.name} could not be read and is left out: {why}"
    report = report.with_notes(Note("file-unreadable", text, Trust.POOR))
    return report.with_counts(lost_file=Count(1, path.name))


def _share(progress: Progress, before: float, part: float) -> Progress:
    """Turn the progress of one file into the progress of all."""
    return lambda share: progress(min(1.0, before + part * share))


def _left_out_notes(left_out: Sequence[tuple[Path, str]]) -> Iterable[Note]:
    """One remark for each reason: a folder may hold many runs."""
    by_reason: dict[str, list[str]] = {}
    for path, why in left_out:
        by_reason.setdefault(why, []).append(path.name)
    for why, names in by_reason.items():
        more = f" and {len(names) - 1} more" if len(names) > 1 else ""
        yield Note("trace-left-out", f"{names[0]}{more} was left out: {why}.")


def _skip_notes(skipped: Sequence[tuple[Path, str]]) -> Iterable[Note]:
    if not skipped:
        return
    # The head of the title is enough here: `JSON, but not a trace: ...` becomes `JSON`.
    kinds = Counter(re.split(r"[,:(]", why.removeprefix("this is ").rstrip("."))[0].strip() for _, why in skipped)
    listed = ", ".join(f"{n} x {kind}" if n > 1 else kind for kind, n in kinds.most_common(4))
    names = ", ".join(path.name for path, _ in skipped[:4]) + (" and more" if len(skipped) > 4 else "")
    files = "file is" if len(skipped) == 1 else "files are"
    yield Note("files-skipped", f"{len(skipped)} {files} left out as no trace ({names}): {listed}.")
