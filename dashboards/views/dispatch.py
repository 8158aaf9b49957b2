"""The dispatch table: asked, got, verdict, share; the evidence of one row; and the row as an expectation."""

from __future__ import annotations

from dataclasses import dataclass
from glob import escape
from typing import TYPE_CHECKING, Final

import polars as pl

from traceview.attention import SLOW, UNTOLD
from traceview.dashboards.views.findings import FindingView, finding_view, ranked
from traceview.dashboards.views.table import NS_PER_MS, Show, Table, in_ms
from traceview.expectations.judging import judge_expect, least_share, split_scope
from traceview.expectations.model import Expect, Verdict, Wanted
from traceview.expectations.proposing import SHARE_MARGIN
from traceview.expectations.vocabulary import FAMILIES, implementations
from traceview.expectations.writing import comment, quoted
from traceview.explaining import ATTENTION, explain_row
from traceview.render.dispatch_text import implementation, shapes
from traceview.render.explain_text import story
from traceview.render.units import counted, duration

if TYPE_CHECKING:
    from collections.abc import Sequence

    from traceview.dispatch import Dispatch
    from traceview.expectations.pieces import Pieces
    from traceview.findings import Finding
    from traceview.gate import CheckResult
    from traceview.timeline import Timeline

WORDS: Final = {"slow": "✕ slow", "ok": "✓ ok", "unknown": "? not to be told"}
"""A verdict as a cell: a sign and a word."""

_WIDTH: Final = 400
_MOST_KERNELS: Final = 50
_ATTENTION_RULES: Final = ("TV101", "TV102", "TV103", "TV108")


def dispatch_table_view(rows: Sequence[Dispatch], busy_ns: int) -> Table:
    """What was asked, what ran, and how that is judged.

    Args:
        rows: The rows, in the order in which they are to stand.
        busy_ns: Busy time of the devices, ns.
    """
    staged = any(row.stage for row in rows)
    attention = any(row.family == ATTENTION for row in rows)
    took = {
        "share of busy": pl.Series([row.share for row in rows], dtype=pl.Float64),
        "device ms": pl.Series(in_ms(row.device_ns for row in rows), dtype=pl.Float64),
    }
    if not busy_ns:
        took = {"host ms": pl.Series(in_ms(row.host_ns for row in rows), dtype=pl.Float64)}
    columns: dict[str, pl.Series] = {
        "verdict": _texts([WORDS[row.verdict] if _is_judged(row) else "-" for row in rows]),
        "asked": _texts([row.op or "not recorded" for row in rows]),
        "got": _texts([got(row) for row in rows]),
        **took,
        "count": pl.Series([row.count for row in rows], dtype=pl.Int64),
    }
    if staged:
        columns["stage"] = _texts([row.stage or "-" for row in rows])
    columns["inputs"] = _texts([shapes(row.inputs, tensors=3) or "-" for row in rows])
    columns["known by"] = _texts([known_by(row) for row in rows])
    columns["longest kernel"] = _texts([row.kernels[0].name if row.kernels else "-" for row in rows])
    remarks = []
    if not busy_ns:
        remarks.append("No device work is recorded: the time is that of the ops on the host.")
    else:
        remarks.append(
            f"Shares are of the {duration(busy_ns)} in which the devices worked; what runs at the same time is in both."
        )
    if attention:
        remarks.append("Only attention is judged: for other work no faster implementation is known to have been there.")
    return Table(
        pl.DataFrame(columns),
        {
            **({"share of busy": Show.SHARE, "device ms": Show.MS} if busy_ns else {"host ms": Show.MS}),
            "count": Show.COUNT,
            "asked": Show.MEDIUM,
            "longest kernel": Show.LONG,
        },
        tuple(remarks),
    )


def _texts(values: list[str]) -> pl.Series:
    return pl.Series(values, dtype=pl.String)


def _is_judged(row: Dispatch) -> bool:
    return row.family == ATTENTION or row.verdict == "unknown"


def got(row: Dispatch) -> str:
    """What ran, e.g. ``attention: flash-2 (pytorch)``."""
    return f"{row.family}: {implementation(row)}" if row.implementation else row.family


def known_by(row: Dispatch) -> str:
    """How it is known what ran."""
    return row.evidence if row.attribution == "attributed" else f"{row.evidence}, {row.attribution}"


@dataclass(frozen=True, slots=True)
class Evidence:
    """What the panel beside a row says.

    Attributes:
        verdict: ``slow``, ``ok`` or ``unknown``.
        heading: What ran, how often, for what.
        story: Names and values; a value without a name belongs to the one before.
        change: What to change, one line each; empty if nothing has to be.
        kernels: Its kernels.
        findings: Findings about it.
    """

    verdict: str
    heading: str
    story: tuple[tuple[str, str], ...]
    change: tuple[str, ...]
    kernels: Table
    findings: tuple[FindingView, ...]


