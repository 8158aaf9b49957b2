"""Where stages come from: one module per kind of evidence. :mod:`traceview.stages` puts them together."""
