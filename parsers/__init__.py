"""Parsers: one package per trace format, found through the ``traceview.parsers`` entry points."""
