"""The app, told to merge on the server what it would otherwise send as it is: a large trace would take too long."""

from __future__ import annotations

import runpy
from importlib.util import find_spec
from pathlib import Path

from traceview.dashboards.timeline import detail

detail.MOST_EVENTS = 300  # type: ignore[misc]

spec = find_spec("traceview.dashboards")
assert spec is not None
assert spec.submodule_search_locations is not None
runpy.run_path(str(Path(next(iter(spec.submodule_search_locations))) / "app.py"))
