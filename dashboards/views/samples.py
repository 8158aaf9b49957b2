"""The samples that the first page tells of: the best first, a pair as one story."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Sequence

    from traceview.samples import Pair, Sample

MOST: Final = 6
"""Stories that fit beside the drop zone."""

FORMATS: Final = {"kineto": "PyTorch profiler", "nsys": "Nsight Systems", "xprof": "XProf"}
"""What people call the formats."""


@dataclass(frozen=True, slots=True)
class Story:
    """One sample, or a program before and after a change.

    Attributes:
        samples: The sample, or before and after.
        words: What is to be seen, one sentence.
        pair: Name of the pair; empty for one sample.
    """

    samples: tuple[Sample, ...]
    words: str
    pair: str = ""


def featured(catalogue: Sequence[Sample], pairs: Sequence[Pair], most: int = MOST) -> list[Story]:
    """The first stories of a catalogue, in its order.

    Args:
        catalogue: All samples, best first.
        pairs: Which of them belong together.
        most: How many stories.
    """
    named = {sample.name: sample for sample in catalogue}
    paired = {name: pair for pair in pairs for name in (pair.before, pair.after)}
    found: dict[str, Story] = {}
    for sample in catalogue:
        pair = paired.get(sample.name)
        if pair is None:
            found[sample.name] = Story((sample,), sample.story)
        else:
            found.setdefault(pair.before, Story((named[pair.before], named[pair.after]), pair.story, pair.name))
    return list(found.values())[:most]
