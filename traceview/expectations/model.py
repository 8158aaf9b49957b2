"""A file of expectations as typed values, and what judging one of them yields."""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import StrEnum
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from datetime import date

    from traceview.stages import StagePattern


class Verdict(StrEnum):
    """Outcome of a check or of one expectation."""

    PASS = "pass"  # noqa: S105 - a verdict, not a password
    FAIL = "fail"
    INCONCLUSIVE = "inconclusive"
    SKIPPED = "skipped"
    """Only of one expectation: its ``when`` does not hold for this trace. A check is never skipped."""


class Policy(StrEnum):
    """What counts besides the file's own expectations."""

    BUILTIN = "builtin"
    """Findings that prove a slow path fail the check too."""
    NONE = "none"
    """Only what the file states."""


@dataclass(frozen=True, slots=True)
class Wanted:
    """Which work is meant, and what must hold of it.

    Attributes:
        op: Family (``"attention"``, ``"gemm"``, …), op name, or glob of op names; ``None`` for all work.
        stage: Glob of stage names, ``None`` for all work.
        direction: ``"forward"`` or ``"backward"``, ``None`` for both.
        implementation: Accepted implementation ids and the words ``fused`` and ``flash``; empty for any.
        provider: Accepted providers; empty for any.
        tensor_core: Whether matrix work must, or must not, run on tensor cores; ``None`` for either.
        precision: Accepted precisions; empty for any.
        dtype: Only work that was asked for with inputs of these types, empty for all. It narrows, it demands nothing.
    """

    op: str | None = None
    stage: str | None = None
    direction: str | None = None
    implementation: tuple[str, ...] = ()
    provider: tuple[str, ...] = ()
    tensor_core: bool | None = None
    precision: tuple[str, ...] = ()
    dtype: tuple[str, ...] = ()

    @property
    def scope(self) -> str:
        """The work in words, e.g. ``attention backward in decode*``."""
        parts = [
            " or ".join(self.dtype),
            self.op or "",
            self.direction or "",
            f"in {self.stage}" if self.stage else "",
        ]
        return " ".join(part for part in parts if part)

    @property
    def demands(self) -> list[str]:
        """What must hold, each in words, e.g. ``["flash or cudnn", "by pytorch"]``."""
        tensor_core = {None: "", True: "on tensor cores", False: "not on tensor cores"}[self.tensor_core]
        parts = [
            " or ".join(self.implementation),
            f"by {' or '.join(self.provider)}" if self.provider else "",
            tensor_core,
            f"in {' or '.join(self.precision)}" if self.precision else "",
        ]
        return [part for part in parts if part]


@dataclass(frozen=True, slots=True)
class When:
    """For which traces an expectation is meant. Empty parts hold always.

    Attributes:
        torch: Comparisons with the PyTorch version, e.g. ``">=2.9, <2.11"``.
        cudnn: The same for cuDNN.
        cuda: The same for the CUDA runtime.
        arch: Globs of architecture names, e.g. ``"sm90"``, ``"gfx9*"``.
        gpu: Globs of product names, e.g. ``"*H100*"``.
    """

    torch: str | None = None
    cudnn: str | None = None
    cuda: str | None = None
    arch: tuple[str, ...] = ()
    gpu: tuple[str, ...] = ()

    @property
    def text(self) -> str:
        """In words, to follow an expectation; empty if it holds always."""
        parts = [f"{key} {value}" for key in ("torch", "cudnn", "cuda") if (value := getattr(self, key))]
        parts += [f"{key} {' or '.join(value)}" for key in ("arch", "gpu") if (value := getattr(self, key))]
        return f" (when {', '.join(parts)})" if parts else ""


@dataclass(frozen=True, slots=True)
class Expect:
    """One ``[[expect]]``.

    Attributes:
        line: Line of its header.
        wanted: Which work, and what must hold of it.
        min_share: Least share of that work's time for which it must hold, above 0 and at most 1.
        min_count: Least number of calls that must occur; ``None``: it need not occur.
        when: For which traces it is meant.
    """

    line: int
    wanted: Wanted
    min_share: float = 1.0
    min_count: int | None = None
    when: When = When()

    @property
    def text(self) -> str:
        """The expectation in one line; ``[[accept]]`` refers to it by this."""
        demands = self.wanted.demands
        if demands and self.min_share < 1:
            demands.append(f"for at least {self.min_share:.6g} of its time")
        if self.min_count is not None:
            demands.append(f"at least {self.min_count} call{'s' if self.min_count > 1 else ''}")
        return f"{self.wanted.scope}: {', '.join(demands)}{self.when.text}"


