"""What ``pyproject.toml`` cannot say of the build: the compiled scanners, left out where they cannot be built."""

from setuptools import Extension, setup

setup(
    ext_modules=[
        # Without a C compiler the portable code reads all; see parsers/kineto/fastscan.py and parsers/xprof/columns.py.
        Extension("traceview.parsers.kineto._scan", sources=["parsers/kineto/_scan.c"], optional=True),
        Extension("traceview.parsers.xprof._wire", sources=["parsers/xprof/_wire.c"], optional=True),
    ]
)
