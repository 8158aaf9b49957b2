"""A trace that PyTorch wrote, without what it says about the machine that it ran on."""

from __future__ import annotations

import gzip
import os
import re
from typing import TYPE_CHECKING, BinaryIO, Final, cast

if TYPE_CHECKING:
    from typing import IO

_CHUNK: Final = 1 << 20
_TAIL: Final = 1 << 12
"""What follows the events is the name of the file and a brace."""

_ABOUT_HOST: Final = re.compile(rb'\s*"(?:host_name|username|user)": "[^"]*",')
_EVENTS: Final = b'"traceEvents"'
_NAME: Final = re.compile(rb'"traceName": "[^"]*"')


def write_without_host(source: str, target: str, *, without_step: int | None = None) -> None:
    """Copy a Kineto file to its place, without the name of the host and the path it was first written to.

    Of the keys only those before the list of events, and the name behind it, are looked at. The target is there whole
    or not at all; a name that ends in ``.gz`` is compressed.

    Args:
        source: The file that the profiler wrote.
        target: Its place.
        without_step: Number of a step whose mark is left out: the profiler opens one whenever a step ends, and the
            last was never a step.
    """
    mark = None if without_step is None else _step_mark(without_step)
    unfinished = f"{target}.part"
    try:
        with open(source, "rb") as file, _opened(unfinished, target) as out:
            head = file.read(_CHUNK)
            about, events, rest = head.partition(_EVENTS)
            held = _ABOUT_HOST.sub(b"", about) + events + rest if events else head
            while chunk := file.read(_CHUNK):
                held = _without(mark, held)
                out.write(held[:-_TAIL])
                held = held[-_TAIL:] + chunk
            held = _without(mark, held)
            out.write(held[:-_TAIL])
            name = os.path.basename(target).encode("utf-8", "replace").replace(b"\\", b"").replace(b'"', b"")
            out.write(_NAME.sub(lambda _: b'"traceName": "' + name + b'"', held[-_TAIL:]))
        os.replace(unfinished, target)
    except BaseException:
        if os.path.exists(unfinished):
            os.unlink(unfinished)
        raise


def _step_mark(number: int) -> re.Pattern[bytes]:
    """The event of one step as PyTorch writes it (2.13, live), with the comma behind it."""
    return re.compile(
        rb'\{\s*"ph":\s*"X",\s*"cat":\s*"user_annotation",\s*"name":\s*"ProfilerStep#%d",[^{}]*'
        rb'(?:"args":\s*\{[^{}]*\}\s*)?\},\s*' % number
    )


def _without(mark: re.Pattern[bytes] | None, data: bytes) -> bytes:
    return data if mark is None else mark.sub(b"", data)


def _opened(path: str, target: str) -> BinaryIO | IO[bytes]:
    if target.endswith(".gz"):
        return cast("BinaryIO", gzip.open(path, "wb", compresslevel=6))
    return open(path, "wb")
