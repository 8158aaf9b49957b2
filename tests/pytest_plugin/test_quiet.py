"""A project that does not use the plugin does not notice it."""

from __future__ import annotations

import subprocess
import sys

import pytest

HEAVY = ("polars", "numpy", "rich", "torch", "isal")
EMPTY_RUN = "import sys, pytest; pytest.main(['-rA', '-p', 'no:cacheprovider', *sys.argv[1:]])\n"


def python(code, *arguments, cwd):
    done = subprocess.run(
        [sys.executable, "-c", code, *arguments], cwd=cwd, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_nothing_heavy_is_imported_until_a_trace_is_judged(tmp_path):
    (tmp_path / "test_it.py").write_text("def test_it():\n    pass\n")
    show = (
        EMPTY_RUN
        + f"print('loaded', 'traceview.pytest_plugin' in sys.modules, [n for n in {HEAVY} if n in sys.modules])"
    )
    assert "loaded True []" in python(show, cwd=tmp_path)


@pytest.mark.parametrize("name", ["traceview", "traceview.pytest_plugin"])
def test_asking_for_the_fixtures_alone_imports_nothing_heavy(tmp_path, monkeypatch, name):
    monkeypatch.setenv("PYTEST_DISABLE_PLUGIN_AUTOLOAD", "1")
    (tmp_path / "test_it.py").write_text("def test_it(assert_dispatch, profile_dispatch):\n    pass\n")
    show = EMPTY_RUN + f"print('loaded', [name for name in {HEAVY} if name in sys.modules])"
    out = python(show, "-p", name, cwd=tmp_path)
    assert "1 passed" in out
    assert "loaded []" in out


def test_the_import_takes_no_time_because_it_brings_nothing_along(tmp_path):
    code = (
        "import pytest, sys; before = set(sys.modules); import traceview.pytest_plugin; "
        "print(*sorted(set(sys.modules) - before))"
    )
    assert python(code, cwd=tmp_path).split() == ["traceview", "traceview.pytest_plugin"]


def test_a_project_with_folders_of_the_same_names_keeps_its_own(run, pytester):
    for name in ("parsers", "dashboards", "rules", "render"):
        pytester.mkpydir(name).joinpath("__init__.py").write_text(f"OWN = {name!r}\n")
    result = run(
        """
import dashboards, parsers, render, rules

def test_it(assert_dispatch):
    assert_dispatch(FAST)
    assert [module.OWN for module in (parsers, dashboards, rules, render)] == ["parsers", "dashboards", "rules", "render"]
""",
        subprocess=True,
    )
    result.assert_outcomes(passed=1)


def test_a_marker_of_that_name_belongs_to_a_project_that_does_not_use_ours(run):
    run("@pytest.mark.dispatch('fast lane', 3)\ndef test_it():\n    pass\n", "--strict-markers").assert_outcomes(
        passed=1
    )


def test_strict_warnings_stay_quiet(run):
    run("def test_it(assert_dispatch):\n    assert_dispatch(FAST)\n", "-W", "error", subprocess=True).assert_outcomes(
        passed=1
    )
