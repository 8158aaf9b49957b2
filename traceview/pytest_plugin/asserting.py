"""``assert_dispatch``: judge a trace, and fail the test with what ``traceview check-dispatch`` would print."""

from __future__ import annotations

import os
import sys
import warnings
from collections.abc import Iterable
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any, Final, Literal

import pytest

from traceview.errors import ExitCode, TraceviewError, UsageError
from traceview.pytest_plugin import DispatchInconclusiveWarning
from traceview.pytest_plugin.recording import record_check, record_error
from traceview.pytest_plugin.settings import Place, Settings, settings_of, shown_path

if TYPE_CHECKING:
    from traceview.gate import CheckResult
    from traceview.pytest_plugin.settings import Expect
    from traceview.render.outputs import Checked
    from traceview.timeline import Timeline

_HERE: Final = os.path.dirname(__file__)


class AssertDispatch:
    """The fixture's value: call it with a trace.

    Args:
        request: Of the test.
    """

    def __init__(self, request: pytest.FixtureRequest) -> None:
        self._request = request

    def __call__(
        self,
        trace: str | os.PathLike[str] | Iterable[str | os.PathLike[str]] | Timeline,
        expect: Expect | None = None,
        *,
        inconclusive: Literal["fail", "warn"] | None = None,
        torch: str | None = None,
        cudnn: str | None = None,
    ) -> CheckResult:
        """Judge a trace.

        Args:
            trace: A path, several paths (the ranks of one run), or what :func:`traceview.load` returned.
            expect: Path of a dispatch.toml, relative to pytest's root folder, or a dict of the same shape, in which
                ``schema`` may be left out. ``None``: see :mod:`traceview.pytest_plugin.settings`. ``{}``: the built-in
                policy, whatever the marker and the options say.
            inconclusive: What a trace that cannot tell means.
            torch: PyTorch version, if the trace does not hold it.
            cudnn: cuDNN version, if the trace does not hold it.

        Returns:
            The result, if it holds, or if it cannot be told and only a warning is asked for.

        Raises:
            AssertionError: an expectation is violated; the message is the text of ``traceview check-dispatch``.
            pytest.fail.Exception: the trace cannot tell, or the check cannot run; never a skip.
        """
        __tracebackhide__ = True
        given = {"expect": expect, "inconclusive": inconclusive, "torch": torch, "cudnn": cudnn}
        return self.judge(trace, calling_place(), given)

    def judge(self, trace: Any, place: Place, given: dict[str, Any]) -> CheckResult:
        """Judge ``trace`` for the call at ``place``; see :meth:`__call__`."""
        __tracebackhide__ = True
        reason = None
        try:
            # What the test says is read before the trace: a mistake in it should not wait for a large file.
            settings = settings_of(self._request, place, **given)
            checked = _checked(trace, settings)
        except TraceviewError as error:
            reason = error.lines
        if reason is not None:
            self.cannot_run(*reason)
        record_check(self._request, checked)
        _act_on(checked, settings.inconclusive)
        return checked.result

    def cannot_run(self, *reasons: str) -> None:
        """Fail the test because the check cannot run: one line for each thing that is wrong, no traceback."""
        __tracebackhide__ = True
        from traceview.render.names import plain

        text = "\n".join(f"traceview: error: {plain(reason)}" for reason in reasons)
        record_error(self._request, text)
        pytest.fail(text, pytrace=False)


def calling_place() -> Place:
    """The line outside of this package that is being run, for expectations that are written there."""
    frame = sys._getframe(1)  # noqa: SLF001 - what the standard library's own logging and warnings use
    while frame.f_back and os.path.dirname(frame.f_code.co_filename) == _HERE:
        frame = frame.f_back
    return Place(shown_path(frame.f_code.co_filename), frame.f_lineno)


def _checked(trace: Any, settings: Settings) -> Checked:
    from traceview.expectations.model import Context
    from traceview.gate import Verdict, check
    from traceview.render.outputs import DEFAULT_LIMIT, Checked
    from traceview.report import describe, summarise_import

    timeline = _timeline(trace)
    result = check(
        timeline,
        settings.expectations,
        context=Context(torch=settings.torch, cudnn=settings.cudnn),
        # In UTC, so that every machine of a team agrees on what has expired.
        today=datetime.now(tz=UTC).date(),
    )
    softened = result.verdict is Verdict.INCONCLUSIVE and settings.inconclusive == "warn"
    return Checked(
        result,
        describe(timeline),
        summarise_import(timeline),
        ExitCode.OK if softened else result.exit_code,
        DEFAULT_LIMIT,
        root=os.getcwd(),
    )


def _timeline(trace: Any) -> Timeline:
    from traceview.loading import load
    from traceview.timeline import Timeline

    if isinstance(trace, Timeline):
        return trace
    paths = [trace] if isinstance(trace, str | os.PathLike) else list(trace) if isinstance(trace, Iterable) else None
    if paths is None or not all(isinstance(path, str | os.PathLike) for path in paths):
        raise UsageError(
            "bad-argument",
            why=f"trace must be a path, several paths, or what traceview.load returns, not {type(trace).__name__}.",
        )
    return load(paths)


def _act_on(checked: Checked, inconclusive: str) -> None:
    """Fail, warn, or do nothing."""
    __tracebackhide__ = True
    from traceview.gate import Verdict
    from traceview.render.outputs import plain_text

    verdict = checked.result.verdict
    if verdict is Verdict.PASS:
        return
    if verdict is Verdict.FAIL:
        raise AssertionError(plain_text(checked).rstrip("\n"))
    if inconclusive == "fail":
        pytest.fail(plain_text(checked).rstrip("\n"))
    from traceview.render.names import plain

    place = calling_place()
    message = f"INCONCLUSIVE: {plain(checked.result.summary)} (trace {plain(checked.trace.files[0])})"
    warnings.warn_explicit(message, DispatchInconclusiveWarning, os.path.abspath(place.path), place.line)
