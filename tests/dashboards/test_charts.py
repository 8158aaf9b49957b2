"""Charts can be taken away as files, drawn on this machine."""

from __future__ import annotations

import pytest

from traceview.dashboards import charts
from traceview.dashboards.views import waterfall

pytest.importorskip("vl_convert")


def test_a_chart_is_a_file(opened):
    chart = waterfall.waterfall_chart(waterfall.part_waterfall(opened("tpu").report.time.devices))
    svg = charts.drawn(chart, "svg").decode()
    assert svg.startswith("<svg")
    assert "waits for async. work" in svg
    assert charts.drawn(chart, "png").startswith(b"\x89PNG")