@dataclass(frozen=True, slots=True)
class Forbid:
    """One ``[[forbid]]``: work that is all this at once must not occur.

    Attributes:
        line: Line of its header.
        wanted: Which work.
        kernel: Glob of kernel names, ``None`` for any.
        rule: Code of a rule that must find nothing, instead of everything else.
        when: For which traces it is meant.
    """

    line: int
    wanted: Wanted
    kernel: str | None = None
    rule: str | None = None
    when: When = When()

    @property
    def text(self) -> str:
        """The prohibition in one line."""
        return f"{self._work}{self.when.text}"

    @property
    def _work(self) -> str:
        if self.rule:
            return f"forbid rule {self.rule}"
        kernel = [f"kernel {self.kernel}"] if self.kernel else []
        demands = ", ".join([*self.wanted.demands, *kernel])
        scope = self.wanted.scope
        return f"forbid {scope}: {demands}" if scope and demands else f"forbid {scope or demands}"


@dataclass(frozen=True, slots=True)
class Limit:
    """One key of ``[limits]``: a figure of the trace must not exceed ``most``."""

    line: int
    key: str
    most: float
    word: str = ""
    """What is stated instead of a number; ``most`` is its place among the words, best first."""

    @property
    def text(self) -> str:
        """The limit in one line."""
        return f"{self.key} at least {self.word}" if self.word else f"{self.key} at most {self.most:.6g}"


@dataclass(frozen=True, slots=True)
class Accept:
    """One ``[[accept]]``: a known finding or violation that does not count for now.

    Attributes:
        path: File it stands in.
        line: Line of its header.
        rule: Rule code, ``None`` if it accepts an expectation.
        expectation: Text of an expectation, or a glob of texts; ``None`` if it accepts a rule.
        where: Glob of the finding's place, ``None`` for any place.
        reason: Why it is accepted.
        expires: Last day on which it counts; ``None``: never expires.
    """

    path: str
    line: int
    rule: str | None
    expectation: str | None
    where: str | None
    reason: str
    expires: date | None


@dataclass(frozen=True, slots=True)
class Context:
    """Facts that the trace cannot hold. All are ``None`` if not given."""

    torch: str | None = None
    cudnn: str | None = None
    cuda: str | None = None
    gpu: str | None = None
    notes: str | None = None


@dataclass(frozen=True, slots=True)
class Expectations:
    """A whole file. ``path`` is as the user gave it."""

    path: str
    policy: Policy = Policy.BUILTIN
    context: Context = field(default_factory=Context)
    expects: tuple[Expect, ...] = ()
    forbids: tuple[Forbid, ...] = ()
    limits: tuple[Limit, ...] = ()
    accepts: tuple[Accept, ...] = ()
    stages: tuple[StagePattern, ...] = ()

    @property
    def states_something(self) -> bool:
        """There is an expectation, a prohibition or a limit to judge."""
        return bool(self.expects or self.forbids or self.limits)

    @property
    def asks_for_stages(self) -> bool:
        """Something is stated about the work of a stage."""
        wanted = [*(one.wanted for one in self.expects), *(one.wanted for one in self.forbids)]
        return any(one.stage is not None for one in wanted)


class ResultKind(StrEnum):
    """Which part of the file a result belongs to."""

    EXPECT = "expect"
    FORBID = "forbid"
    LIMIT = "limit"


@dataclass(frozen=True, slots=True)
class Judgement:
    """A verdict and what was observed, in words and numbers."""

    verdict: Verdict
    observed: str


@dataclass(frozen=True, slots=True)
class ExpectationResult:
    """One expectation, prohibition or limit, judged.

    Attributes:
        kind: Part of the file.
        path: The file, as given.
        line: Its line.
        text: What was expected, in one line.
        verdict: What the trace says about it, whether accepted or not.
        observed: What the trace shows, in words and numbers.
        accepted: Why and until when a violation does not count; ``None`` if it counts.
    """

    kind: ResultKind
    path: str
    line: int
    text: str
    verdict: Verdict
    observed: str
    accepted: str | None = None

    @property
    def counts(self) -> Verdict:
        """The verdict that counts: an accepted violation passes."""
        return Verdict.PASS if self.accepted else self.verdict
