"""From what the user gave (a path, a list, a folder, a pattern) to the trace files it means."""

from __future__ import annotations

import glob
import os
import re
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Final

from traceview import sniffing
from traceview.errors import TraceviewError, UnreadableTraceError, UsageError
from traceview.formats import Choosing
from traceview.sidecars import is_sidecar

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from traceview.formats import Format

MOST_FILES: Final = 4096
"""A folder with more files than this below it is a mistake, not a trace."""


_UNREADABLE: Final = frozenset({"empty-file", "bad-gzip", "no-permission", "cannot-open"})
"""Codes of files that may well have been traces."""


@dataclass(frozen=True, slots=True)
class Source:
    """One trace (a file, or a folder that is one) and its parser. ``named``: the user gave this very path."""

    path: Path
    format: Format
    size: int
    named: bool


@dataclass(frozen=True, slots=True)
class Found:
    """Result of :func:`find`.

    Attributes:
        traces: The trace files.
        others: Files beside them that are no traces, each with what it is.
        unreadable: Files beside them that nothing can be said of (empty, damaged, no permission), with the reason.
        left_out: Traces beside them that their own format leaves out, with the reason.
    """

    traces: tuple[Source, ...]
    others: tuple[tuple[Path, str], ...]
    unreadable: tuple[tuple[Path, str], ...]
    left_out: tuple[tuple[Path, str], ...] = ()


def find(paths: Iterable[str | os.PathLike[str]], formats: Sequence[Format]) -> Found:
    """The trace files that ``paths`` mean, each once.

    A path must be a trace. A folder or a pattern means the traces in it; what else lies there is left out
    with a reason. A folder is searched below its first level only if its first level has no trace.

    Args:
        paths: Files, folders or glob patterns.
        formats: The installed parsers.

    Raises:
        UsageError: a path does not exist or may not be read, or nothing was given.
        UnreadableTraceError: a named file is no trace, or a folder or pattern has none.
    """
    traces: dict[Path, Source] = {}
    skipped: dict[Path, TraceviewError] = {}
    given = [os.fspath(path) for path in paths]
    if not given:
        raise UsageError("no-trace", why="no trace was given.", next_step="Give the path of a trace.")
    for text in given:
        if not text:
            raise UsageError(
                "empty-path",
                why="an empty path was given; it would mean the whole current folder.",
                next_step="Is a variable unset? Give . to read the current folder.",
            )
        path = Path(text)
        # Unlike those of pathlib, these functions say no where the system refuses to look (a folder that may not be
        # entered, a name that is too long); opening the file then says why.
        if os.path.isdir(path):
            if not _add_if_trace(path, formats, traces, named=True):
                _add_folder(path, formats, traces, skipped)
        elif not os.path.lexists(path) and glob.has_magic(text):
            matches = [Path(match) for match in sorted(glob.glob(text, recursive=True), key=_natural)]
            whole = [match for match in matches if os.path.isdir(match) and _add_if_trace(match, formats, traces)]
            files = [match for match in matches if _may_be_trace(match) and not _is_below(match, whole)]
            if files or not whole:
                _add_all(text, files, formats, traces, skipped, found=bool(whole))
        else:
            seen = sniffing.probe(path)
            parser = sniffing.recognise(seen, formats)
            traces.setdefault(path.resolve(), Source(path, parser, seen.size, named=True))
    left_out = _left_out(traces.values())
    unreadable = {path: error for path, error in skipped.items() if error.code in _UNREADABLE}
    return Found(
        traces=tuple(source for source in traces.values() if source.path not in left_out),
        left_out=tuple(left_out.items()),
        others=tuple((path, error.why) for path, error in skipped.items() if path not in unreadable),
        unreadable=tuple((path, error.why) for path, error in unreadable.items()),
    )


def _add_if_trace(folder: Path, formats: Sequence[Format], traces: dict[Path, Source], *, named: bool = False) -> bool:
    """Add a folder if all of it is one trace."""
    parser = sniffing.recognise_folder(folder, formats)
    if parser is None:
        return False
    size = sum(entry.stat().st_size for entry in folder.iterdir() if entry.is_file())
    traces.setdefault(folder.resolve(), Source(folder, parser, size, named=named))
    return True


def _may_be_trace(path: Path) -> bool:
    """Sidecars belong to the traces beside them."""
    return os.path.isfile(path) and not is_sidecar(path)


