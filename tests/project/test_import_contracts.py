"""The import contracts hold what they promise: each one fails on a module that breaks it."""

from __future__ import annotations

import shutil
import subprocess
import sys

import pytest

EMPTY = '"""Nothing."""\n'


@pytest.mark.parametrize(
    ("module", "source", "complaint"),
    [
        ("traceview/utils.py", EMPTY, "traceview.utils"),
        ("traceview/render/pie.py", "import pandas\n", "traceview.render.pie -> pandas"),
        ("traceview/rules/late.py", "import traceview.cli\n", "traceview.rules is not allowed to import traceview.cli"),
        ("traceview/cli/direct.py", "import traceview.parsers.kineto\n", "traceview.cli.direct"),
        (
            "parsers/kineto/nosy.py",
            "import traceview.knowledge\n",
            "traceview.parsers is not allowed to import traceview.knowledge",
        ),
    ],
    ids=["no layer", "framework in the core", "upwards", "parser by name", "parser looks up"],
)
def test_a_broken_contract_is_found(tmp_path, repository, module, source, complaint):
    for part in ("traceview", "parsers", "dashboards", "tools", "pyproject.toml"):
        copy = shutil.copytree if (repository / part).is_dir() else shutil.copy
        copy(repository / part, tmp_path / part)
    (tmp_path / module).write_text(source)

    done = subprocess.run(
        [sys.executable, "tools/static_checks.py", "imports"], cwd=tmp_path, capture_output=True, text=True, check=False
    )

    assert done.returncode == 1, done.stdout
    assert complaint in " ".join(done.stdout.split())
