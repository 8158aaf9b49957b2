"""What can go wrong, said so that the reader knows what to do next.

Every failure a user can meet is a :class:`TraceviewError`: one clear line with what failed, where,
why and what to do, plus the process exit code. The command line prints it and never a traceback.
"""

from __future__ import annotations

from enum import IntEnum


class ExitCode(IntEnum):
    """Process exit codes of every command."""

    OK = 0
    """The question was answered and the expectations hold."""
    VIOLATED = 1
    """The trace proves that an expectation does not hold."""
    CANNOT_RUN = 2
    """Bad usage, an unreadable trace, or a defect of traceview itself."""
    INCONCLUSIVE = 3
    """The trace does not hold what is needed to judge."""


class TraceviewError(Exception):
    """A failure with a reason and a next step.

    Attributes:
        code: Stable machine-readable identifier, e.g. ``"not-a-trace"``.
        where: The file, folder or option concerned, or ``""``.
        why: Why it failed, one sentence.
        next_step: What the user can do about it, one sentence, or ``""``.
    """

    exit_code: ExitCode = ExitCode.CANNOT_RUN

    def __init__(self, code: str, *, where: str = "", why: str, next_step: str = "") -> None:
        self.code = code
        self.where = where
        self.why = why
        self.next_step = next_step
        super().__init__(str(self))

    @property
    def lines(self) -> tuple[str, ...]:
        """The failure, one line for each thing that is wrong."""
        return (str(self),)

    def __str__(self) -> str:
        head = f"{self.where}: " if self.where else ""
        tail = f" {self.next_step}" if self.next_step else ""
        return f"{head}{self.why}{tail}"


class UnreadableTraceError(TraceviewError):
    """The input is not a trace that traceview can read, or nothing could be read from it."""


class StrictModeError(TraceviewError):
    """``--strict`` was asked for and the import had to skip or repair something."""


class UsageError(TraceviewError):
    """The request itself makes no sense: a missing file, an option that does not exist."""
