"""Small traces for trying traceview, and the programs that make them. Not installed with the package."""
