"""``--dispatch-report``: every check of the session in one JSON document.

The checks of a test travel on pytest's own test reports. So the processes of pytest-xdist need nothing of their own,
and a process that dies takes with it only the checks of the test that it was running.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

import pytest

from traceview.pytest_plugin.recording import CHECKS

if TYPE_CHECKING:
    from collections.abc import Generator

ATTRIBUTE: Final = "traceview_dispatch"
"""On a test report: the checks of that phase of the test. Only plain values, which xdist can send."""

_VERDICTS: Final = ("pass", "fail", "inconclusive")


class SessionReport:
    """Collects and writes; registered only if a report is asked for.

    Args:
        path: Where the report goes.
        config: Of the session.
    """

    def __init__(self, path: str, config: pytest.Config) -> None:
        self._path = path
        self._is_worker = hasattr(config, "workerinput")
        self._checks: list[dict[str, Any]] = []
        self._notes: list[str] = []
        self._outcome = ""

    @pytest.hookimpl(wrapper=True)
    def pytest_runtest_makereport(self, item: pytest.Item) -> Generator[None, pytest.TestReport, pytest.TestReport]:
        """Put the checks of a phase on its report."""
        report = yield
        checks = item.stash.get(CHECKS, None)
        if checks:
            setattr(report, ATTRIBUTE, list(checks))
            checks.clear()
        return report

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        """Collect; with pytest-xdist this is called with what the workers send."""
        for check in getattr(report, ATTRIBUTE, ()):
            self._checks.append({"test": report.nodeid, "phase": report.when, **check})

    @pytest.hookimpl(optionalhook=True)
    def pytest_testnodedown(self, node: Any, error: object) -> None:
        """A worker of pytest-xdist has ended; if it crashed, say what is missing."""
        if error:
            name = getattr(getattr(node, "gateway", None), "id", "a worker")
            self._notes.append(f"{name} ended before its time: checks of the test that it was running are missing.")

    @pytest.hookimpl(trylast=True)
    def pytest_sessionfinish(self, exitstatus: int) -> None:
        """Write the report."""
        if self._is_worker:
            return
        from traceview.errors import TraceviewError
        from traceview.expectations.writing import write_file
        from traceview.render.documents import dumps

        try:
            write_file(self._path, dumps(self.document(int(exitstatus))) + "\n", replace=True)
            self._outcome = f"traceview: {_counted(len(self._checks), 'dispatch check')} written to {self._path}"
        except TraceviewError as error:
            self._outcome = f"traceview: error: the dispatch report is not written: {error}"

    def pytest_terminal_summary(self, terminalreporter: pytest.TerminalReporter) -> None:
        """Say where the report is."""
        if self._outcome:
            terminalreporter.write_line(self._outcome)

    def document(self, exit_status: int) -> dict[str, Any]:
        """``traceview.pytest/1``: the checks by test, in the order in which each test made them."""
        checks = sorted(self._checks, key=lambda check: str(check["test"]))
        notes = [] if checks else ["No dispatch check ran in this session."]
        return {
            "schema": "traceview.pytest/1",
            "pytest_exit_status": exit_status,
            "counts": {
                **{verdict: sum(check["verdict"] == verdict for check in checks) for verdict in _VERDICTS},
                "error": sum(check["verdict"] is None for check in checks),
            },
            "checks": checks,
            "notes": [{"part": "checks", "text": text} for text in (*notes, *self._notes)],
        }


def _counted(count: int, what: str) -> str:
    return f"{count:,} {what}{'' if count == 1 else 's'}"
