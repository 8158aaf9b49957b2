"""What each check of a test found, kept with the test until the report collects it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

import pytest

if TYPE_CHECKING:
    from traceview.render.outputs import Checked

REPORT_PLUGIN: Final = "traceview-session-report"
CHECKS: Final = pytest.StashKey[list[dict[str, Any]]]()
"""On a test's node: its checks that no report has collected yet, as plain JSON values."""


def record_check(request: pytest.FixtureRequest, checked: Checked) -> None:
    """Note a check that ran."""
    if _is_wanted(request):
        from traceview.render.documents import check_document

        document = check_document(checked.result, checked.trace, checked.imported, checked.code)
        _add(request, {"verdict": checked.result.verdict.value, "error": None, "check": document})


def record_error(request: pytest.FixtureRequest, text: str) -> None:
    """Note a check that could not run."""
    if _is_wanted(request):
        _add(request, {"verdict": None, "error": text, "check": None})


def _is_wanted(request: pytest.FixtureRequest) -> bool:
    return request.config.pluginmanager.has_plugin(REPORT_PLUGIN)


def _add(request: pytest.FixtureRequest, entry: dict[str, Any]) -> None:
    request.node.stash.setdefault(CHECKS, []).append(entry)
