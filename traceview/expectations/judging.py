"""Judge one expectation or prohibition against a trace: pass, fail, or not to be told, with what was observed.

The share for which an expectation holds has two bounds, because some work cannot be told: the lower one takes all of
that for a violation, the upper one for agreement. Pass and fail need both bounds on the same side.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from fnmatch import fnmatchcase
from typing import TYPE_CHECKING, Final

import polars as pl

from traceview import nesting
from traceview.expectations.model import Judgement, Verdict, Wanted
from traceview.expectations.observation import MOST_GROUPS, groups, number, remarks, why_untold
from traceview.expectations.pieces import (
    Piece,
    Pieces,
    all_of,
    in_place,
    matches_kernel,
    matches_op,
    satisfies,
)
from traceview.expectations.vocabulary import FAMILIES
from traceview.kernels import Family
from traceview.launches import graph_replays
from traceview.losses import WORK_LOST, WORK_MAY_BE_LOST
from traceview.quantities import percent
from traceview.rules.device_work import union_ns
from traceview.stages import matches
from traceview.timeline import Trust

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence

    from traceview.expectations.model import Expect, Forbid
    from traceview.findings import Finding
    from traceview.timeline import Timeline

BLIND_SHARE: Final = 0.05
"""More device time than this in work that cannot be told to be in or out of a scope could change a verdict about it."""


@dataclass(frozen=True, slots=True)
class Split:
    """Pieces that hold, do not hold, and that the trace does not tell."""

    good: list[Piece]
    bad: list[Piece]
    untold: list[Piece]

    @property
    def all(self) -> list[Piece]:
        """The whole scope."""
        return [*self.good, *self.bad, *self.untold]


@dataclass(frozen=True, slots=True)
class _Basis:
    """What shares are measured in."""

    words: str
    weigh: Callable[[Piece], int]

    def __call__(self, pieces: Iterable[Piece]) -> int:
        return sum(self.weigh(piece) for piece in pieces)


def judge_expect(expect: Expect, pieces: Pieces) -> Judgement:
    """Judge one ``[[expect]]``."""
    wanted = expect.wanted
    unseen = _no_stages(wanted, pieces)
    if unseen:
        return Judgement(Verdict.INCONCLUSIVE, unseen)
    scope = pieces.in_scope(wanted)
    suspects = pieces.suspects(wanted)
    blind = _outweighs(suspects, pieces)
    if not scope:
        return _nothing(expect, pieces, suspects if blind else [])
    split = split_scope(scope, wanted)
    verdict = Verdict.PASS
    words: list[str] = []
    if wanted.demands or wanted.direction or wanted.dtype:
        verdict, words = _judge_share(expect, split, suspects if blind else [])
    if expect.min_count is not None:
        count_verdict, count_words = _judge_count(expect, scope, suspects if blind else [])
        verdict = worst([verdict, count_verdict])
        words.append(count_words)
    words += remarks(scope, suspects)
    doubt = incomplete(pieces.timeline)
    if doubt and _could_turn(verdict, split, expect):
        verdict = Verdict.INCONCLUSIVE
        words.append(doubt)
    return Judgement(verdict, "; ".join(words))


def judge_forbid(forbid: Forbid, pieces: Pieces, findings: Sequence[Finding]) -> Judgement:
    """Judge one ``[[forbid]]``."""
    if forbid.rule:
        return _judge_rule(forbid.rule, pieces, findings)
    wanted = forbid.wanted
    unseen = _no_stages(wanted, pieces) or _nothing_recorded(pieces) or _no_such_stage(wanted, pieces)
    if unseen:
        return Judgement(Verdict.INCONCLUSIVE, unseen)
    if forbid.kernel and not pieces.table.device_events:
        return Judgement(Verdict.INCONCLUSIVE, "no device kernel is recorded, so no name can be compared")
    by_kernel = forbid.kernel is not None or (wanted.op in FAMILIES and wanted.op != "attention")
    source = pieces.kernels if by_kernel else pieces.work
    split = Split([], [], [])
    for piece in source:
        lost = wanted.stage is not None and pieces.stage_untold(piece)
        if not (lost or in_place(piece, wanted)) or not matches_op(piece, wanted.op):
            continue
        answer = all_of(
            [
                None if lost else True,
                satisfies(piece, wanted, proven=True),
                forbid.kernel is None or matches_kernel(piece, forbid.kernel),
            ]
        )
        (split.bad if answer else split.untold if answer is None else split.good).append(piece)
    if split.bad:
        return Judgement(Verdict.FAIL, f"{groups(split.bad, _device_time)} ran")
    unknown = [piece for piece in split.untold if piece.family == Family.UNKNOWN.value]
    told_enough = not _outweighs(unknown, pieces)
    doubtful = [piece for piece in split.untold if not (told_enough and piece.family == Family.UNKNOWN.value)]
    if doubtful:
        words = f"nothing of the kind is proven, but {groups(doubtful, _device_time)} could be"
        return Judgement(Verdict.INCONCLUSIVE, f"{words}: {why_untold(doubtful, wanted)}")
    doubt = incomplete(pieces.timeline)
    what = "kernels" if by_kernel else "calls and kernels"
    seen = f"nothing of the kind among {sum(piece.count for piece in source):,} {what}"
    return Judgement(Verdict.INCONCLUSIVE, f"{seen}; {doubt}") if doubt else Judgement(Verdict.PASS, seen)


def _outweighs(untold: Sequence[Piece], pieces: Pieces) -> bool:
    """Work that is not told is more than :data:`BLIND_SHARE`: of device time, or of kernels where it has no time."""
    timeless = sum(piece.count for piece in untold if piece.kernel is not None and not piece.device_ns)
    if timeless > BLIND_SHARE * sum(piece.count for piece in pieces.kernels):
        return True
    return sum(piece.device_ns for piece in untold) > BLIND_SHARE * pieces.total_ns


def worst(verdicts: Iterable[Verdict]) -> Verdict:
    """Fail before inconclusive before pass."""
    verdicts = list(verdicts)
    return next((one for one in (Verdict.FAIL, Verdict.INCONCLUSIVE) if one in verdicts), Verdict.PASS)


def incomplete(timeline: Timeline) -> str | None:
    """Why absence proves nothing in this trace; ``None`` if it does."""
    report = timeline.report
    if report.damaged:
        return "the file is damaged, and what is wrong or missing could hold a counter-example"
    if report.truncated:
        return "the file is cut off, and the missing part could hold a counter-example"
    lost = [note for note in report.notes if note.kind in (WORK_LOST, WORK_MAY_BE_LOST)]
    if lost:
        # The surest first: what certainly was device work outweighs what may have been.
        text = min(lost, key=lambda note: note.kind != WORK_LOST).text
        return f"{text[0].lower()}{text[1:].rstrip('.')}, and what is missing could hold a counter-example"
    if report.trust is Trust.POOR:
        return "the import lost too much to conclude from what is left (see the import report)"
    replays = graph_replays(timeline.events)
    if replays.under_recorded:
        return f"{replays.words}, and what ran inside could hold a counter-example"
    return None


def hidden_in_graphs(timeline: Timeline) -> str | None:
    """Why absence proves nothing where graphs are recorded as opaque blocks; ``None`` below :data:`BLIND_SHARE`.

    Expectations need not ask: for them such a block is work that no signature knows, which enters their bounds.
    """
    work = timeline.device_work
    opaque_ns = union_ns(work.filter(pl.col("kind") == "graph"))
    busy_ns = union_ns(work) if opaque_ns else 0
    timeless = work.filter((pl.col("kind") == "graph") & (pl.col("dur_ns") == 0)).height
    if timeless > BLIND_SHARE * work.height:
        return (
            f"{timeless:,} graphs are recorded as opaque blocks without a time, "
            "and what ran inside could hold a counter-example"
        )
    if opaque_ns <= BLIND_SHARE * busy_ns:
        return None
    return (
        f"{percent(opaque_ns / busy_ns)} of device time is in graphs recorded as one opaque block, "
        "and what ran inside could hold a counter-example"
    )


def least_share(split: Split) -> float:
    """The share that is proven to hold."""
    basis = _basis(split.all)
    total = basis(split.all)
    return basis(split.good) / total if total else 0.0


def split_scope(scope: Iterable[Piece], wanted: Wanted) -> Split:
    """Cut a scope into what has the properties that are wanted, what has not, and what the trace does not tell."""
    split = Split([], [], [])
    demands = replace(wanted, dtype=())
    for piece in scope:
        answer = satisfies(piece, demands, proven=True)
        if answer is False and wanted.dtype and piece.dtype is None:
            # It may be of another type, and then nothing is asked of it. What is as wanted is so in either case.
            answer = None
        (split.good if answer else split.untold if answer is None else split.bad).append(piece)
    return split


def _device_time(piece: Piece) -> int:
    return piece.device_ns


def _basis(pieces: Sequence[Piece]) -> _Basis:
    """Device time where every call has some; host time where none has; else the number of calls."""
    if all(piece.device_ns for piece in pieces):
        return _Basis("device time", _device_time)
    if not any(piece.device_ns for piece in pieces) and all(piece.row.host_ns for piece in pieces):
        return _Basis("host time", lambda piece: piece.row.host_ns or 0)
    return _Basis("calls", lambda piece: piece.count)


def _judge_share(expect: Expect, split: Split, suspects: Sequence[Piece]) -> tuple[Verdict, list[str]]:
    everything = [*split.all, *suspects]
    basis = _basis(everything)
    total, good, bad, untold = basis(everything), basis(split.good), basis(split.bad), basis(split.untold)
    least, most = good / total, (total - bad) / total
    if least >= expect.min_share and not (expect.min_share == 1 and (split.bad or split.untold)):
        verdict = Verdict.PASS
    elif most < expect.min_share or (expect.min_share == 1 and split.bad):
        verdict = Verdict.FAIL
    else:
        verdict = Verdict.INCONCLUSIVE
    share = total if not suspects else basis(split.all)
    what = f"of {expect.wanted.scope} {basis.words}"
    words = []
    if split.good:
        names = groups(split.good, basis.weigh, times=False)
        words.append(f"{names} of {number(split.all)}, {percent(good / share)} {what}")
    else:
        words.append(f"none of {number(split.all)}")
    if split.bad:
        words.append(groups(split.bad, basis.weigh, unlike=expect.wanted))
    if split.untold:
        words.append(
            f"{groups(split.untold, basis.weigh)} cannot be told ({percent(untold / share)} {what}): "
            f"{why_untold(split.untold, expect.wanted)}"
        )
    if suspects:
        words.append(f"{groups(suspects, _device_time)} could belong to it")
    if verdict is not Verdict.PASS and (least != most or expect.min_share < 1):
        span = percent(least) if least == most else f"{percent(least)} to {percent(most)}"
        words.append(f"so it holds for {span}, and {percent(expect.min_share)} is asked")
    return verdict, words


def _judge_count(expect: Expect, scope: Sequence[Piece], suspects: Sequence[Piece]) -> tuple[Verdict, str]:
    least = expect.min_count or 1
    certain = [
        piece for piece in scope if not piece.is_inferred and (piece.dtype is not None or not expect.wanted.dtype)
    ]
    proven = sum(piece.count for piece in certain)
    possible = sum(piece.count for piece in (*scope, *suspects))
    asked = f"at least {least:,} asked"
    if proven >= least:
        return Verdict.PASS, f"{number(certain)} found, {asked}"
    if possible < least:
        return Verdict.FAIL, f"only {number(certain)} found, {asked}"
    return Verdict.INCONCLUSIVE, f"{number(certain)} proven and up to {possible:,} possible, {asked}"


def _nothing(expect: Expect, pieces: Pieces, suspects: Sequence[Piece]) -> Judgement:
    """No piece is in scope."""
    words = f"nothing to judge: the trace shows no {expect.wanted.scope}{_stages_there(expect.wanted, pieces)}"
    inner = _inner_ops(expect.wanted, pieces)
    unseen = _nothing_recorded(pieces) or inner
    if unseen:
        return Judgement(Verdict.INCONCLUSIVE, f"{words}; {unseen}")
    if suspects:
        could = f"{words}, but {groups(suspects, _device_time)} could be: {why_untold(suspects, expect.wanted)}"
        return Judgement(Verdict.INCONCLUSIVE, could)
    others = pieces.in_scope(replace(expect.wanted, dtype=()))
    if others and not incomplete(pieces.timeline):
        types = ", ".join(sorted({piece.dtype for piece in others if piece.dtype}))
        return Judgement(Verdict.SKIPPED, f"does not apply: the trace shows no {expect.wanted.scope}, only {types}")
    if expect.min_count is None:
        return Judgement(Verdict.INCONCLUSIVE, f"{words} (with min_count = 1 this would fail)")
    doubt = incomplete(pieces.timeline)
    if doubt:
        return Judgement(Verdict.INCONCLUSIVE, f"{words}; {doubt}")
    return Judgement(Verdict.FAIL, f"no {expect.wanted.scope} ran, at least {expect.min_count:,} asked")


def _could_turn(verdict: Verdict, split: Split, expect: Expect) -> bool:
    """What the file lost could turn the verdict; a proven counter-example to "all of it" stands."""
    if verdict is Verdict.FAIL:
        return not (expect.min_share == 1 and split.bad)
    return verdict is Verdict.PASS and bool(expect.wanted.demands)


def _judge_rule(code: str, pieces: Pieces, findings: Sequence[Finding]) -> Judgement:
    found = [finding for finding in findings if finding.code == code]
    proven = [finding for finding in found if finding.confidence.value != "inferred"]
    titles = "; ".join(finding.title for finding in (proven or found))
    if proven:
        return Judgement(Verdict.FAIL, titles)
    if found:
        return Judgement(Verdict.INCONCLUSIVE, f"inferred, not proven: {titles}")
    unseen = _nothing_recorded(pieces) or incomplete(pieces.timeline) or hidden_in_graphs(pieces.timeline)
    if unseen:
        return Judgement(Verdict.INCONCLUSIVE, f"{code} found nothing; {unseen}")
    return Judgement(Verdict.PASS, f"{code} found nothing")


def _no_stages(wanted: Wanted, pieces: Pieces) -> str | None:
    if wanted.stage is None or pieces.has_stages:
        return None
    why = f", because {pieces.why_no_stage}" if pieces.why_no_stage else ""
    return f"no work of the trace is assigned to a stage{why}: there is nothing to compare with {wanted.stage}"


def _no_such_stage(wanted: Wanted, pieces: Pieces) -> str | None:
    """What never occurs breaks no prohibition, but a misspelt stage never occurs either."""
    if wanted.stage is None or any(matches(stage, wanted.stage) for stage in pieces.all_stages):
        return None
    return f"nothing to judge: the trace shows no stage {wanted.stage}{_stages_there(wanted, pieces)}"


def _stages_there(wanted: Wanted, pieces: Pieces) -> str:
    """If no stage of the trace is meant, which there are."""
    if wanted.stage is None or any(matches(stage, wanted.stage) for stage in pieces.stages):
        return ""
    more = ", ..." if len(pieces.stages) > MOST_GROUPS else ""
    return f" (its stages: {', '.join(pieces.stages[:MOST_GROUPS])}{more})"


def _nothing_recorded(pieces: Pieces) -> str | None:
    if pieces.table.device_events or pieces.calls:
        return None
    return "no device kernel is recorded and no op asks for attention"


def _inner_ops(wanted: Wanted, pieces: Pieces) -> str | None:
    """The op is recorded, but others inside it launch the kernels: name them."""
    if wanted.op is None or wanted.op in FAMILIES:
        return None
    events = pieces.timeline.events
    names = events.filter(pl.col("kind") == "op")["name"].unique().cast(pl.String)
    matching = [name for name in names if fnmatchcase(name, wanted.op)]
    marked = (
        events.select((pl.col("kind") == "op") & pl.col("name").cast(pl.String).is_in(matching)).to_series().to_numpy()
    )
    if not marked.any():
        return None
    parents = events["parent_id"].cast(pl.Int64).fill_null(-1).to_numpy()
    nearest = nesting.nearest_marked(parents, marked)
    ids = pieces.timeline.device_work["op_id"].drop_nulls().to_numpy()
    inside = sorted({str(events["name"][int(op)]) for op in set(ids[nearest[ids] >= 0].tolist())})
    recorded = f"the op is recorded {int(marked.sum()):,} times"
    if not inside:
        return f"{recorded}, but no device work under it is"
    return f"{recorded}, but its kernels are launched by ops inside it: name {', '.join(inside[:5])}"
