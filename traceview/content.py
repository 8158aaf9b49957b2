"""What a load depends on, as one short key: the content of its traces, what lies beside them, the code that reads."""

from __future__ import annotations

import contextlib
import functools
import hashlib
import json
import os
import stat
import sys
import threading
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import polars as pl

from traceview import __version__, schema, timeline_file
from traceview.sidecars import sidecar_of

if TYPE_CHECKING:
    from traceview.formats import Format
    from traceview.sources import Found, Source

_BESIDE = "beside:"


@dataclass(frozen=True, slots=True)
class Stamp:
    """What the file system says of a trace; as long as it says the same, the content is the same.

    Attributes:
        path: The trace, links resolved.
        files: For each file its name below ``path``, size, times of change (of content and of anything), and number.
            ``""`` is the trace itself; the name of its sidecar begins with ``"beside:"``.
        sidecar: What ``traceview.capture`` wrote beside the trace, if it is there.
    """

    path: Path
    files: tuple[tuple[str, int, int, int, int, int], ...]
    sidecar: Path | None = None

    @classmethod
    def of(cls, source: Source) -> Stamp:
        """Ask the file system about a trace, or about all files of one that is a folder."""
        root = source.path.resolve()
        paths = sorted(path for path in root.rglob("*") if path.is_file()) if root.is_dir() else [root]
        named = {path: path.relative_to(root).as_posix() if path != root else "" for path in paths}
        sidecar = sidecar_of(source.path) if source.path.name else None
        if sidecar is not None and os.path.lexists(sidecar):
            named[sidecar] = f"{_BESIDE}{sidecar.name}"
        else:
            sidecar = None
        files = []
        for path, name in named.items():
            try:
                status = path.stat()
            except OSError:
                status = None
            if status is None or not stat.S_ISREG(status.st_mode):
                files.append((name, -1, 0, 0, 0, 0))
                continue
            times = (status.st_mtime_ns, status.st_ctime_ns)
            files.append((name, status.st_size, *times, status.st_ino, status.st_dev))
        return cls(root, tuple(files), sidecar)

    def path_of(self, name: str) -> Path:
        """Where a file of :attr:`files` lies."""
        if self.sidecar is not None and name.startswith(_BESIDE):
            return self.sidecar
        return self.path / name if name else self.path

    @property
    def bytes(self) -> int:
        """Size of all its files."""
        return sum(max(file[1], 0) for file in self.files)

    @property
    def newest_ns(self) -> int:
        """When a file of it last changed, Unix time in ns."""
        return max((max(file[2], file[3]) for file in self.files), default=0)

    def as_json(self) -> list[list[str | int]]:
        """The same as JSON values, without the path of the trace."""
        return [list(file) for file in self.files]


class Hashing:
    """Digests (SHA-256) of the content of traces, made beside the reading of them.

    Args:
        stamps: The traces.
    """

    def __init__(self, stamps: list[Stamp]) -> None:
        self._stamps = stamps
        self._digests: list[str | None] = []
        self._stopped = False
        self._thread = threading.Thread(target=self._run, daemon=True)
        self._thread.start()

    def _run(self) -> None:
        for stamp in self._stamps:
            self._digests.append(self._of(stamp))

    def _of(self, stamp: Stamp) -> str | None:
        whole = hashlib.sha256()
        try:
            for name, size, *_ in stamp.files:
                if size < 0:  # A pipe would never end.
                    return None
                whole.update(f"{len(name)}:{name}:{size}:".encode("utf-8", "surrogateescape"))
                with open(stamp.path_of(name), "rb") as file:
                    while block := file.read(1 << 20):
                        if self._stopped:
                            return None
                        whole.update(block)
        except OSError:
            return None
        return whole.hexdigest()

    def stop(self) -> None:
        """Nobody needs the digests."""
        self._stopped = True

    def result(self) -> list[str | None]:
        """One digest for each stamp, when all are made; ``None`` for a trace that cannot be read."""
        self._thread.join()
        return self._digests


def load_key(found: Found, digests: list[str]) -> str:
    """Everything that the timeline depends on."""
    traces = [
        (source.path.name, source.format.name, source.named, digest)
        for source, digest in zip(found.traces, digests, strict=True)
    ]
    beside = [[(str(path), why) for path, why in part] for part in (found.others, found.unreadable, found.left_out)]
    formats = {source.format.name: _code_of(source.format) for source in found.traces}
    versions = (__version__, pl.__version__, schema.SCHEMA_VERSION, timeline_file.VERSION)
    text = json.dumps([traces, beside, formats, _own_code(), versions])
    return hashlib.sha256(text.encode()).hexdigest()[:32]


@functools.cache
def _own_code() -> list[tuple[str, int, int]]:
    """Asked once: what counts is the code that this process runs, not what is written over it meanwhile."""
    here = Path(__file__).parent
    return [*_files(here), *_files(here / "knowledge")]


def _code_of(known: Format) -> list[tuple[str, int, int]]:
    """The files of a parser: its version, whoever wrote it and however it is installed."""
    return _code_of_module(type(known).__module__)


@functools.cache
def _code_of_module(name: str) -> list[tuple[str, int, int]]:
    path = getattr(sys.modules.get(name), "__file__", None)
    if path is None:
        return []
    if os.path.basename(path) == "__init__.py":
        return _files(Path(path).parent)
    try:
        status = os.stat(path)
    except OSError:  # In a zip archive.
        return [(path, 0, 0)]
    return [(os.path.basename(path), status.st_size, status.st_mtime_ns)]


def _files(folder: Path) -> list[tuple[str, int, int]]:
    """The files of a folder of code, by name, size and time."""
    found = []
    try:
        with os.scandir(folder) as entries:
            for entry in entries:
                # An editor's unfinished file may be gone again.
                with contextlib.suppress(FileNotFoundError):
                    if entry.is_file():
                        status = entry.stat()
                        found.append((entry.name, status.st_size, status.st_mtime_ns))
    except OSError:  # In a zip archive.
        return [(str(folder), 0, 0)]
    return sorted(found)
