"""The strip under every verdict: which trace, recorded by what, on which device, and how far to trust it."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING, Final

from traceview.count_words import count_words
from traceview.render.capture_words import capture_facts
from traceview.render.units import counted

if TYPE_CHECKING:
    from collections.abc import Sequence

    from traceview.findings import Finding
    from traceview.render.page import Page
    from traceview.report import Device, ImportSummary, TraceInfo


_SAYS: Final = {"truncated": "TV903", "damaged": "TV903", "unreadable-events": "TV903"}
"""Notes that a rule puts in words of its own, and which rule."""


def write_conditions(page: Page, trace: TraceInfo, summary: ImportSummary, findings: Sequence[Finding] = ()) -> None:
    """Write the strip."""
    page.facts(conditions(trace, summary, findings))


def conditions(trace: TraceInfo, summary: ImportSummary, findings: Sequence[Finding] = ()) -> list[tuple[str, str]]:
    """The strip as names and values.

    Each note that limits the trust is said, in words; its name is empty. What one of ``findings`` says with what to do
    about it is not said twice: the strip names the finding.
    """
    limiting = [note for note in summary.notes if note.trust != "good"]
    notes = [note.text for note in limiting]
    saying = {note.text: _said_by(note.kind, note.text, findings) for note in limiting}
    codes = sorted({code for code in saying.values() if code is not None})
    limits = [*([f"see {', '.join(codes)}"] if codes else []), *(note for note in notes if saying[note] is None)]
    return [
        ("trace", _files(trace)),
        ("producer", trace.producer + (f" {trace.producer_version}" if trace.producer_version else "")),
        ("device", _devices(trace.devices)),
        ("events", f"{trace.events:,}" + (f", the file is {_broken(summary)}" if trace.truncated else "")),
        ("trust", trace.trust if not limits else f"{trace.trust}: {limits[0]}"),
        *(("", limit) for limit in limits[1:]),
        *(capture_facts(trace.capture) if trace.capture is not None else []),
    ]


def _broken(summary: ImportSummary) -> str:
    return "damaged" if any(note.kind == "damaged" for note in summary.notes) else "cut off"


def _said_by(kind: str, text: str, findings: Sequence[Finding]) -> str | None:
    """The code of the finding that says what a note says, if there is one; an accepted one says more before it."""
    codes = (one.code for one in findings if one.title.endswith(text.rstrip(".")) or one.code == _SAYS.get(kind))
    return next(codes, None)


def write_remarks(page: Page, summary: ImportSummary) -> None:
    """What else the import has to say: remarks that limit nothing, and what was counted."""
    remarks = [note.text for note in summary.notes if note.trust == "good"]
    counts = [
        f"{count_words(kind)}: {count.n:,}" + (f" (e.g. {count.example})" if count.example else "")
        for kind, count in sorted(summary.counts.items())
        if count.n
    ]
    if not remarks and not counts:
        return
    page.heading("Import")
    for remark in (*remarks, *counts):
        page.bullet(remark)


def _files(trace: TraceInfo) -> str:
    first = trace.files[0]
    return first if len(trace.files) == 1 else f"{first} and {counted(len(trace.files) - 1, 'more file')}"


def _devices(devices: tuple[Device, ...]) -> str:
    """``4 x NVIDIA H100 (compute capability 9.0); 7 more listed did nothing``."""
    if not devices:
        return "none described"
    used = [one for one in devices if one.used]
    kinds = Counter(_product(one) for one in used or devices)
    text = ", ".join(kind if n == 1 else f"{n} x {kind}" for kind, n in kinds.items())
    if not used:
        return f"{text} (no work recorded)"
    unused = len(devices) - len(used)
    return text + (f" ({unused} more listed, no work recorded)" if unused else "")


def _product(device: Device) -> str:
    name = device.name or "name not recorded"
    if device.vendor == "amd":
        # What a trace calls compute capability lacks the stepping on AMD: 9.0 is four architectures.
        return name if device.architecture == name else f"{name}, {device.architecture or 'architecture not recorded'}"
    if device.compute_capability is None:
        return name
    return f"{name}, compute capability {device.compute_capability}"
