"""The timeline view: lanes and columns to draw, level of detail, what a selection holds, and the component itself.

Everything but :mod:`traceview.dashboards.timeline.component` is plain Python on frames; only that module needs
Streamlit. The drawing is done by ``core.js`` (arithmetic, no DOM) and ``timeline.js`` (canvas).
"""
