"""What ``pyproject.toml`` cannot say of the build: the compiled scanner, left out where it cannot be built."""

from setuptools import Extension, setup

setup(
    ext_modules=[
        # Without a C compiler the portable code reads all blocks; see parsers/kineto/fastscan.py.
        Extension("traceview.parsers.kineto._scan", sources=["parsers/kineto/_scan.c"], optional=True),
    ]
)
