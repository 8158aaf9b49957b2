"""One rule per file; :mod:`traceview.rules.catalogue` lists them."""
