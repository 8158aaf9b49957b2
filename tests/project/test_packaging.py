"""The wheel holds what the program needs and runs with the core dependencies alone."""

from __future__ import annotations

import subprocess
import sys
import venv
import zipfile

import pytest

import traceview

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def wheel(repository, tracked, tmp_path_factory):
    """The wheel, built from a clean copy of the sources: setuptools would reuse an old ``build`` folder."""
    source, out = tmp_path_factory.mktemp("source"), tmp_path_factory.mktemp("wheel")
    for path in tracked:
        target = source / path.relative_to(repository)
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_bytes(path.read_bytes())
    command = [sys.executable, "-m", "pip", "wheel", "--quiet", "--no-deps", "--no-build-isolation"]
    done = subprocess.run([*command, f"--wheel-dir={out}", str(source)], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    (built,) = out.glob("*.whl")
    return built


def test_the_wheel_holds_the_package_the_samples_and_nothing_else(wheel, repository, tracked):
    with zipfile.ZipFile(wheel) as archive:
        names = set(archive.namelist())
    info = f"traceview-{traceview.__version__}.dist-info/"
    assert {name.split("/")[0] + "/" for name in names} == {"traceview/", info}
    assert info + "licenses/LICENSE" in names
    folders = {"traceview": "traceview", "traceview/parsers": "parsers", "traceview/dashboards": "dashboards"}
    want = {"traceview/py.typed"} | {
        f"{package}/{path.relative_to(repository / folder).as_posix()}"
        for package, folder in folders.items()
        for pattern in ("*.py", "*.pyi", "*.c", "*.toml", "*.json", "*.svg", "*.js", "*.css")
        for path in (repository / folder).rglob(pattern)
    }
    folder = repository / "sample_traces"
    want |= {
        f"traceview/sample_traces/{path.relative_to(folder).as_posix()}"
        for path in tracked
        if path.is_relative_to(folder) and path.suffix != ".py" and path.parent != folder / "bad"
    }
    # Where there is a C compiler, the scanner is built.
    with zipfile.ZipFile(wheel) as archive:
        size = sum(one.file_size for one in archive.infolist() if one.filename.startswith("traceview/sample_traces/"))
    assert size < 2_500_000
    assert {name for name in names if not name.startswith(info) and not name.endswith((".so", ".pyd"))} == want


def test_the_wheel_runs_with_the_core_dependencies_alone(wheel, tmp_path):
    venv.create(tmp_path / "fresh", with_pip=True)
    python = tmp_path / "fresh" / "bin" / "python"
    subprocess.run([python, "-m", "pip", "install", "--quiet", wheel], check=True, capture_output=True)

    version = subprocess.run(
        [python.with_name("traceview"), "--version"], cwd=tmp_path, check=True, capture_output=True, text=True
    )
    assert traceview.__version__ in version.stdout
    load = (
        "import traceview; from traceview import samples; "
        "t = traceview.load(samples.paths('two-ranks')); t.validate(); print(t.events.height > 0)"
    )
    loaded = subprocess.run(
        [python, "-W", "error", "-c", load], cwd=tmp_path, check=True, capture_output=True, text=True
    )
    assert loaded.stdout == "True\n"
