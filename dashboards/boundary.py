"""Nothing that goes wrong on a page becomes a traceback: the reader gets the product's one line."""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING, Final

from streamlit.runtime.scriptrunner import RerunException, StopException

from traceview.dashboards import ui
from traceview.dashboards.shelf import defect
from traceview.errors import TraceviewError

if TYPE_CHECKING:
    from collections.abc import Callable

_LOG: Final = logging.getLogger(__name__)

_PASSED_ON: Final = (RerunException, StopException, KeyboardInterrupt, SystemExit)
"""How Streamlit ends a script early and starts it again, and how a program is ended: nothing went wrong."""


def guarded(page: Callable[[], None]) -> None:
    """Run a page; show what goes wrong in it as one line each."""
    try:
        page()
    except _PASSED_ON:
        raise
    except TraceviewError as error:
        ui.problem(error.lines)
    except BaseException as error:  # noqa: BLE001 - Polars raises panics as BaseException
        _LOG.exception("a page of the dashboard failed")
        ui.problem([defect(error)])
