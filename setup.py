"""What ``pyproject.toml`` cannot say of the build: compiled scanners that may be left out, and the sample traces."""

from __future__ import annotations

from pathlib import Path

from setuptools import Extension, setup
from setuptools.command.build_py import build_py

SAMPLES = Path("sample_traces")
LEFT_OUT = {".py", ".pyc"}


def samples() -> list[Path]:
    """The sample traces with their notes and tables; not the programs that make them, nor the broken twins."""
    return sorted(
        path
        for path in SAMPLES.rglob("*")
        if path.is_file() and path.suffix not in LEFT_OUT and SAMPLES / "bad" not in path.parents
    )


class BuildPy(build_py):
    """Put the sample traces beside the modules, where :mod:`traceview.samples` looks for them.

    They are no package: their folder holds the programs that make them, which are not installed. A checkout, where
    nothing is copied, is used as it lies.
    """

    def _targets(self) -> list[tuple[Path, Path]]:
        return [(path, Path(self.build_lib) / "traceview" / path) for path in samples()]

    def run(self) -> None:
        """Build as ever, then copy."""
        super().run()
        if not self.editable_mode:
            for source, target in self._targets():
                self.mkpath(str(target.parent))
                self.copy_file(str(source), str(target))

    def get_outputs(self, include_bytecode: bool = True) -> list[str]:  # noqa: FBT001, FBT002 - the caller's signature
        """What lies in the build afterwards."""
        copied = [] if self.editable_mode else [str(target) for _, target in self._targets()]
        return [*super().get_outputs(include_bytecode), *copied]

    def get_source_files(self) -> list[str]:
        """What a source distribution needs."""
        return [*super().get_source_files(), *map(str, samples())]


setup(
    cmdclass={"build_py": BuildPy},
    ext_modules=[
        # Without a C compiler the portable code reads all; see parsers/kineto/fastscan.py and parsers/xprof/columns.py.
        Extension("traceview.parsers.kineto._scan", sources=["parsers/kineto/_scan.c"], optional=True),
        Extension("traceview.parsers.xprof._wire", sources=["parsers/xprof/_wire.c"], optional=True),
    ],
)