def evidence(timeline: Timeline, check: CheckResult, row: Dispatch) -> Evidence:
    """Everything that is known of one row of the table.

    Args:
        timeline: The trace.
        check: Its check.
        row: The row.
    """
    about = [one for one in check.findings if one.code in _ATTENTION_RULES]
    explained = explain_row(timeline, row, about)
    lines = [pair for pair in story(explained, check.table.busy_ns, _WIDTH) if pair[0] != "change" and pair[1]]
    lines = [pair for pair in lines if pair[1] not in explained.change]
    noun = "call" if row.family == ATTENTION else "kernel"
    return Evidence(
        verdict=row.verdict,
        heading=f"{got(row)}: {counted(row.count, noun)} of {row.op or 'an op that is not recorded'}",
        story=tuple(lines),
        change=explained.change,
        kernels=_kernels(row),
        findings=tuple(finding_view(one, check.table) for one in ranked(_about(check.findings, row))),
    )


def _about(findings: Sequence[Finding], row: Dispatch) -> list[Finding]:
    """The findings that are about the implementation of a row."""
    if row.family != ATTENTION or row.implementation not in (*SLOW, *UNTOLD):
        return []
    codes = {"unfused": ("TV101", "TV108"), "math": ("TV102",)}.get(row.implementation or "", ("TV103",))
    return [one for one in findings if one.code in codes]


def _kernels(row: Dispatch) -> Table:
    shown = row.kernels[:_MOST_KERNELS]
    whole = sum(one.device_ns for one in row.kernels) or 1
    frame = pl.DataFrame(
        {
            "kernel": [one.name for one in shown],
            "count": [one.count for one in shown],
            "device ms": [one.device_ns / NS_PER_MS for one in shown],
            "part": [one.device_ns / whole for one in shown],
        },
        schema={"kernel": pl.String, "count": pl.Int64, "device ms": pl.Float64, "part": pl.Float64},
    )
    shows = {"kernel": Show.LONG, "count": Show.COUNT, "device ms": Show.MS, "part": Show.SHARE}
    more = len(row.kernels) - len(shown)
    return Table(frame, shows, (f"{more:,} more kernels.",) if more > 0 else ())


def expectation(row: Dispatch, pieces: Pieces) -> str | None:
    """A row as a block of ``dispatch.toml``: what ran must run again, or, if it was slow, what should have run.

    Args:
        row: The row.
        pieces: The trace it is from, to say whether the block holds there.

    Returns:
        ``None`` if nothing can be expected of it: what ran is not known.
    """
    wanted = _wanted(row)
    if wanted is None:
        return None
    min_share = 1.0
    if wanted.demands and row.implementation not in SLOW:
        scope = pieces.in_scope(wanted)
        least = least_share(split_scope(scope, wanted)) if scope else 1.0
        # Other calls of the scope may have run something else, which the row does not speak of.
        min_share = max(int((least - SHARE_MARGIN) * 100) / 100, 0.01) if least < 1 else 1.0
    expect = Expect(0, wanted, min_share, 1)
    judged = judge_expect(expect, pieces)
    holds = {Verdict.PASS: "It holds on this trace", Verdict.FAIL: "It does not hold on this trace yet"}
    said = f"{holds.get(judged.verdict, 'This trace cannot tell whether it holds')}: {judged.observed}."
    lines = [
        *comment(said),
        "[[expect]]",
        f"op = {quoted(wanted.op or '')}",
        *([f"direction = {quoted(wanted.direction)}"] if wanted.direction else []),
        *([f"stage = {quoted(wanted.stage)}"] if wanted.stage else []),
        *([f"implementation = {quoted(wanted.implementation[0])}"] if wanted.implementation else []),
        *([f"min_share = {min_share:g}"] if min_share < 1 else []),
        "min_count = 1",
    ]
    return "\n".join(lines) + "\n"


def _wanted(row: Dispatch) -> Wanted | None:
    if row.family not in FAMILIES:
        return None
    implementation: tuple[str, ...] = ()
    if row.implementation in SLOW:
        implementation = ("fused",)
    elif row.family == ATTENTION and (row.implementation in UNTOLD or row.implementation is None):
        return None
    elif row.implementation in implementations(row.family):
        implementation = (row.implementation,)
    backward = row.family == ATTENTION and row.direction == "backward"
    return Wanted(
        op=row.family,
        stage=None if row.stage is None else escape(row.stage),
        direction="backward" if backward else None,
        implementation=implementation,
    )
