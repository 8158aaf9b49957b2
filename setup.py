"""What ``pyproject.toml`` cannot say of the build: compiled scanners that may be left out, and samples for the app."""

import re
import shutil
from pathlib import Path

from setuptools import Extension, setup
from setuptools.command.build_py import build_py

SAMPLES = Path("sample_traces")
LIST = Path("dashboards", "samples.py")


class BuildWithSamples(build_py):
    """Puts the samples that the dashboard offers beside it; an editable install finds them in the checkout."""

    def run(self) -> None:
        """Build, then copy every file that ``dashboards/samples.py`` names."""
        super().run()
        if self.editable_mode or not SAMPLES.is_dir():
            return
        for name in re.findall(r'"([\w./-]+\.(?:json|json\.gz|sqlite|xplane\.pb))"', LIST.read_text(encoding="utf-8")):
            target = Path(self.build_lib, "traceview", "dashboards", "samples", name)
            target.parent.mkdir(parents=True, exist_ok=True)
            shutil.copyfile(SAMPLES / name, target)


setup(
    cmdclass={"build_py": BuildWithSamples},
    ext_modules=[
        # Without a C compiler the portable code reads all; see parsers/kineto/fastscan.py and parsers/xprof/columns.py.
        Extension("traceview.parsers.kineto._scan", sources=["parsers/kineto/_scan.c"], optional=True),
        Extension("traceview.parsers.xprof._wire", sources=["parsers/xprof/_wire.c"], optional=True),
    ],
)
