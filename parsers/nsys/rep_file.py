"""Raw reports (``.nsys-rep``, ``.qdrep``): only Nsight Systems itself can read them, so it is asked to export.

The export is kept in the user's cache, without what it holds of the environment, and used again as long as the report
does not change.
"""

from __future__ import annotations

import hashlib
import os
import re
import shlex
import shutil
import sqlite3
import subprocess
import time
from pathlib import Path
from typing import TYPE_CHECKING, Final

from traceview.errors import UnreadableTraceError
from traceview.parsers.nsys.about import KEPT_KEYS, is_unread, understood
from traceview.parsers.nsys.identity import program_name
from traceview.parsers.nsys.sniffing import is_export
from traceview.parsers.nsys.tables import EVENT_TABLES, NAME_IDS, NVTX, STRINGS, quoted

if TYPE_CHECKING:
    from collections.abc import Callable

HEADER: Final = b"NVIDIA Tegra Profiler Report "

TIME_LIMIT_S: Final = 1800.0
"""An export of some gigabytes takes minutes; one that takes longer than this hangs."""

_WRITER: Final = re.compile(rb"^NVIDIA Tegra Profiler Report (\d{4}@\d+@\d+)@(\d+)")
_VERSION_SUFFIX: Final = re.compile(r"_V\d{1,3}$")
_PROCESS: Final = re.compile(r"^PROCESS_\d+:")
_KEYED: Final = ("META_DATA_EXPORT", "EXPORT_META_DATA", "META_DATA_CAPTURE", "TARGET_INFO_SYSTEM_ENV")
"""Tables of names and values; only rows of :data:`KEPT_KEYS` are kept."""

KEPT_TEXTS: Final[dict[str, tuple[str, ...]]] = {
    **dict.fromkeys(EVENT_TABLES, ()),
    **dict.fromkeys(_KEYED, ("name", "value")),
    NVTX: ("text",),
    STRINGS: ("value",),
    "TARGET_INFO_GPU": ("name",),
    "TARGET_INFO_CUDA_GPU": ("name",),
    "TARGET_INFO_CUDA_DEVICE": (),
    "MPI_RANKS": (),
    "TARGET_INFO_SESSION_START_TIME": (),
    "ANALYSIS_DETAILS": (),
    "PROCESSES": ("name",),
    "ThreadNames": (),
    "DIAGNOSTIC_EVENT": ("text",),
}
"""Tables that are kept of an export of our own, each with the columns whose texts are kept; of events that are only
counted none are."""


def is_report(path: Path) -> bool:
    """Whether a file starts as raw reports do."""
    with path.open("rb") as file:
        return file.read(len(HEADER)) == HEADER


def writer_version(path: Path) -> str | None:
    """Version of Nsight Systems that wrote a report, if its header says so (since 2024)."""
    with path.open("rb") as file:
        match = _WRITER.match(file.read(128))
    return None if match is None else match[1].decode().replace("@", ".")


def export_command(path: Path, target: Path) -> list[str]:
    """The command that exports a report, without the name of the program."""
    return ["export", "--type", "sqlite", "--force-overwrite", "true", "--output", str(target), str(path)]


def exported(path: Path, progress: Callable[[float], None] | None) -> Path:
    """An SQLite export of a raw report: the one beside it, the one in the cache, or a new one.

    Args:
        path: The report.
        progress: Called with the share that was done; an export counts as half of the work.

    Raises:
        UnreadableTraceError: there is no ``nsys``, or it failed; the message has the command to run.
    """
    beside = path.with_suffix(".sqlite")
    if _is_current(beside, path):
        return beside
    cached = _cache_path(path)
    if cached.is_file() and is_export(cached):
        return cached
    program = shutil.which("nsys")
    if program is None:
        raise _refusal(path, "and no nsys program is on PATH to export it")
    try:
        cached.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
    except OSError as error:
        raise _refusal(path, f"and {cached.parent} cannot be made to keep an export in ({error.strerror})") from None
    # Exported under another name first, so that a broken export is never taken for a whole one.
    target = cached.with_suffix(".part.sqlite")
    try:
        _run([program, *export_command(path.resolve(), target)], path, progress)
        if not is_export(target):
            raise _refusal(path, "and nsys exported nothing that can be read")
        _scrub(target)
        target.replace(cached)
    finally:
        target.unlink(missing_ok=True)
    return cached


def _is_current(export: Path, report: Path) -> bool:
    try:
        return export.stat().st_mtime_ns >= report.stat().st_mtime_ns and is_export(export)
    except OSError:
        return False


def _cache_path(path: Path) -> Path:
    status = path.stat()
    # What an older version kept of a report may lack tables that this one reads.
    identity = f"{path.resolve()}\0{status.st_size}\0{status.st_mtime_ns}\0{sorted(KEPT_TEXTS.items())}"
    try:
        root = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache")
    except RuntimeError:
        raise _refusal(path, "and without a home folder there is no place to keep an export of it in") from None
    digest = hashlib.sha256(identity.encode("utf-8", "surrogateescape")).hexdigest()
    return root / "traceview" / "nsys" / f"{digest[:32]}.sqlite"


