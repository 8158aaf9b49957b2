"""What a predicate sees and what it answers."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from traceview.capture_info import CaptureInfo
    from traceview.eligibility.calls import SdpaCall
    from traceview.knowledge.releases import Version

HALF: Final = ("float16", "bfloat16")
"""The two dtypes of 16 bits."""


class Truth(StrEnum):
    """A condition on recorded facts."""

    YES = "yes"
    NO = "no"
    UNKNOWN = "unknown"
    """Something it needs is not recorded."""


@dataclass(frozen=True, slots=True)
class Answer:
    """A truth and what it rests on: for ``YES`` and ``NO`` the recorded facts, for ``UNKNOWN`` what is missing.

    ``by_capture``: it rests on a setting that ``traceview.capture`` recorded, not on the arguments of the call.
    """

    truth: Truth
    text: str
    by_capture: bool = False


RECORDED_BY: Final = "recorded by traceview.capture"
"""Source of a setting."""


def yes(text: str) -> Answer:
    """The condition holds; ``text`` says on which recorded facts."""
    return Answer(Truth.YES, text)


def no(text: str) -> Answer:
    """The condition does not hold; ``text`` says on which recorded facts."""
    return Answer(Truth.NO, text)


def missing(text: str) -> Answer:
    """``text`` names the facts that are not recorded."""
    return Answer(Truth.UNKNOWN, text)


@dataclass(frozen=True, slots=True)
class Device:
    """Where a call ran.

    Attributes:
        platform: ``"cuda"``, ``"rocm"``, ``"cpu"`` or ``None`` if the trace does not tell.
        major: Compute capability, major (AMD: gfx major); ``None`` if not recorded.
        minor: Compute capability, minor.
        name: Product name, ``None`` if not recorded.
    """

    platform: str | None = None
    major: int | None = None
    minor: int | None = None
    name: str | None = None

    @property
    def sm(self) -> int | None:
        """Compute capability × 10, ``None`` if not recorded."""
        return None if self.major is None or self.minor is None else self.major * 10 + self.minor


@dataclass(frozen=True, slots=True)
class Facts:
    """One call in one world: platform and release are settled here, everything else as recorded."""

    call: SdpaCall
    device: Device
    platform: str
    release: Version
    cudnn: Version | None
    capture: CaptureInfo | None = None

    @property
    def sm(self) -> int | None:
        """Compute capability × 10 of an NVIDIA GPU, gfx major × 10 + minor of an AMD one."""
        return self.device.sm
