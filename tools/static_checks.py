"""Type check and import contracts, on the package as it is installed.

``parsers/`` lies beside ``traceview/`` in the repository but is imported as ``traceview.parsers``. mypy and
import-linter look for modules in folders and do not follow the mapping in ``pyproject.toml``, so this script
first lays the package out under ``build/checked`` as a wheel would hold it, and runs both there.

Usage: ``python tools/static_checks.py [types] [imports]`` (both without a name).
"""

from __future__ import annotations

import shutil
import subprocess
import sys
import tomllib
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
CHECKED = ROOT / "build" / "checked"


def package_folders() -> dict[str, Path]:
    """The import packages that ``pyproject.toml`` maps to folders, e.g. ``traceview.parsers`` to ``parsers``."""
    with (ROOT / "pyproject.toml").open("rb") as file:
        mapping = tomllib.load(file)["tool"]["setuptools"]["package-dir"]
    return {package: ROOT / folder for package, folder in sorted(mapping.items())}


def lay_out() -> None:
    """Copy every package to its import path below :data:`CHECKED`. Times are kept, so mypy's cache stays valid."""
    shutil.rmtree(CHECKED, ignore_errors=True)
    for package, folder in package_folders().items():
        shutil.copytree(folder, CHECKED.joinpath(*package.split(".")), ignore=shutil.ignore_patterns("__pycache__"))


def in_repository(text: str) -> str:
    """``text`` with the paths of the copy turned into paths of the repository, longest match first."""
    for package, folder in sorted(package_folders().items(), reverse=True):
        text = text.replace("/".join(package.split(".")) + "/", folder.relative_to(ROOT).as_posix() + "/")
    return text


def run(*arguments: str) -> int:
    """Run this interpreter in the copy; print its output with repository paths."""
    done = subprocess.run([sys.executable, *arguments], cwd=CHECKED, capture_output=True, text=True, check=False)
    print(in_repository(done.stdout + done.stderr), end="")
    return done.returncode


def main(names: list[str]) -> int:
    """Run the checks named, or all; 0 when they all pass."""
    config = str(ROOT / "pyproject.toml")
    lint_imports = (
        "import sys; from importlinter.cli import lint_imports; "
        "sys.exit(lint_imports(config_filenames=(sys.argv[1],), cache_dir=sys.argv[2], no_logo=True))"
    )
    commands = {
        "types": (
            "-m",
            "mypy",
            f"--config-file={config}",
            f"--cache-dir={ROOT / '.mypy_cache'}",
            "--package=traceview",
        ),
        "imports": ("-c", lint_imports, config, str(ROOT / ".import_linter_cache")),
    }
    if unknown := set(names) - set(commands):
        print(f"unknown check: {', '.join(sorted(unknown))}; known: {', '.join(commands)}", file=sys.stderr)
        return 2
    lay_out()
    return max(run(*commands[name]) for name in names or commands)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
