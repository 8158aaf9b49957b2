"""What a check holds a test to: the call, else the marker, else the command line, else the ini file."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, TypeAlias

from traceview.errors import UsageError
from traceview.pytest_plugin.options import option, option_path

if TYPE_CHECKING:
    import pytest

    from traceview.expectations.model import Expectations

Expect: TypeAlias = "str | os.PathLike[str] | Mapping[str, Any]"
"""A path of a dispatch.toml, or its content as a dict."""

_KEYS: Final = ("expect", "inconclusive", "torch", "cudnn")


@dataclass(frozen=True, slots=True)
class Place:
    """Where a test states its expectations.

    Attributes:
        path: The file, relative to the working directory if it is in it.
        line: The line.
    """

    path: str
    line: int


@dataclass(frozen=True, slots=True)
class Settings:
    """What one check goes by.

    Attributes:
        expectations: What must hold, ``None`` for the built-in policy alone.
        inconclusive: ``"fail"`` or ``"warn"``.
        torch: PyTorch version, if stated.
        cudnn: cuDNN version, if stated.
    """

    expectations: Expectations | None
    inconclusive: str
    torch: str | None
    cudnn: str | None


def settings_of(request: pytest.FixtureRequest, place: Place, **given: Any) -> Settings:
    """Put together what a call says and what it leaves out.

    Args:
        request: Of the test.
        place: Where the call is.
        given: Arguments of the call, ``None`` where it says nothing.

    Raises:
        UsageError: an argument of the call or of the marker makes no sense.
        ExpectationsError: the expectations cannot be used.
    """
    marked, marker_place = _marked(request)
    config = request.config
    expectations: Expectations | None
    if given.get("expect") is not None:
        expectations = _expectations(given["expect"], place, config)
    elif marked.get("expect") is not None:
        expectations = _expectations(marked["expect"], marker_place, config)
    else:
        path = option_path(config, "expect")
        expectations = _expectations(path, place, config) if path else None
    chosen = {key: given.get(key) if given.get(key) is not None else marked.get(key) for key in _KEYS[1:]}
    inconclusive = chosen["inconclusive"] or option(config, "inconclusive") or "fail"
    if inconclusive not in {"fail", "warn"}:
        raise UsageError("bad-argument", why=f'inconclusive must be "fail" or "warn", not {inconclusive!r}.')
    return Settings(expectations, inconclusive, _version("torch", chosen["torch"]), _version("cudnn", chosen["cudnn"]))


def shown_path(path: str) -> str:
    """A path relative to the working directory, if it is in it."""
    absolute, folder = Path(os.path.abspath(path)), Path.cwd()
    return str(absolute.relative_to(folder) if absolute.is_relative_to(folder) else absolute)


def _expectations(expect: Any, place: Place, config: pytest.Config) -> Expectations:
    """Read a file, which is relative to pytest's root folder, or take a dict."""
    from traceview.expectations.reading import expectations_of, read_expectations

    if isinstance(expect, Mapping):
        return expectations_of(expect, path=place.path, line=place.line)
    if isinstance(expect, str | os.PathLike):
        path = os.fsdecode(os.fspath(expect))
        return read_expectations(shown_path(os.path.join(config.rootpath, os.path.expanduser(path))))
    raise UsageError(
        "bad-argument",
        where=f"{place.path}:{place.line}",
        why=f"expect must be the path of a dispatch.toml or a dict of the same shape, not {type(expect).__name__}.",
    )


def _marked(request: pytest.FixtureRequest) -> tuple[dict[str, Any], Place]:
    """Arguments of the markers of a test, the closest one first, and where the test stands."""
    path, line, _ = request.node.reportinfo()
    place = Place(shown_path(os.fspath(path)), (line or 0) + 1)
    found: dict[str, Any] = {}
    for marker in request.node.iter_markers("dispatch"):
        unknown = [
            *("a value without a name" for _ in marker.args),
            *(key for key in marker.kwargs if key not in _KEYS),
        ]
        if unknown:
            raise UsageError(
                "bad-marker",
                where=f"{place.path}:{place.line}",
                why=f"the marker dispatch takes {', '.join(f'{key}=' for key in _KEYS)}, not {unknown[0]}.",
            )
        for key, value in marker.kwargs.items():
            if found.get(key) is None:
                found[key] = value
    return found, place


def _version(name: str, value: Any) -> str | None:
    from traceview.expectations.versions import is_version

    if value is not None and not (isinstance(value, str) and is_version(value)):
        raise UsageError("bad-argument", why=f'{name} must be a version such as "2.9" or "2.9.1", not {value!r}.')
    return value
