"""PyTorch and cuDNN version numbers: parse, compare, and ask whether a fact holds for one."""

from __future__ import annotations

import re
from typing import Final

Version = tuple[int, ...]
"""Numeric release parts, most significant first: ``(2, 9, 1)``."""

_NUMBERS: Final = re.compile(r"\s*v?(\d{1,6}(?:\.\d{1,6}){0,3})")


def parse_version(text: str) -> Version | None:
    """The numeric release of a version text.

    Args:
        text: ``"2.9"``, ``"2.9.1+cu128"``, ``"v2.10.0a0+git1a2b3c"``. What follows the numbers is ignored.

    Returns:
        The numbers, or ``None`` if the text does not start with one.
    """
    match = _NUMBERS.match(text)
    return tuple(int(part) for part in match[1].split(".")) if match else None


def parse_cudnn(text: str) -> Version | None:
    """A cuDNN version from ``"9.10.2"`` or from the one-number form that PyTorch reports (``"91002"``, ``"8907"``)."""
    version = parse_version(text)
    if version is None or len(version) > 1 or version[0] < 1000:
        return version
    number = version[0]
    # Since 9.0 a minor version has two digits (91002 is 9.10.2); before, one (8907 is 8.9.7).
    base = 10_000 if number >= 90_000 else 1_000
    return (number // base, number % base // 100, number % 100)


def version_text(version: Version) -> str:
    """The usual spelling, ``"2.9.1"``."""
    return ".".join(str(part) for part in version)


def within(version: Version, since: Version | None, until: Version | None) -> bool:
    """Whether ``since <= version <= until``; an ``until`` of ``2.13`` includes 2.13.1.

    A version that is shorter than the bound stands for its first release: ``2.5`` is 2.5.0.
    """
    padded = (*version, 0, 0, 0)
    if since is not None and padded[: len(since)] < since:
        return False
    return until is None or padded[: len(until)] <= until
