"""What reading had to repair or give up, by kind: nothing is lost without a count.

``repaired-...`` kinds keep the event; what was wrong with its text is said in :data:`KINDS`. ``lost-...`` kinds mean
that something of the file is not in the result.
"""

from __future__ import annotations

from typing import Final

from traceview.timeline import Count

KINDS: Final[dict[str, str]] = {
    "repaired-backslash": "A string holds backslashes that are no JSON escapes (a Windows path): kept literally.",
    "repaired-quote": "A string holds quotes that were not escaped: they were taken as part of the text.",
    "repaired-utf8": "Bytes that are not UTF-8 were replaced by U+FFFD.",
    "repaired-surrogate": "Half of a surrogate pair in a name was replaced by U+FFFD.",
    "repaired-word": "A bare word that is no JSON (inf, nan, N/A, NaN) stands where a value should: taken as null.",
    "repaired-number": "A number that is no JSON number (0.-01, 007, +5): its meaning was kept, or null.",
    "repaired-comma": "A comma too many or too few was passed over.",
    "repaired-time-in-quotes": "ts or dur is a number inside quotes: read as the number.",
    "repaired-deep-value": "An argument is nested too deeply to check: its text was kept as it is.",
    "lost-event": "An event is damaged beyond repair, or has no ph.",
    "lost-time": "An event has no ts that is a time in range, so it has no place on a timeline.",
    "lost-duration": "The dur of an event is no number in range: the event is kept without it.",
    "lost-text": "Text between events that belongs to no event was passed over.",
    "lost-cut": "The file ends in the middle of an event, which is incomplete.",
    "lost-argument": "An argument was dropped because the file has too many different argument names.",
    "lost-metadata": "A top-level key of the file, outside traceEvents, could not be read.",
    "lost-trailing": "Text follows the end of the JSON (two files in one?), counted by the events it seems to hold.",
}
"""Every kind of count a Kineto reader can report, with one sentence each."""

EXAMPLE_CHARS: Final = 160


class Tally:
    """Counts by kind, each with the first example."""

    __slots__ = ("_counts",)

    def __init__(self) -> None:
        self._counts: dict[str, Count] = {}

    def add(self, kind: str, example: str = "", n: int = 1) -> None:
        """Count ``n`` cases of ``kind``, a key of :data:`KINDS`; the first example is kept, cut to one short line."""
        if kind not in KINDS:
            raise KeyError(kind)
        if n <= 0:
            return
        old = self._counts.get(kind)
        if old is None:
            self._counts[kind] = Count(n, one_line(example))
        else:
            self._counts[kind] = Count(old.n + n, old.example)

    def merge(self, other: Tally) -> None:
        """Add the counts of ``other``, which was read after this one."""
        for kind, count in other._counts.items():
            self.add(kind, count.example, count.n)

    def as_dict(self) -> dict[str, Count]:
        """The counts, kinds in alphabetical order."""
        return dict(sorted(self._counts.items()))

    def __bool__(self) -> bool:
        return bool(self._counts)


def one_line(text: str) -> str:
    """``text`` without line breaks and control characters, cut to :data:`EXAMPLE_CHARS`."""
    short = " ".join(text[: 4 * EXAMPLE_CHARS].split())
    clean = "".join(char if char.isprintable() else "\N{REPLACEMENT CHARACTER}" for char in short)
    return clean if len(clean) <= EXAMPLE_CHARS else clean[: EXAMPLE_CHARS - 3] + "..."
