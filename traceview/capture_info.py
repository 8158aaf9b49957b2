"""What ``traceview.capture`` wrote down about a recording, read without trust.

The document stands in the trace itself under the key ``traceview`` (PyTorch), or beside it in
``<trace>.traceview.json``. Both are input like any other: bounded, typed, and dropped part by part where wrong.
``docs/capture.md`` describes every key.
"""

from __future__ import annotations

import json
import math
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Any, Final, TypeAlias

SCHEMA: Final = "traceview.capture/1"
KEY: Final = "traceview"
"""Top-level key of a Kineto file that holds the document."""
SUFFIX: Final = ".traceview.json"
"""What follows the name of a trace in the name of its sidecar."""
MOST_BYTES: Final = 1 << 18
"""A sidecar is a few kilobytes; one that is larger than this is not read."""

MARK_PREFIX: Final = "traceview.stage:"
"""What an explicit mark of a stage starts with: an annotation (``record_function``, NVTX range, ``TraceAnnotation``)
named ``traceview.stage:denoise`` marks the stage ``denoise``."""

_MOST_ENTRIES: Final = 64
_MOST_TEXT: Final = 200
_NAME: Final = re.compile(r"[A-Za-z][\w.\- ]{0,59}")
_SESSION: Final = re.compile(r"[0-9a-f]{8,64}")
_LARGEST: Final = 2**63

Setting: TypeAlias = bool | int | float | str | tuple[str, ...] | None
"""One recorded value."""


@dataclass(frozen=True, slots=True)
class CaptureInfo:
    """Conditions of a recording that no trace format holds.

    Attributes:
        session: Unique id of the recording.
        framework: ``"torch"`` or ``"jax"``.
        versions: Package or library to version.
        gpus: Product names of the GPUs that the process saw.
        settings: Switches of the framework by name (``"sdpa.flash"``, ``"deterministic"``), see ``docs/capture.md``.
        changed: Settings that did not stay the same while the trace was recorded; their value is the last one.
        contract: What the user says was measured: model, dtype, batch, ….
        warmup_calls: Calls or steps before the first recorded one.
        steady: Whether they went on until nothing compiled any more and the time stayed the same; ``None``: nobody
            looked.
        steps: Recorded steps.
    """

    session: str | None = None
    framework: str | None = None
    versions: Mapping[str, str] = field(default_factory=dict)
    gpus: tuple[str, ...] = ()
    settings: Mapping[str, Setting] = field(default_factory=dict)
    changed: tuple[str, ...] = ()
    contract: Mapping[str, Setting] = field(default_factory=dict)
    warmup_calls: int | None = None
    steady: bool | None = None
    steps: int | None = None

    def __post_init__(self) -> None:
        for name in ("versions", "settings", "contract"):
            object.__setattr__(self, name, MappingProxyType(dict(getattr(self, name))))

    def document(self) -> dict[str, Any]:
        """The document, as :func:`read_document` takes it."""
        return {
            "schema": SCHEMA,
            "session": self.session,
            "framework": self.framework,
            "versions": dict(self.versions),
            "gpus": list(self.gpus),
            "settings": {name: _as_json(value) for name, value in self.settings.items()},
            "changed": list(self.changed),
            "contract": {name: _as_json(value) for name, value in self.contract.items()},
            "warmup": {"calls": self.warmup_calls, "steady": self.steady},
            "steps": self.steps,
        }


def _as_json(value: Setting) -> Any:
    return list(value) if isinstance(value, tuple) else value


@dataclass(frozen=True, slots=True)
class ReadCapture:
    """What became of a document: ``info`` is ``None`` if it is none of ours; ``problem`` says what was left out."""

    info: CaptureInfo | None
    problem: str = ""


def read_text(data: bytes) -> ReadCapture:
    """Read the bytes of a sidecar."""
    if len(data) > MOST_BYTES:
        return ReadCapture(None, f"it is larger than {MOST_BYTES // 1024} KiB")
    try:
        return read_document(json.loads(data))
    except (ValueError, RecursionError):
        return ReadCapture(None, "it is not valid JSON")


