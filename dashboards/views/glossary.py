"""The rules and the terms of the pages, from where the product itself documents them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

import polars as pl

from traceview.accounting import Part
from traceview.allocations import ALLOCATIONS
from traceview.dashboards.views.table import Show, Table
from traceview.gaps import GAPS
from traceview.host_waits import HOST_WAITS
from traceview.knowledge.idle_causes import CAUSE_DOCS
from traceview.launch_health import LAUNCH_HEALTH
from traceview.recompiles import RECOMPILES
from traceview.rules.catalogue import RULES
from traceview.rules.documentation import markdown
from traceview.stage_table import STAGES
from traceview.transfers import TRANSFERS

if TYPE_CHECKING:
    from collections.abc import Iterable

    from traceview.rules.base import Rule
    from traceview.schema import FrameSchema

_FRAMES: Final[tuple[tuple[str, FrameSchema], ...]] = (
    ("stages", STAGES),
    ("gaps", GAPS),
    ("how devices are fed", LAUNCH_HEALTH),
    ("waits of the host", HOST_WAITS),
    ("compilations", RECOMPILES),
    ("copies", TRANSFERS),
    ("memory", ALLOCATIONS),
)

_WORDS: Final = (
    ("pass", "verdict", "What must hold does hold; what the trace lost could not change that."),
    ("fail", "verdict", "The trace proves that something does not hold."),
    ("inconclusive", "verdict", "The trace does not hold what is needed to judge; never shown as a pass."),
    ("good", "trust", "Nothing was lost or repaired that an answer could depend on."),
    ("limited", "trust", "Something was lost or repaired; the notes say what it limits."),
    ("poor", "trust", "So much is missing that totals are lower bounds at best."),
    ("measured", "confidence", "Recorded in the trace."),
    ("sourced", "confidence", "Recorded, and read with a versioned source."),
    ("inferred", "confidence", "Concluded from circumstances."),
    ("busy", "time", "At least one piece of work runs; work that overlaps counts once."),
    ("share of busy", "time", "Over the time in which the devices work; work that overlaps is in both shares."),
    ("exposed", "time", "Copies or communication that no computation hides."),
    ("Unattributed", "time", "Time that is in no stage, or of no known cause. It is shown, not spread over the rest."),
    ("warm-up", "steps", "The first recorded step of a process: it compiles, tunes and allocates, and is not counted."),
    ("to win", "findings", "An upper bound of what a fix can save. Ceilings of several findings do not add up."),
    (Part.COMPUTE.value, "part of a step", "Kernels, fills and XLA ops."),
    (Part.ASYNC_WAIT.value, "part of a step", "The device waits for its own asynchronous copy or collective."),
)


@dataclass(frozen=True, slots=True)
class RulePage:
    """One rule, to read.

    Attributes:
        code: Its code.
        title: Code, name and worst severity.
        body: Its documentation as Markdown; written by the project, nothing of it from a trace.
    """

    code: str
    title: str
    body: str


def rule_pages(rules: Iterable[Rule] = RULES) -> list[RulePage]:
    """Every rule's documentation, by code."""
    return [
        RulePage(rule.code, f"{rule.code} {rule.name} ({rule.severity.value} at worst)", markdown(rule.doc))
        for rule in rules
    ]


def rules_table(rules: Iterable[Rule] = RULES) -> Table:
    """All rules: code, worst severity, name, what it finds."""
    rows = [(rule.code, rule.severity.value, rule.name, rule.summary.replace("``", "`")) for rule in rules]
    frame = pl.DataFrame(rows, schema=["code", "severity", "name", "finds"], orient="row")
    return Table(frame, {"finds": Show.LONG})


def glossary(search: str = "") -> Table:
    """The terms of the pages: verdicts, kinds of time, causes of idle time, columns.

    Args:
        search: Only terms in whose row this occurs, upper or lower case.
    """
    rows = [
        *_WORDS,
        *((cause.value, "cause of idle time", doc.replace("`", "")) for cause, doc in CAUSE_DOCS.items()),
        *(
            (column.name, f"column of {name}", f"{column.doc}{f' [{column.unit}]' if column.unit else ''}")
            for name, frame in _FRAMES
            for column in frame.columns
        ),
    ]
    wanted = search.casefold().strip()
    kept = [row for row in rows if wanted in " ".join(row).casefold()]
    frame = pl.DataFrame(kept, schema={"term": pl.String, "is a": pl.String, "means": pl.String}, orient="row")
    return Table(frame, {"means": Show.LONG})
