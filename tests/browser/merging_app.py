"""The app, told to merge on the server what it would otherwise send as it is: a large trace would take too long."""

from __future__ import annotations

from traceview.dashboards.app import main
from traceview.dashboards.timeline import detail

detail.MOST_EVENTS = 300  # type: ignore[misc]

main()
