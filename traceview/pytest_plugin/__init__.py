"""pytest plugin: hold a test to the kernels that ran.

Two fixtures: ``assert_dispatch`` judges a trace, ``profile_dispatch`` records one with PyTorch and judges it. Every
pytest run on a machine where traceview is installed imports this module, so it imports nothing that takes time and
does nothing unless it is asked to. PYTEST_DONT_REWRITE: it holds no assertion that pytest should explain.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from traceview.pytest_plugin.asserting import AssertDispatch
    from traceview.pytest_plugin.profiling import ProfileDispatch

__all__ = ["DispatchInconclusiveWarning"]

_OPTIONS = ("expect", "inconclusive", "report")
_MARKER = (
    "dispatch(*, expect=None, inconclusive=None, torch=None, cudnn=None): what assert_dispatch and profile_dispatch "
    "hold this test to unless the call says otherwise"
)


class DispatchInconclusiveWarning(pytest.PytestWarning):
    """A trace could not tell whether the expectations hold, and the test asked for a warning instead of a failure."""


def pytest_addoption(parser: pytest.Parser) -> None:
    """Options and ini keys; the help of an ini key is that of its option."""
    group = parser.getgroup("traceview", "kernel dispatch (traceview)")
    expect = "what dispatch checks hold traces to unless a test says otherwise: a dispatch.toml"
    inconclusive = "what a trace that cannot tell means: the test fails (fail, the default) or warns (warn)"
    report = "write every dispatch check of the session to this file, as JSON"
    group.addoption("--dispatch-expect", metavar="PATH", help=expect)
    group.addoption("--dispatch-inconclusive", choices=("fail", "warn"), help=inconclusive)
    group.addoption("--dispatch-report", metavar="PATH", help=report)
    parser.addini("dispatch_expect", expect)
    parser.addini("dispatch_inconclusive", inconclusive)
    parser.addini("dispatch_report", report)


def pytest_configure(config: pytest.Config) -> None:
    """Refuse what cannot work before any test runs, and start the report if one is asked for."""
    config.addinivalue_line("markers", _MARKER)
    if any(config.getoption(f"dispatch_{key}") or config.getini(f"dispatch_{key}") for key in _OPTIONS):
        from traceview.pytest_plugin.options import set_up

        set_up(config)


@pytest.fixture
def assert_dispatch(request: pytest.FixtureRequest) -> AssertDispatch:
    """Judge a trace: ``assert_dispatch("trace.json", expect="dispatch.toml")``.

    ``trace`` is a path, several paths, or what ``traceview.load`` returned. ``expect`` is the path of a dispatch.toml,
    a dict of the same shape, or, if left out, that of the marker ``dispatch``, of ``--dispatch-expect`` or of the ini
    key ``dispatch_expect``, else the built-in policy. Returns the result if it holds; fails the test if it does not.
    """
    from traceview.pytest_plugin.asserting import AssertDispatch

    return AssertDispatch(request)


@pytest.fixture
def profile_dispatch(request: pytest.FixtureRequest) -> ProfileDispatch:
    """Record a block with PyTorch and judge it.

    ``with profile_dispatch(expect={...}): model(x)``

    ``profile_dispatch(...)(function)`` is a function that is recorded and judged at each call. The trace lies in
    ``tmp_path``.
    """
    from traceview.pytest_plugin.asserting import AssertDispatch
    from traceview.pytest_plugin.profiling import ProfileDispatch

    return ProfileDispatch(AssertDispatch(request), request)
