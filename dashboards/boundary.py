"""Nothing that goes wrong on a page becomes a traceback: the reader gets the product's one line."""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING, Final

from traceview.dashboards import ui
from traceview.dashboards.library import defect
from traceview.errors import TraceviewError

if TYPE_CHECKING:
    from collections.abc import Callable

_LOG: Final = logging.getLogger(__name__)


def guarded(page: Callable[[], None]) -> None:
    """Run a page; show what goes wrong in it as one line each."""
    try:
        page()
    except TraceviewError as error:
        ui.problem(error.lines)
    except BaseException as error:
        # Streamlit stops and reruns a script with exceptions of its own; Polars raises panics as BaseException.
        if isinstance(error, (KeyboardInterrupt, SystemExit)) or type(error).__module__.startswith("streamlit."):
            raise
        _LOG.exception("a page of the dashboard failed")
        ui.problem([defect(error)])