def _is_below(path: Path, folders: Iterable[Path]) -> bool:
    return any(path.is_relative_to(folder) for folder in folders)


def _left_out(sources: Iterable[Source]) -> dict[Path, str]:
    """Files that their format does not want beside the others; see :class:`traceview.formats.Choosing`."""
    by_format: dict[str, list[Source]] = {}
    for source in sources:
        if not source.named:
            by_format.setdefault(source.format.name, []).append(source)
    left_out: dict[Path, str] = {}
    for group in by_format.values():
        if isinstance(group[0].format, Choosing):
            left_out.update(group[0].format.choose([source.path for source in group]))
    return left_out


def _add_folder(
    folder: Path, formats: Sequence[Format], traces: dict[Path, Source], skipped: dict[Path, TraceviewError]
) -> None:
    try:
        entries = [entry for entry in folder.iterdir() if not entry.name.startswith(".")]
        first_level = [entry for entry in entries if _may_be_trace(entry)]
        whole = [entry for entry in entries if entry.is_dir() and _add_if_trace(entry, formats, traces)]
    except OSError as error:
        raise UsageError(
            "no-permission", where=str(folder), why=f"the folder cannot be listed: {error.strerror}."
        ) from None
    try:
        _add_all(str(folder), _in_order(first_level), formats, traces, skipped, found=bool(whole))
    except UnreadableTraceError:
        whole = []
        below = _files_below(folder, formats, traces, whole)
        if not below and not whole:
            raise
        _add_all(str(folder), below, formats, traces, skipped, found=bool(whole))


def _files_below(folder: Path, formats: Sequence[Format], traces: dict[Path, Source], whole: list[Path]) -> list[Path]:
    """Files below the first level. Folders that are traces are added instead, and listed in ``whole``."""
    files: list[Path] = []
    for root, folders, names in os.walk(folder):
        if Path(root) != folder and _add_if_trace(Path(root), formats, traces):
            whole.append(Path(root))
            folders[:] = []
            continue
        # In place, so that os.walk does not enter them.
        folders[:] = [name for name in folders if not name.startswith(".")]
        if Path(root) == folder:
            continue
        files += [Path(root, name) for name in names if not name.startswith(".")]
        if len(files) > MOST_FILES:
            raise UsageError(
                "too-many-files",
                where=str(folder),
                why=f"has no trace in it and more than {MOST_FILES} files below it.",
                next_step="Give the folder that holds the traces.",
            )
    return _in_order(path for path in files if _may_be_trace(path))


def _add_all(
    where: str,
    files: list[Path],
    formats: Sequence[Format],
    traces: dict[Path, Source],
    skipped: dict[Path, TraceviewError],
    *,
    found: bool = False,
) -> None:
    """Add the traces among ``files``; if there is none, and none was ``found`` before, say what they are instead."""
    reasons: list[tuple[Path, TraceviewError]] = []
    for path in files:
        try:
            seen = sniffing.probe(path)
            parser = sniffing.recognise(seen, formats)
        except (UsageError, UnreadableTraceError) as error:
            reasons.append((path, error))
        else:
            found = True
            traces.setdefault(path.resolve(), Source(path, parser, seen.size, named=False))
    if found or not files:
        skipped.update(reasons)
    if found:
        return
    if len(reasons) == 1:
        raise reasons[0][1]
    raise UnreadableTraceError(
        "no-trace-found",
        where=where,
        why=f"none of the {len(reasons)} files is a trace that can be read: {_first_reasons(reasons)}."
        if reasons
        else "there is no file.",
        next_step="Give the path of a trace, or of the folder that holds the traces of all ranks.",
    )


def _first_reasons(reasons: list[tuple[Path, TraceviewError]], show: int = 3) -> str:
    parts = [f"{path.name} {_after_this(error.why)}" for path, error in reasons[:show]]
    if len(reasons) > show:
        parts.append(f"{len(reasons) - show} more")
    return "; ".join(parts)


def _after_this(why: str) -> str:
    """``this is text.`` becomes ``is text``, to follow a file name."""
    return why.removeprefix("this ").removeprefix("the file ").rstrip(".")


def _in_order(files: Iterable[Path]) -> list[Path]:
    return sorted(files, key=lambda path: _natural(str(path)))


def _natural(text: str) -> list[tuple[int, int, str]]:
    """Sort key that puts ``rank2`` before ``rank10``."""
    return [(0, int(part), "") if part.isdigit() else (1, 0, part) for part in re.split(r"(\d+)", text)]
