"""Write a dispatch.toml and judge an authored timeline by it."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

import sample_traces
from authored_timeline import timeline
from traceview.expectations.reading import read_expectations
from traceview.expectations.tables import ExpectationsError
from traceview.gate import check

FLASH = "void pytorch_flash::flash_fwd_kernel<pytorch_flash::Flash_fwd_kernel_traits<64, 128, 128, 4> >"


@pytest.fixture
def write(tmp_path):
    """Write a file of expectations; `schema = 1` is its first line."""

    def write_file(text, name="dispatch.toml"):
        path = tmp_path / name
        path.write_text("schema = 1\n" + text, encoding="utf-8")
        return str(path)

    return write_file


@pytest.fixture
def errors(write, tmp_path):
    """The problems of a file, without its path."""

    def read(text, reader=read_expectations):
        with pytest.raises(ExpectationsError) as caught:
            reader(write(text))
        return [line.removeprefix(f"{tmp_path}/") for line in caught.value.lines]

    return read


@pytest.fixture
def check_events(write):
    """Check events by a file."""

    def judged(text, *events, **more):
        return check(timeline(*events), read_expectations(write(text)), **more)

    return judged


@pytest.fixture
def judge(check_events):
    """Verdict and observation of each expectation of a file."""

    def judged(text, *events):
        return [(one.verdict.value, one.observed) for one in check_events(text, *events).expectations]

    return judged


@pytest.fixture(scope="session")
def samples():
    return Path(sample_traces.__file__).parent


@pytest.fixture
def program(tmp_path):
    """Run the installed program in an empty folder."""

    def run(*arguments):
        return subprocess.run(
            [Path(sys.executable).parent / "traceview", *map(str, arguments)],
            cwd=tmp_path,
            capture_output=True,
            text=True,
            check=False,
        )

    return run
