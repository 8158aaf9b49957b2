"""Promises about the repository as a whole."""

from __future__ import annotations

import re
import subprocess
import sys
import tomllib

import pytest

import traceview

# Assembled so that this file does not hold the words it looks for.
FOREIGN_WORDS = ["/" + "work/", "/" + "farm/", "shared" + "/", "corpus " + "README"]


def test_the_version_is_written_once(repository, tracked):
    sources = [path for path in tracked if path.suffix in {".py", ".toml", ".md", ".yml"}]
    places = [
        path.relative_to(repository).as_posix()
        for path in sources
        if re.search(rf'version\w*\s*=\s*"{re.escape(traceview.__version__)}"', path.read_text(encoding="utf-8"))
    ]
    assert places == ["traceview/__init__.py"]


def test_a_module_has_500_lines_at_most(tracked, repository):
    long = {
        path.relative_to(repository).as_posix(): lines
        for path in tracked
        if path.suffix == ".py" and (lines := len(path.read_text(encoding="utf-8").splitlines())) > 500
    }
    assert long == {}


def test_no_module_is_called_utils(tracked):
    assert [path for path in tracked if path.stem in {"util", "utils", "helpers", "misc", "common"}] == []


def test_the_project_speaks_of_itself_alone(tracked, repository):
    found = [
        (path.relative_to(repository).as_posix(), word)
        for path in tracked
        for word in FOREIGN_WORDS
        if word.encode() in path.read_bytes()
    ]
    assert found == []


def test_every_package_folder_is_packaged(repository):
    settings = tomllib.loads((repository / "pyproject.toml").read_text(encoding="utf-8"))["tool"]["setuptools"]
    folders = {
        ".".join([package, *init.parent.relative_to(repository / folder).parts])
        for package, folder in settings["package-dir"].items()
        for init in (repository / folder).rglob("__init__.py")
    }
    assert sorted(settings["packages"]) == sorted(folders)


def test_actions_are_pinned_to_a_commit(repository):
    for workflow in [repository / "action.yml", *(repository / ".github" / "workflows").glob("*.yml")]:
        for action in re.findall(r"uses:\s*(\S+)", workflow.read_text(encoding="utf-8")):
            assert re.fullmatch(r"[\w./-]+@[0-9a-f]{40}", action), f"{workflow.name}: {action}"


@pytest.mark.parametrize("statement", ["import traceview", "import traceview.cli.main"])
def test_starting_up_does_not_import_the_heavy_parts(statement):
    code = f"import sys; {statement}; print(sorted({{'numpy', 'polars', 'rich'}} & set(sys.modules)))"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout == "[]\n"


def test_relative_links_in_pages_lead_somewhere(repository):
    pages = [*repository.glob("*.md"), *(repository / "docs").rglob("*.md")]
    broken = [
        f"{page.relative_to(repository)}: {target}"
        for page in pages
        for target in re.findall(r"\]\(([^)#\s]+)(?:#[^)]*)?\)", page.read_text(encoding="utf-8"))
        if not target.startswith(("http://", "https://")) and not (page.parent / target).exists()
    ]
    assert broken == []
