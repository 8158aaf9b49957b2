"""The options of the plugin: on the command line, else in the ini file."""

from __future__ import annotations

import os

import pytest

from traceview.pytest_plugin.recording import REPORT_PLUGIN


def option(config: pytest.Config, key: str) -> str | None:
    """What the command line says, else the ini file."""
    value: str | None = config.getoption(f"dispatch_{key}") or config.getini(f"dispatch_{key}")
    return value or None


def option_path(config: pytest.Config, key: str) -> str | None:
    """A path of the command line is relative to where pytest was started, one of the ini file to that file."""
    given: str | None = config.getoption(f"dispatch_{key}")
    if given:
        return os.path.join(config.invocation_params.dir, os.path.expanduser(given))
    stated: str = config.getini(f"dispatch_{key}")
    folder = config.inipath.parent if config.inipath else config.rootpath
    return os.path.join(folder, os.path.expanduser(stated)) if stated else None


def set_up(config: pytest.Config) -> None:
    """Refuse what cannot work before any test runs, and start the report if one is asked for.

    Raises:
        pytest.UsageError: an option cannot be used.
    """
    inconclusive = option(config, "inconclusive")
    if inconclusive not in {None, "fail", "warn"}:
        raise pytest.UsageError(f'dispatch_inconclusive must be "fail" or "warn", not "{inconclusive}".')
    expect = option_path(config, "expect")
    if expect and not os.path.isfile(expect):
        raise pytest.UsageError(
            f"dispatch expectations: no such file: {expect}. Check --dispatch-expect or the ini file."
        )
    report = option_path(config, "report")
    if report and os.path.isdir(report):
        raise pytest.UsageError(f"dispatch report: this is a folder: {report}. Name a file in it.")
    if report and not os.path.isdir(os.path.dirname(report)):
        raise pytest.UsageError(f"dispatch report: no such folder: {os.path.dirname(report)}. Create it first.")
    if report and not config.option.collectonly:
        from traceview.pytest_plugin.session_report import SessionReport

        config.pluginmanager.register(SessionReport(report, config), REPORT_PLUGIN)
