"""What the tests about the repository share."""

from __future__ import annotations

import subprocess

import pytest


@pytest.fixture(scope="session")
def tracked(repository):
    """Every file that git knows or would add; the test is skipped outside of a git checkout."""
    command = ["git", "ls-files", "--cached", "--others", "--exclude-standard", "-z"]
    listed = subprocess.run(command, cwd=repository, capture_output=True, text=True, check=False)
    if listed.returncode:
        pytest.skip("not a git checkout")
    return [repository / name for name in listed.stdout.split("\0") if name and (repository / name).is_file()]
