"""``traceview explain`` as text."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from traceview.attention import INFERRED, SLOW, UNTOLD
from traceview.explaining import ATTENTION, Explained, asked
from traceview.findings import CostOf
from traceview.knowledge.attention_wrappers import WRAPPERS
from traceview.reasons import EVIDENCE_CLASSES, Role
from traceview.render.conditions import write_conditions
from traceview.render.dispatch_text import implementation, shapes
from traceview.render.names import kernel_name
from traceview.render.page import Column, Page
from traceview.render.units import counted, duration, durations, percent, saving
from traceview.render.why import rule_words

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from traceview.dispatch import Dispatch, DispatchTable
    from traceview.explaining import Explanations
    from traceview.findings import Finding
    from traceview.reasons import Reason
    from traceview.report import ImportSummary, TraceInfo

MOST_KERNELS: Final = 2
STYLES: Final = {"slow": "bold red", "unknown": "bold yellow", "ok": "bold"}

_STORY: Final = (
    ((Role.CAUSE, Role.ALSO), "refused"),
    ((Role.OPEN,), "cannot tell"),
    ((Role.ALLOWED,), "allowed"),
    ((Role.NOT_EXCLUDED,), "not excluded"),
    ((Role.ORDER,), "so"),
    ((Role.MEANS,), "it means"),
)
_BY_HAND: Final = (
    "scaled_dot_product_attention was not called, so there was no backend to choose: the code writes attention out, or "
    "took its eager branch whatever the flag said"
)
_BY_XLA: Final = (
    "the program holds attention as products and a softmax, and XLA does not fuse them: JAX's own implementation, "
    "which is the default, is always so, and so is attention written out"
)
_TOLD: Final = ("TV101", "TV102", "TV103", "TV108")
"""Rules whose finding is the story itself."""


def write_explanations(
    found: Explanations, trace: TraceInfo, summary: ImportSummary, page: Page, *, limit: int
) -> None:
    """The answer, the conditions, a story per group of calls, and one line for each that needs none.

    Args:
        found: The explanations.
        trace: Which trace.
        summary: Its import.
        page: Where to.
        limit: Most stories, and most lines of calls without one.
    """
    page.verdict(_answer(found))
    write_conditions(page, trace, summary)
    for note in found.notes:
        page.bullet(note)
    stories = [one for one in found.explained if not one.expected]
    for one in stories[:limit]:
        _write_story(page, one, found.table.busy_ns)
    if len(stories) > limit:
        page.blank()
        page.remark(f"{counted(len(stories) - limit, 'more group')} of calls: --limit {len(stories)} explains all.")
    _write_expected(page, [one for one in found.explained if one.expected], limit, attention=found.wanted == ATTENTION)
    _write_hints(page, [finding for finding in found.findings if finding.code not in _TOLD])


def _answer(found: Explanations) -> str:
    total = sum(one.count for one in found.explained)
    if found.wanted != ATTENTION:
        device_ns = sum(one.device_ns for one in found.explained)
        share = _share(device_ns, found.table.busy_ns)
        return f"{counted(total, 'dispatch', 'dispatches')} of {found.wanted}: {duration(device_ns)}{share}."
    if not total:
        return _nothing(found.table)
    parts = []
    for proven, words in ((True, "took a slow path"), (False, "seem to have taken a slow path")):
        slow = [one for one in found.explained if one.first.implementation in SLOW and one.proven is proven]
        if slow:
            spent = sum(one.device_ns for one in slow)
            cost = f": {duration(spent)} of device time{_share(spent, found.table.busy_ns)}" if spent else ""
            parts.append(f"{sum(one.count for one in slow):,} of {counted(total, 'attention call')} {words}{cost}")
    untold = sum(one.count for one in found.explained if one.first.implementation in UNTOLD)
    if untold:
        parts.append(f"the trace does not tell what ran for {untold:,} of {counted(total, 'attention call')}")
    others = [one for one in found.explained if one.first.implementation not in (*SLOW, *UNTOLD)]
    surprising = sum(one.count for one in others if not one.expected)
    if surprising:
        calls = f"{surprising:,} of {counted(total, 'attention call')}"
        parts.append(f"{calls} ran fused, but not on the backend that is tried first")
    if not parts:
        return f"All {total:,} attention calls ran fused." if total > 1 else "The attention call ran fused."
    answer = "; ".join(parts)
    return f"{answer[0].upper()}{answer[1:]}."


def _nothing(table: DispatchTable) -> str:
    if not table.dispatches:
        return "The trace has no device work and no op that asks for attention: there is nothing to explain."
    text = "No attention call was found: no op asks for attention and no kernel is known to be one"
    if table.unknown_ns:
        total_ns = sum(row.device_ns for row in table.dispatches)
        text += f"; {percent(table.unknown_ns / total_ns)} of device time is in kernels that no signature names"
    return f"{text}."


def _share(device_ns: int, busy_ns: int) -> str:
    return f", {percent(device_ns / busy_ns)} of the busy time" if busy_ns and device_ns else ""


def _write_story(page: Page, one: Explained, busy_ns: int) -> None:
    first = one.first
    noun = "call" if first.family == ATTENTION else "kernel"
    page.heading(
        f"{implementation(first)}: {counted(one.count, noun)} of {first.op or 'an op that is not recorded'}",
        STYLES[first.verdict],
    )
    page.facts(story(one, busy_ns, page.width), blank=False)


def story(one: Explained, busy_ns: int, width: int) -> list[tuple[str, str]]:
    """Asked, got, refused, cost, change, source: names and values; a value without a name belongs to the one before.

    Args:
        one: The calls.
        busy_ns: Busy time of the devices, ns; 0 if it is not known.
        width: Most characters of a kernel name, and some more.
    """
    first = one.first
    lines = [("asked", _asked(one)), ("called at", one.where or ""), ("got", _got(one, width))]
    for roles, name in _STORY:
        lines += [(name if at == 0 else "", _sentence(reason)) for at, reason in enumerate(one.of(*roles))]
    if first.implementation == "unfused":
        lines.append(("so", _why_unfused(first)))
    lines.append(("costs", _costs(one, busy_ns)))
    lines += [("change" if at == 0 else "", line) for at, line in enumerate(one.change)]
    lines += [("source" if at == 0 else "", line) for at, line in enumerate(_sources(one.reasons))]
    return lines


def _why_unfused(row: Dispatch) -> str:
    wrapper = WRAPPERS.get(row.op or "")
    told = wrapper.so if wrapper else _BY_XLA if row.provider == "xla" else _BY_HAND
    return f"if it is attention at all: {told}" if row.evidence in INFERRED else told


def _asked(one: Explained) -> str:
    inputs = asked(one.first) or shapes(one.first.inputs, tensors=2) or "shapes are not recorded"
    more = len({str(row.inputs) for row in one.rows}) - 1
    return f"{inputs}; and {counted(more, 'more input signature')}" if more else inputs


def _got(one: Explained, width: int) -> str:
    seen = next((reason.text for reason in one.of(Role.OBSERVED)), "")
    # The sentence names the kernel in full where a kernel is the proof.
    kernels = [kernel_name(kernel.name, width - 20) for kernel in one.first.kernels[:MOST_KERNELS]]
    if seen.startswith("kernel "):
        seen = ""
    ran = f"kernels {', '.join(kernels)}" if kernels else "no kernel is recorded"
    return "; ".join(part for part in (implementation(one.first), seen, ran) if part)


def _sentence(reason: Reason) -> str:
    if reason.role is Role.ORDER:
        return f"{reason.text} ({reason.evidence})" if reason.evidence else reason.text
    if reason.role is Role.MEANS:
        facts = f" ({reason.detail.facts})" if reason.detail.facts else ""
        return f"{reason.rule}: {reason.text}{facts}"
    return rule_words(reason, reason.detail.facts)


def _costs(one: Explained, busy_ns: int) -> str:
    if one.cost_ns is not None:
        return saving(one.cost_ns, CostOf.DEVICE, busy_ns)
    if one.device_ns:
        return f"{duration(one.device_ns)} of device time{_share(one.device_ns, busy_ns)}"
    return f"{duration(one.host_ns)} on the host" if one.host_ns is not None else "not recorded"


def _sources(reasons: Sequence[Reason]) -> Iterator[str]:
    """Where each rule was read, once."""
    told = set()
    for reason in reasons:
        detail = reason.detail
        if reason.rule in told or not detail.sources or reason.role is Role.NOT_EXCLUDED:
            continue
        told.add(reason.rule)
        more = len(detail.sources) - 1
        rest = f"; and {counted(more, 'more source')}" if more else ""
        known = EVIDENCE_CLASSES.get(detail.evidence_class, detail.evidence_class)
        yield f"{reason.rule}, {known}: {detail.sources[0].text}{rest}"


def _write_expected(page: Page, rows: Sequence[Explained], limit: int, *, attention: bool) -> None:
    if not rows:
        return
    page.heading("Ran as expected" if attention else "What ran")
    shown = rows[:limit]
    on_device = any(one.device_ns for one in shown)
    unit, times = durations(one.device_ns if on_device else one.host_ns for one in shown)
    by_op: dict[str, list[list[str]]] = {}
    for one, time in zip(shown, times, strict=True):
        shares = [row.share for row in one.rows if row.share is not None]
        by_op.setdefault(one.first.op or "op not recorded", []).append(
            [
                f"{one.count:,}",
                time,
                percent(sum(shares) if shares else None),
                implementation(one.first) if one.first.family == ATTENTION else _kind(one),
                _inputs(one),
            ]
        )
    page.table(
        [
            Column("calls" if attention else "kernels", number=True),
            Column(f"{'device' if on_device else 'host'} {unit}", number=True),
            Column("of busy", number=True),
            Column("implementation"),
            Column("inputs", name=True),
        ],
        [line for op, group in by_op.items() for line in (op, *group)],
    )
    if len(rows) > limit:
        page.remark(f"{counted(len(rows) - limit, 'more row')}: --limit {len(rows)} shows all.")


def _kind(one: Explained) -> str:
    family, ran = one.first.family, one.first.implementation
    return f"{family}/{ran}" if ran else family


def _inputs(one: Explained) -> str:
    if not one.first.inputs:
        return one.first.kernels[0].name if one.first.kernels else ""
    more = len(one.rows) - 1
    return shapes(one.first.inputs, tensors=2) + (f" and {more:,} more" if more else "")


def _write_hints(page: Page, findings: Sequence[Finding]) -> None:
    if not findings:
        return
    page.heading("Also found about attention")
    for finding in findings:
        page.bullet(f"{finding.code} {finding.severity.value}: {finding.title}")
    page.remark("traceview check-dispatch shows them in full.")
