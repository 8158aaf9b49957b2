"""The list of samples for a terminal, and as a JSON document."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from traceview.render.units import counted

if TYPE_CHECKING:
    from collections.abc import Sequence

    from traceview.render.page import Page
    from traceview.samples import Pair, Sample


def write_samples(samples: Sequence[Sample], pairs: Sequence[Pair], page: Page) -> None:
    """All samples, real recordings apart from authored ones, then the pairs."""
    page.verdict(f"{counted(len(samples), 'sample')}; traceview samples NAME prints where its files are.")
    width = max(len(sample.name) for sample in samples)
    for heading, authored in (("Authored: the times are chosen", True), ("Recorded on a CPU", False)):
        page.heading(heading)
        page.facts(
            ((f"{one.name:{width}}", f"{one.title} ({one.device})") for one in samples if one.authored == authored),
            blank=False,
        )
    page.heading("Before and after")
    page.facts(((f"{one.before:{width}}", f"{one.story} After it: {one.after}") for one in pairs), blank=False)


def samples_document(samples: Sequence[Sample], pairs: Sequence[Pair]) -> dict[str, Any]:
    """``traceview.samples/1``."""
    return {
        "schema": "traceview.samples/1",
        "samples": [
            {
                "name": one.name, "title": one.title, "story": one.story, "format": one.format, "device": one.device,
                "authored": one.authored, "shows": list(one.shows), "before": one.before or None,
                "after": one.after or None, "paths": [str(path) for path in one.paths],
                "notes": [str(path) for path in one.notes],
            }
            for one in samples
        ],
        "pairs": [
            {"name": one.name, "before": one.before, "after": one.after, "story": one.story} for one in pairs
        ],
    }  # fmt: skip
