"""The rare arguments in a timeline file: each is a column of its own, read when it is asked for."""

from __future__ import annotations

import os
import threading
import weakref
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from typing import TYPE_CHECKING, BinaryIO, Final

import polars as pl

from traceview.timeline_facts import UnfitFileError

if TYPE_CHECKING:
    from pathlib import Path

DETAIL: Final = "detail."
"""How the name of a column begins that holds a detail."""
Layout = tuple[bool, bool]
"""Of a detail: whether its values are text, and whether an event may have several."""


class SharedFile:
    """An open file that several readers use, so that it can be read even after somebody replaced or deleted it."""

    def __init__(self, path: Path) -> None:
        self._descriptor = os.open(path, os.O_RDONLY | getattr(os, "O_BINARY", 0))
        self._lock = threading.Lock()
        weakref.finalize(self, os.close, self._descriptor)

    @contextmanager
    def opened(self) -> Iterator[BinaryIO]:
        """The file from its start, for one reader at a time."""
        # A copy of a descriptor shares its position, hence the lock.
        with self._lock, os.fdopen(os.dup(self._descriptor), "rb") as file:
            file.seek(0)
            yield file

    def columns(self, names: list[str]) -> pl.DataFrame:
        """Some columns of it, read now."""
        with self.opened() as file:
            return pl.read_parquet(file, columns=names)


class FileDetails(Mapping[str, pl.DataFrame]):
    """Details by name; each is read when it is asked for."""

    def __init__(
        self,
        file: SharedFile,
        layout: dict[str, Layout | None],
        rest: Callable[[], Mapping[str, pl.DataFrame]] | None,
    ) -> None:
        self._file, self._layout, self._make_rest = file, layout, rest
        self._rest: Mapping[str, pl.DataFrame] | None = None
        self._ready: dict[str, pl.DataFrame] = {}

    def __getitem__(self, key: str) -> pl.DataFrame:
        if key not in self._ready:
            self._ready[key] = self.read(key)
        return self._ready[key]

    def read(self, key: str) -> pl.DataFrame:
        """The same without keeping it."""
        layout = self._layout[key]
        if layout is None:
            if self._rest is None:
                assert self._make_rest is not None
                self._rest = self._make_rest()
            return self._rest[key]
        text, several = layout
        dtype = pl.Categorical if text else pl.Int64
        column = self._file.columns([DETAIL + key]).to_series()
        if column.dtype != (pl.List(dtype) if several else dtype):
            raise UnfitFileError(f"detail {key!r} is {column.dtype}")
        ids = column.is_not_null().arg_true().cast(pl.UInt32)
        frame = pl.DataFrame({"id": ids, "value": column.drop_nulls()})
        return frame.explode("value") if several else frame

    def __iter__(self) -> Iterator[str]:
        return iter(self._layout)

    def __len__(self) -> int:
        return len(self._layout)
