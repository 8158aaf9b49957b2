"""Blocks of plain events through the compiled scanner ``_scan``, when the installation has it.

The scanner is an accelerator and nothing more: it reads only blocks with nothing to repair, and what it yields is the
same as what the portable code yields. Where it was not built, or gives up on a block, :mod:`.block` reads the block.
"""

from __future__ import annotations

import threading
from importlib import import_module
from typing import TYPE_CHECKING, Final

import numpy as np
import polars as pl

from .numbers import PAD
from .pieces import Piece, codes_of
from .raw import INT_ARGS, NULL_CODE
from .values import decode_string

_scan: ModuleType | None
try:
    _scan = import_module(f"{__package__}._scan")
except ImportError:  # Installed where no C compiler was.
    _scan = None

if TYPE_CHECKING:
    from collections.abc import Callable
    from types import ModuleType

    from numpy.typing import NDArray

    from .tally import Tally

AVAILABLE: Final = _scan is not None
_INT_KEYS: Final = b"".join(key.encode() + b"\0" for key in sorted(INT_ARGS))
_REPAIRS: Final = ("", "repaired-backslash", "repaired-surrogate")
_UNSOUND: Final = 1
_MOST_REMEMBERED: Final = 1 << 18
"""Texts remembered from block to block; then all are forgotten, so that memory stays bounded."""


class _Codes:
    """Codes of Categorical of the texts of one file, each understood once. Threads share it.

    Args:
        understand: Gives the text that the bytes in the file mean, and a flag that comes back with its code.
    """

    def __init__(self, understand: Callable[[str], tuple[str, int]]) -> None:
        self._understand = understand
        self._met: dict[bytes, tuple[int, int]] = {}
        self._lock = threading.Lock()

    def of(self, raw: list[bytes]) -> tuple[NDArray[np.uint32], NDArray[np.uint8]]:
        """Codes and flags of texts that are different from each other."""
        met = self._met
        fresh = [text for text in raw if text not in met]
        if fresh:
            understood = [self._understand(text.decode()) for text in fresh]
            codes = codes_of(pl.Series([text for text, _ in understood], dtype=pl.String)).tolist()
            added = dict(zip(fresh, zip(codes, (flag for _, flag in understood), strict=True), strict=True))
            with self._lock:
                if len(self._met) > _MOST_REMEMBERED:
                    self._met = {}  # A new one: another thread may be reading the old one.
                self._met.update(added)
            met = {**{text: met[text] for text in raw if text in met}, **added}
        pairs = [met[text] for text in raw]
        return np.array([code for code, _ in pairs], np.uint32), np.array([flag for _, flag in pairs], np.uint8)


class PlainTexts:
    """What the blocks of one file that were plain taught about its texts.

    Args:
        is_sound: Whether a JSON text of an argument can be kept as it is.
    """

    def __init__(self, is_sound: Callable[[str], bool]) -> None:
        self.names = _Codes(_understand_name)
        self.arguments = _Codes(lambda raw: (raw, 0 if is_sound(raw) else _UNSOUND))
        self.phases = codes_of(pl.Series([chr(code) for code in range(128)], dtype=pl.String))


def _understand_name(raw: str) -> tuple[str, int]:
    text, kind = decode_string(raw)
    return text, _REPAIRS.index(kind or "")


