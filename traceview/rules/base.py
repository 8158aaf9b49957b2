"""What a rule is."""

from __future__ import annotations

import inspect
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING

import polars as pl

from traceview.collective_skew import CollectiveSkew, collective_skew
from traceview.dispatch import DispatchTable, dispatch_table
from traceview.gaps import both_causes, idle, works
from traceview.idle_split import IdleSplit
from traceview.recompiles import recompiles
from traceview.rules.device_work import device_work
from traceview.steady_state import SteadyState, find_steady_state
from traceview.steps import StepTable, find_steps

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable
    from types import ModuleType

    from traceview.findings import Finding, Severity
    from traceview.idle_work import Work
    from traceview.timeline import Timeline

HEADINGS = (
    "What it finds",
    "Why it costs",
    "Evidence it needs",
    "When it is wrong",
    "Fix",
    "Scope and sources",
)
"""The headings of every rule's docstring, in order."""


@dataclass(frozen=True)
class Facts:
    """What a rule may look at. What costs time to find out is found out once, when the first rule asks."""

    timeline: Timeline
    table: DispatchTable

    @classmethod
    def of(cls, timeline: Timeline) -> Facts:
        """The facts of a linked timeline, to hand to :func:`traceview.report.report` and :func:`traceview.gate.check`.

        Both look for findings; with the same facts they look once.
        """
        return cls(timeline, dispatch_table(timeline))

    @cached_property
    def work(self) -> pl.DataFrame:
        """Device work with identity, op and device: :data:`traceview.rules.device_work.DEVICE_WORK`."""
        return device_work(self.timeline, self.table.calls)

    @cached_property
    def works(self) -> tuple[Work, ...]:
        """The work of each device, or of the host without devices: :func:`traceview.gaps.works`."""
        return works(self.timeline)

    @cached_property
    def idle(self) -> pl.DataFrame:
        """Idle time of the devices by cause: :data:`traceview.gaps.GAP_PIECES`; without devices nothing.

        What a wait explains is charged to it whole, so that the findings on waits and on a late host do not overlap.
        """
        return self._causes[1].filter(pl.col("device").is_not_null())

    @property
    def gap_pieces(self) -> pl.DataFrame:
        """Idle time by cause as ``traceview gaps`` shows it: :func:`traceview.gaps.causes` of all idle time."""
        return self._causes[0]

    @cached_property
    def idle_split(self) -> IdleSplit:
        """Says what idle time of the steps is due to."""
        return IdleSplit(self.timeline, self.works)

    @cached_property
    def _causes(self) -> tuple[pl.DataFrame, pl.DataFrame]:
        stretches = idle(self.timeline, self.works)
        return both_causes(self.timeline, stretches, self.works, host=self.idle_split.host)

    @cached_property
    def _found(self) -> dict[str, tuple[Finding, ...]]:
        """What each rule found that was asked, by code."""
        return {}

    def found(self, rule: Rule) -> tuple[Finding, ...]:
        """What a rule finds; it is asked once."""
        if rule.code not in self._found:
            self._found[rule.code] = tuple(rule.check(self))
        return self._found[rule.code]

    @cached_property
    def steps(self) -> StepTable:
        """The steps of the program."""
        return find_steps(self.timeline)

    @cached_property
    def steady(self) -> SteadyState | None:
        """The recorded steps past the first one and the warm-up; ``None`` if there are none."""
        return find_steady_state(self.timeline, self.steps)

    @cached_property
    def recompiles(self) -> pl.DataFrame:
        """What was compiled: :data:`traceview.recompiles.RECOMPILES`."""
        return recompiles(self.timeline, self.steady)

    @cached_property
    def skew(self) -> CollectiveSkew:
        """Waiting in collectives for a late rank."""
        return collective_skew(self.timeline)

    @cached_property
    def span_ns(self) -> int:
        """From the first to the last piece of device work, summed over devices, ns."""
        ends = self.work.group_by("device").agg(
            start=pl.col("start_ns").min(), end=(pl.col("start_ns") + pl.col("dur_ns")).max()
        )
        return int((ends["end"] - ends["start"]).sum())


@dataclass(frozen=True, slots=True)
class Rule:
    """One rule.

    Attributes:
        code: ``"TV"`` and three digits; never reused.
        name: Kebab-case name.
        summary: One sentence.
        severity: The worst severity it can yield.
        check: Facts in, findings out.
        doc: The module's docstring, which is its documentation.
    """

    code: str
    name: str
    summary: str
    severity: Severity
    check: Callable[[Facts], Iterable[Finding]]
    doc: str


def rule_of(module: ModuleType) -> Rule:
    """Make the :class:`Rule` of a rule module from its ``CODE``, ``NAME``, ``SEVERITY``, ``check`` and docstring.

    Raises:
        TypeError: the file is not named after code and name, so that neither could be found by the other.
    """
    named = f"{module.CODE}_{module.NAME}".lower().replace("-", "_")
    if module.__name__.rpartition(".")[2] != named:
        raise TypeError(f"{module.__name__} is rule {module.CODE} {module.NAME}: its file must be {named}.py")
    doc = inspect.cleandoc(module.__doc__ or "")
    return Rule(
        code=module.CODE,
        name=module.NAME,
        summary=doc.splitlines()[0],
        severity=module.SEVERITY,
        check=module.check,
        doc=doc,
    )