def read_document(content: object) -> ReadCapture:
    """Read a document that is parsed already. Parts that are wrong are left out and named."""
    if not isinstance(content, Mapping):
        return ReadCapture(None, "it is no JSON object")
    schema = content.get("schema")
    if schema != SCHEMA:
        named = f"of schema {schema[:60]!r}" if isinstance(schema, str) else "without a schema"
        return ReadCapture(None, f"it is {named}, this version reads {SCHEMA}")
    reader = _Reader(content)
    info = CaptureInfo(
        session=reader.text("session", _SESSION),
        framework=reader.text("framework", _NAME),
        versions={name: value for name, value in reader.plain("versions").items() if isinstance(value, str)},
        gpus=reader.texts("gpus"),
        settings=reader.plain("settings"),
        changed=reader.texts("changed"),
        contract=reader.plain("contract"),
        warmup_calls=reader.number("warmup", "calls"),
        steady=reader.flag("warmup", "steady"),
        steps=reader.number("steps"),
    )
    wrong = list(dict.fromkeys(reader.wrong))
    shown = ", ".join(wrong[:4]) + (f" and {len(wrong) - 4} more" if len(wrong) > 4 else "")
    return ReadCapture(info, f"parts that cannot be used were left out ({shown})" if wrong else "")


class _Reader:
    """Takes typed values out of a document and notes which were not of their type."""

    def __init__(self, content: Mapping[str, Any]) -> None:
        self._content = content
        self.wrong: list[str] = []

    def _at(self, path: tuple[str, ...]) -> object:
        value: object = self._content
        for name in path:
            value = value.get(name) if isinstance(value, Mapping) else None
        return value

    def _checked(self, path: tuple[str, ...], value: object, *, right: bool) -> Any:
        if value is not None and not right:
            self.wrong.append(".".join(path))
            return None
        return value

    def text(self, name: str, shape: re.Pattern[str]) -> str | None:
        value = self._at((name,))
        found: str | None = self._checked((name,), value, right=isinstance(value, str) and bool(shape.fullmatch(value)))
        return found

    def number(self, *path: str) -> int | None:
        value = self._at(path)
        right = isinstance(value, int) and not isinstance(value, bool) and 0 <= value < _LARGEST
        found: int | None = self._checked(path, value, right=right)
        return found

    def flag(self, *path: str) -> bool | None:
        value = self._at(path)
        found: bool | None = self._checked(path, value, right=isinstance(value, bool))
        return found

    def texts(self, name: str) -> tuple[str, ...]:
        value = self._at((name,))
        if not isinstance(value, list):
            self._checked((name,), value, right=False)
            return ()
        kept = [one for one in value[:_MOST_ENTRIES] if isinstance(one, str) and 0 < len(one) <= _MOST_TEXT]
        self._checked((name,), value, right=len(kept) == len(value))
        return tuple(kept)

    def plain(self, name: str) -> dict[str, Setting]:
        """A flat object of plain values."""
        value = self._at((name,))
        if not isinstance(value, Mapping):
            self._checked((name,), value, right=False)
            return {}
        kept: dict[str, Setting] = {}
        for key, one in value.items():
            if len(kept) == _MOST_ENTRIES or not isinstance(key, str) or not _NAME.fullmatch(key) or not is_plain(one):
                self.wrong.append(name)
            else:
                kept[key] = tuple(one) if isinstance(one, list | tuple) else one
        return kept


def is_plain(value: object) -> bool:
    """Whether a value may stand in ``settings`` or ``contract``: a short text, a number, a switch, texts."""
    if isinstance(value, list | tuple):
        texts = [one for one in value if isinstance(one, str)]
        return len(value) <= _MOST_ENTRIES and len(texts) == len(value) and all(is_plain(one) for one in texts)
    if isinstance(value, str):
        return len(value) <= _MOST_TEXT
    if isinstance(value, float):
        return math.isfinite(value)
    return value is None or isinstance(value, bool) or (isinstance(value, int) and abs(value) < _LARGEST)


def is_name(text: object) -> bool:
    """Whether a text may be a key of ``settings`` or ``contract``."""
    return isinstance(text, str) and _NAME.fullmatch(text) is not None


def agreed(captures: tuple[CaptureInfo | None, ...]) -> CaptureInfo | None:
    """What the files of one run agree on; ``None`` if one of them has none."""
    known = [one for one in captures if one is not None]
    if not known or len(known) < len(captures):
        return None
    first = known[0]
    if len(known) == 1:
        return first

    def same(name: str) -> dict[str, Any]:
        maps = [getattr(one, name) for one in known]
        return {key: value for key, value in maps[0].items() if all(key in one and one[key] == value for one in maps)}

    def one_value(name: str) -> Any:
        values = {getattr(one, name) for one in known}
        return values.pop() if len(values) == 1 else None

    return CaptureInfo(
        session=one_value("session"),
        framework=one_value("framework"),
        versions=same("versions"),
        gpus=first.gpus if one_value("gpus") is not None else (),
        settings=same("settings"),
        changed=tuple(sorted({name for one in known for name in one.changed})),
        contract=same("contract"),
        warmup_calls=one_value("warmup_calls"),
        steady=one_value("steady"),
        steps=one_value("steps"),
    )