def scan_block(block: bytes, texts: PlainTexts, tally: Tally) -> Piece | None:
    """Read a block of plain events; ``None`` if the scanner is not there or the block is not plain.

    Args:
        block: As for :func:`.block.read_block`.
        texts: Codes of the texts met in earlier blocks.
        tally: Takes the repairs of names.
    """
    if _scan is None or not _is_utf8(block):
        return None
    found = _scan.scan(block, PAD, len(block) - PAD, _INT_KEYS)
    if found is None:
        return None
    height, phases, ts, dur, pid, tid, flow, cat, name, names, labels, keys, tokens, arguments = found
    token_codes, flags = texts.arguments.of(_texts(block, tokens))
    if flags.any():
        return None
    raw_names = _texts(block, names)
    name_codes, repairs = texts.names.of(raw_names)
    cat_at, name_at = np.frombuffer(cat, np.uint32), np.frombuffer(name, np.uint32)
    if repairs.any():
        for which in (cat_at, name_at):
            _count_repairs(raw_names, repairs, which, tally)
    int_args, text_args = _arguments(_texts(block, keys), arguments, token_codes)
    return Piece(
        height=height,
        texts={
            "ph": texts.phases[np.frombuffer(phases, np.uint8)],
            "cat": _gathered(name_codes, cat_at),
            "name": _gathered(name_codes, name_at),
        },
        numbers={
            "ts_ns": np.frombuffer(ts, np.int64),
            "dur_ns": np.frombuffer(dur, np.int64),
            # Labels are numbered anew for the whole file, in place, which the bytes of the scanner do not allow.
            "pid": np.frombuffer(pid, np.int64).copy() if labels else np.frombuffer(pid, np.int64),
            "tid": np.frombuffer(tid, np.int64).copy() if labels else np.frombuffer(tid, np.int64),
            "flow_id": np.frombuffer(flow, np.int64).copy() if labels else np.frombuffer(flow, np.int64),
        },
        int_args=int_args,
        text_args=text_args,
        labels=[decode_string(text.decode())[0] for text in _texts(block, labels)],
    )


def _is_utf8(block: bytes) -> bool:
    if block.isascii():
        return True
    try:
        block.decode()
    except UnicodeDecodeError:
        return False
    return True


def _texts(block: bytes, spans: bytes) -> list[bytes]:
    pairs = np.frombuffer(spans, np.uint32).reshape(-1, 2)
    return [block[start : start + length] for start, length in pairs.tolist()]


def _gathered(codes: NDArray[np.uint32], at: NDArray[np.uint32]) -> NDArray[np.uint32]:
    """Codes of the numbered texts; the number that stands for none gives the code that stands for none."""
    padded = np.append(codes, np.uint32(NULL_CODE))
    return padded[np.minimum(at, len(codes))]


def _arguments(
    keys: list[bytes], arguments: tuple[bytes, bytes, bytes], token_codes: NDArray[np.uint32]
) -> tuple[
    dict[str, tuple[NDArray[np.uint32], NDArray[np.int64]]], dict[str, tuple[NDArray[np.uint32], NDArray[np.uint32]]]
]:
    """The arguments by name: those that are whole numbers, and those that are kept as text."""
    sizes, events, values = arguments
    event, value = np.frombuffer(events, np.uint32), np.frombuffer(values, np.int64)
    bounds = np.concatenate(
        (np.zeros(1, np.int64), np.cumsum(np.frombuffer(sizes, np.uint32), dtype=np.int64))
    ).tolist()
    int_args, text_args = {}, {}
    for number, key in enumerate(keys):
        name = key.decode()
        first, middle, last = bounds[2 * number : 2 * number + 3]
        if middle > first:
            int_args[name] = (event[first:middle], value[first:middle])
        if last > middle:
            text_args[name] = (event[middle:last], token_codes[value[middle:last]])
    return int_args, text_args


def _count_repairs(raw: list[bytes], repairs: NDArray[np.uint8], used: NDArray[np.uint32], tally: Tally) -> None:
    """Count the events whose names had to be repaired, by kind."""
    uses = np.bincount(used[used != NULL_CODE], minlength=len(raw))
    for flag in np.unique(repairs[(repairs > 0) & (uses > 0)]).tolist():
        affected = np.flatnonzero((repairs == flag) & (uses > 0))
        first = affected[np.argmin([int(np.flatnonzero(used == number)[0]) for number in affected])]
        tally.add(_REPAIRS[flag], raw[first].decode(), int(uses[affected].sum()))
