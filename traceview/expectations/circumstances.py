"""Whether an expectation applies to a trace: its ``when``, with three values.

Default orders of PyTorch differ by release and GPU, so one file often states several expectations of which one is meant
for the trace at hand. What does not apply is skipped and says so. What cannot be told is inconclusive: an expectation
that is silently left out would be one that nobody checks.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from fnmatch import fnmatchcase
from typing import TYPE_CHECKING, Any, Final

from traceview.knowledge.architectures import architecture
from traceview.knowledge.releases import parse_cudnn, parse_version, version_text
from traceview.sdpa import version_of, without_accelerator

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from traceview.expectations.model import Context, When
    from traceview.knowledge.releases import Version
    from traceview.timeline import Timeline

_BOUND: Final = re.compile(r"(?P<compare>[<>]=?|[=!]=|)\s*(?P<version>\d{1,6}(?:\.\d{1,6}){0,3})")
_HOLDS: Final[dict[str, Callable[[Version, Version], bool]]] = {
    "": lambda have, bound: have == bound,
    "==": lambda have, bound: have == bound,
    "!=": lambda have, bound: have != bound,
    ">=": lambda have, bound: have >= bound,
    "<=": lambda have, bound: have <= bound,
    ">": lambda have, bound: have > bound,
    "<": lambda have, bound: have < bound,
}
_ORDERED: Final = (">=", "<=", ">", "<")
_LARGE: Final = 10**9


@dataclass(frozen=True, slots=True)
class Applies:
    """Whether an expectation applies: ``None`` if that cannot be told. ``why`` is empty if it does."""

    holds: bool | None
    why: str = ""


class Circumstances:
    """What a ``when`` can ask about a trace.

    Args:
        timeline: The trace.
        context: Facts that the trace does not hold; they outweigh what it states, but not what was captured.
    """

    def __init__(self, timeline: Timeline, context: Context) -> None:
        self._timeline = timeline
        self._context = context
        used = set(timeline.device_work["device"].unique())
        self._devices = [row for row in timeline.devices.to_dicts() if row["device"] in used]

    def applies(self, when: When) -> Applies:
        """Whether all of ``when`` holds; one part that does not hold settles it, whatever else cannot be told."""
        parts = [
            *(self._version(key, getattr(when, key)) for key in ("torch", "cudnn", "cuda") if getattr(when, key)),
            *([self._of_devices("arch", when.arch)] if when.arch else []),
            *([self._of_devices("gpu", when.gpu)] if when.gpu else []),
        ]
        for answer in (False, None):
            whys = [part.why for part in parts if part.holds is answer]
            if whys:
                return Applies(answer, "; ".join(whys))
        return Applies(holds=True)

    def _version(self, key: str, asked: str) -> Applies:
        stated = self._stated(key)
        if stated is None:
            option = f"give --{key}, or {key} in [context]" if key != "cuda" else "give cuda in [context]"
            return Applies(None, f"the version of {key} is not recorded: {option}")
        answers = [_within(stated, bound) for bound in bounds(asked) or ()]
        if False in answers:
            return Applies(False, f"{key} is {version_text(stated)}")
        if None in answers:
            return Applies(None, f"{key} {version_text(stated)} is not exact enough to tell whether it is {asked}")
        return Applies(holds=True)

    def _stated(self, key: str) -> Version | None:
        text = version_of(self._timeline, key, getattr(self._context, key))
        if key == "cudnn":
            return parse_cudnn(text) if text else None
        version = parse_version(text) if text else None
        if key == "cuda" and version and len(version) == 1 and version[0] >= 1000:
            # The number of CUDA's own interface: 12040 is 12.4.
            return (version[0] // 1000, version[0] % 1000 // 10)
        return version

    def _of_devices(self, key: str, patterns: Sequence[str]) -> Applies:
        """All devices that did some work must match."""
        if not self._devices:
            if without_accelerator(self._timeline):
                return Applies(False, "the program ran without an accelerator")
            return Applies(None, f"no device work is recorded, so its {key} is not known")
        names = [self._name(key, row) for row in self._devices]
        known = [name for name in names if name is not None]
        matching = [any(fnmatchcase(name.lower(), pattern.lower()) for pattern in patterns) for name in known]
        listed = ", ".join(dict.fromkeys(known))
        if known and not any(matching) and len(known) == len(names):
            return Applies(False, f"{key} is {listed}{_meant_as_part(patterns, known)}")
        if len(known) < len(names):
            return Applies(None, f"the {key} of the device is not recorded")
        return Applies(holds=True) if all(matching) else Applies(None, f"{key} differs between devices: {listed}")

    def _name(self, key: str, row: dict[str, Any]) -> str | None:
        if key == "gpu":
            return row["name"] or self._context.gpu
        return architecture(row["vendor"], row["name"], row["compute_major"], row["compute_minor"])


def bounds(text: str) -> tuple[tuple[str, Version], ...] | None:
    """The comparisons of a text such as ``">=2.9, <2.11"``; ``None`` if it is none."""
    found = []
    for part in text.split(","):
        match = _BOUND.fullmatch(part.strip())
        version = parse_version(match["version"]) if match else None
        if match is None or version is None:
            return None
        found.append((match["compare"], version))
    return tuple(found)


def can_hold(asked: Sequence[tuple[str, Version]]) -> bool:
    """Whether any version satisfies all comparisons."""
    # The least version that does is the first of all, or one at which a comparison begins or ends to hold.
    places = 4
    bounds_of = [bound for _, bound in asked]
    starts = [(0,), *bounds_of, *((*bound[:-1], bound[-1] + 1) for bound in bounds_of)]
    candidates = [(*first, *([0] * (places - len(first)))) for first in starts]
    return any(all(_within(candidate, bound) for bound in asked) for candidate in candidates)


def _meant_as_part(patterns: Sequence[str], names: Sequence[str]) -> str:
    """A hint where a pattern is a part of a name: it is compared with the whole."""
    for pattern in patterns:
        if any(pattern.lower() in name.lower() for name in names):
            return f', and "{pattern}" is compared with the whole name: a part of it is "*{pattern}*"'
    return ""


def _within(have: Version, bound: tuple[str, Version]) -> bool | None:
    """Compared to as many places as the bound has: ``2.9`` and ``<=2.9`` hold for 2.9.1. ``None``: not exact enough."""
    compare, version = bound
    missing = len(version) - len(have)
    if missing <= 0 or have != version[: len(have)]:
        return _HOLDS[compare](have[: len(version)], version)
    if compare not in _ORDERED:
        return None
    lowest, highest = ((*have, *([filler] * missing)) for filler in (0, _LARGE))
    answers = {_HOLDS[compare](one, version) for one in (lowest, highest)}
    return answers.pop() if len(answers) == 1 else None
