"""``traceview kernels`` as text, and the kernel tables of other commands."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from traceview.render.conditions import write_conditions
from traceview.render.grids import Grid
from traceview.render.names import middle_cut, plain
from traceview.render.page import Column, Page
from traceview.render.units import counted, duration, durations, percent, together

if TYPE_CHECKING:
    from collections.abc import Sequence

    from traceview.report import KernelReport, KernelUse


LEAST_NAME: Final = 40
"""Where the list of kernels leaves a name less room than this, the name gets a line of its own."""

MOST_FULL: Final = 8_192
"""Characters of a name that is not shortened. The longest kernel names of C++ templates have some thousands; a name of
megabytes in a damaged or hostile file would make a line that no terminal shows."""

NO_ARITHMETIC: Final = frozenset({"collective", "memcpy", "memset"})


def write_kernel_report(
    result: KernelReport, shown: Sequence[KernelUse] | None, page: Page, *, full_names: bool, family: str | None = None
) -> None:
    """Verdict, conditions, families, kernels.

    Args:
        result: The analysis.
        shown: The kernels to list, chosen and ordered.
        page: Where to.
        full_names: Do not shorten names of up to :data:`MOST_FULL` characters.
        family: The family that ``shown`` is limited to.
    """
    page.verdict(_verdict(result))
    write_conditions(page, result.trace, result.import_report)
    if result.kernels is None or result.families is None or shown is None:
        return
    everywhere = together(result.trace.worked)
    page.heading(f"Device time by family{everywhere}")
    write_families(page, result.families)
    distinct = sum(family in (None, one.family) for one in result.kernels)
    asked = f"kernels of family {family}" if family else "kernels"
    some = asked.capitalize() if len(shown) == distinct else f"{len(shown):,} of {distinct:,} {asked}"
    page.heading(f"{some}{everywhere}")
    write_kernels(page, shown, details=True, full_names=full_names)
    cut = sum(len(one.name) > MOST_FULL for one in shown)
    if full_names and cut:
        page.remark(f"{counted(cut, 'name')} of more than {MOST_FULL:,} characters: --format json has them whole.")
    page.remark(_explain(result))


def _explain(result: KernelReport) -> str:
    text = "share: of the sum of all device work. TC: tensor (matrix) cores; ? means not known."
    if result.device_ns == result.busy_ns:
        return f"{text} Nothing overlaps, so shares are also shares of the busy time."
    return f"{text} busy: time in which it ran, of the time in which anything ran."


def write_families(page: Page, families: Sequence[KernelUse]) -> None:
    """One row per family of device work."""
    page.table(*_family_rows(families))


def families_grid(families: Sequence[KernelUse], heading: str) -> Grid:
    """The same as a table that text and Markdown share."""
    return Grid(heading, *_family_rows(families))


def _family_rows(families: Sequence[KernelUse]) -> tuple[list[Column], list[list[str]]]:
    unit, totals = durations(one.total_ns for one in families)
    columns = [
        Column("share", number=True),
        Column(f"total {unit}", number=True),
        Column("count", number=True),
        Column("family"),
    ]
    rows = [
        [percent(one.share), total, f"{one.count:,}", one.family] for one, total in zip(families, totals, strict=True)
    ]
    return _with_busy(columns, rows, families)


def write_kernels(page: Page, kernels: Sequence[KernelUse], *, details: bool = False, full_names: bool = False) -> None:
    """One row per kernel, its name last.

    Args:
        page: Where to.
        kernels: The rows.
        details: Also provider and busy share.
        full_names: Do not shorten names of up to :data:`MOST_FULL` characters.
    """
    columns, rows = _kernel_rows(kernels, details=details, full_names=full_names)
    page.table(columns, rows, least_name=LEAST_NAME if details and not full_names else 0)


def kernels_grid(kernels: Sequence[KernelUse], heading: str) -> Grid:
    """The same as a table that text and Markdown share."""
    return Grid(heading, *_kernel_rows(kernels))


def _kernel_rows(
    kernels: Sequence[KernelUse], *, details: bool = False, full_names: bool = False
) -> tuple[list[Column], list[list[str]]]:
    unit, totals = durations(one.total_ns for one in kernels)
    mean_unit, means = durations((one.mean_ns for one in kernels), short=True)
    columns = [
        Column("share", number=True),
        Column(f"total {unit}", number=True),
        Column("count", number=True),
        Column(f"mean {mean_unit}", number=True),
        Column("TC"),
        Column("family/implementation"),
        *([Column("provider")] if details else []),
        Column("kernel", name=not full_names),
    ]
    rows = [
        [
            percent(one.share),
            total,
            f"{one.count:,}",
            mean,
            tensor_core(one),
            what(one),
            *([one.provider or "-"] if details else []),
            middle_cut(plain(one.name), MOST_FULL) if full_names else one.name,
        ]
        for one, total, mean in zip(kernels, totals, means, strict=True)
    ]
    if details:
        columns, rows = _with_busy(columns, rows, kernels)
    return columns, rows


def _with_busy(
    columns: list[Column], rows: list[list[str]], uses: Sequence[KernelUse]
) -> tuple[list[Column], list[list[str]]]:
    """Add the busy share after the share, unless overlap nowhere makes them differ."""
    if all(percent(one.share) == percent(one.busy_share) for one in uses):
        return columns, rows
    added = [[row[0], percent(one.busy_share), *row[1:]] for row, one in zip(rows, uses, strict=True)]
    return [columns[0], Column("busy", number=True), *columns[1:]], added


def what(use: KernelUse) -> str:
    """What a kernel is: ``attention/flash-2``, or the family alone."""
    return f"{use.family}/{use.implementation}" if use.implementation else use.family


def tensor_core(use: KernelUse) -> str:
    """Whether a kernel runs on tensor cores, in one word; ``-`` where there is nothing to multiply."""
    if use.tensor_core is None:
        return "-" if use.family in NO_ARITHMETIC else "?"
    return "yes" if use.tensor_core else "no"


def _verdict(result: KernelReport) -> str:
    if not result.trace.events:
        return "No event in this trace."
    if result.kernels is None:
        return "No device work in this trace: only what the host did can be seen."
    if not result.kernels:
        return "No kernel in this trace: its device work is copies and fills only."
    runs = sum(one.count for one in result.kernels)
    first = result.kernels[0]
    return (
        f"{counted(len(result.kernels), 'kernel')} in {counted(runs, 'run')}, "
        f"{duration(sum(one.total_ns for one in result.kernels))} of device time{together(result.trace.worked)}. "
        f"Longest in total: {what(first)}, {percent(first.share)}."
    )