def _run(command: list[str], path: Path, progress: Callable[[float], None] | None) -> None:
    started = time.monotonic()
    try:
        process = subprocess.Popen(  # noqa: S603  # the user's own nsys, with fixed arguments
            command, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
        )
    except OSError as error:
        raise _refusal(path, f"and nsys cannot be started: {error.strerror}") from None
    try:
        while process.poll() is None:
            taken = time.monotonic() - started
            if taken > TIME_LIMIT_S:
                raise _refusal(path, f"and nsys did not finish within {TIME_LIMIT_S:,.0f} s")
            if progress:
                # It does not say how far it is; the bar moves, ever more slowly, so that one sees it is alive.
                progress(0.5 * taken / (taken + 30))
            time.sleep(0.05)
    finally:
        if process.poll() is None:
            process.kill()
        process.wait()
    if process.returncode:
        raise _refusal(path, f"and nsys ended with status {process.returncode} (is it older than the report?)")


def _refusal(path: Path, why: str) -> UnreadableTraceError:
    version = writer_version(path)
    written = f" of version {version}" if version else ""
    target = path.with_suffix(".sqlite")
    command = shlex.join(["nsys", *export_command(path, target)])
    return UnreadableTraceError(
        "nsys-report",
        where=str(path),
        why=f"this is a raw Nsight Systems report{written}, {why}.",
        next_step=f"Run: {command} and give {target.name}.",
    )


def _scrub(export: Path) -> None:
    """Leave in an export of our own only what this reader uses.

    What is kept is named, not what is removed: a table or column that a later version adds may hold anything.
    """
    connection = sqlite3.connect(export)
    try:
        connection.execute("PRAGMA secure_delete=ON")
        listed = connection.execute(
            "SELECT name, sql, type FROM sqlite_master WHERE type IN ('table', 'view', 'trigger')"
        )
        tables = []
        with connection:
            for name, sql, sort in listed.fetchall():
                plain = _VERSION_SUFFIX.sub("", name)
                stored = sort == "table" and not sql.upper().startswith("CREATE VIRTUAL")
                if stored and _is_kept(connection, plain, name):
                    tables.append((plain, name))
                elif not name.startswith("sqlite_"):
                    connection.execute(f"DROP {sort} IF EXISTS {quoted(name)}")
            for plain, name in tables:
                _blank_texts(connection, name, KEPT_TEXTS.get(plain, ()))
            _scrub_rows(connection, tables)
        connection.execute("VACUUM")
    finally:
        connection.close()
    export.chmod(0o600)


def _is_kept(connection: sqlite3.Connection, plain: str, name: str) -> bool:
    """Tables that are read, and without their texts those of events that are only counted."""
    return plain in KEPT_TEXTS or is_unread(plain, _columns(connection, name))


def _columns(connection: sqlite3.Connection, table: str) -> list[str]:
    return [row[1] for row in connection.execute(f"PRAGMA table_info({quoted(table)})")]


def _blank_texts(connection: sqlite3.Connection, table: str, kept: tuple[str, ...]) -> None:
    """Empty every text and blob of a table outside the columns that are kept."""
    for column in map(quoted, (name for name in _columns(connection, table) if name not in kept)):
        connection.execute(
            f"UPDATE {quoted(table)} SET {column} = '' WHERE typeof({column}) IN ('text', 'blob') AND {column} != ''"  # noqa: S608
        )


def _scrub_rows(connection: sqlite3.Connection, tables: list[tuple[str, str]]) -> None:
    """Of the tables that hold private texts beside others, the others."""
    connection.create_function("named", 1, lambda name: _PROCESS.sub("", str(name)) in KEPT_KEYS)
    connection.create_function("program", 1, program_name)
    connection.create_function("understood", 1, understood)
    used = []
    for plain, name in tables:
        table, own = quoted(name), _columns(connection, name)
        if plain in _KEYED:
            connection.execute(f"DELETE FROM {table} WHERE NOT named(name)")  # noqa: S608
        elif plain == "PROCESSES" and "name" in own:
            connection.execute(f"UPDATE {table} SET name = program(name)")  # noqa: S608
        elif plain == "DIAGNOSTIC_EVENT" and "text" in own:
            connection.execute(f"UPDATE {table} SET text = understood(text)")  # noqa: S608
        used += [f"SELECT {quoted(key)} AS id FROM {table}" for key in NAME_IDS if key in own]  # noqa: S608
    for plain, name in tables:
        if plain == STRINGS:
            ids = " UNION ".join(used) or "SELECT NULL AS id"
            unused = f"id NOT IN (SELECT id FROM ({ids}) WHERE id IS NOT NULL)"  # noqa: S608
            connection.execute(f"DELETE FROM {quoted(name)} WHERE {unused}")  # noqa: S608
