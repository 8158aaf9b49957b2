"""The app without a browser: pages run in this process, each sample is read once."""

from __future__ import annotations

from pathlib import Path

import pytest

pytest.importorskip("streamlit", reason="the extra traceview[dashboard] is not installed")

from streamlit.testing.v1 import AppTest
from streamlit.util import calc_hash

from traceview.dashboards import state
from traceview.dashboards.entry import __file__ as entry

SCRIPT = Path(entry).with_name("script.py")
SAMPLES = {
    "cuda": ["flash-requested-math-ran.cuda-authored.json.gz"],
    "gaps": ["gaps-and-copies.cuda-authored.json"],
    "ranks": ["two-ranks/rank0.cuda-authored.json", "two-ranks/rank1.cuda-authored.json"],
    "nsys": ["two-ranks.nsys-authored.sqlite"],
    "tpu": ["xprof/jax-tpu-unfused.xprof-authored.xplane.pb"],
    "cpu": ["torch-cpu-gaps.json"],
    "recompiles": ["torch-cpu-recompiles.json.gz"],
    "jax-cpu": ["xprof/jax-cpu-steps.xplane.pb"],
    "no-device": ["no-device-work.cuda-authored.json"],
    "cut": ["bad/cut-in-event.json"],
}


class Shown:
    """One page of the app as it was run."""

    def __init__(self, test: AppTest):
        self.test = test

    @property
    def texts(self) -> list[str]:
        """What stands there as plain text."""
        return [one.value for one in self.test.text]

    @property
    def marked(self) -> list[str]:
        """Everything that Streamlit reads as Markdown."""
        kinds = (self.test.markdown, self.test.caption, self.test.info, self.test.success, self.test.error)
        return [one.value for kind in kinds for one in kind] + [one.label for one in self.test.expander]

    @property
    def words(self) -> str:
        """All words, one element a line."""
        return "\n".join([*self.texts, *self.marked, *(f"{one.label} {one.value}" for one in self.test.metric)])

    @property
    def tables(self) -> list:
        """All tables, as pandas frames."""
        return [one.value for one in self.test.dataframe]


def run_page(module: str, trace_id: str | None = None, **query: str) -> Shown:
    test = AppTest.from_file(str(SCRIPT), default_timeout=300)
    if trace_id is not None:
        test.query_params["trace"] = trace_id
    for name, value in query.items():
        test.query_params[name] = value
    test._page_hash = calc_hash("" if module == "open" else module)
    if module != "open":
        # The hash of the first page is that of the script until pages are registered.
        test.session_state["given"] = True
    test.run()
    assert not test.exception
    return Shown(test)


@pytest.fixture(autouse=True)
def patient(monkeypatch):
    """A busy machine must not turn an answer into progress."""
    monkeypatch.setattr(state, "WAIT_S", 300.0)


@pytest.fixture(scope="session")
def show():
    """Run a page: ``show("overview", trace_id)``."""
    return run_page


@pytest.fixture(scope="session")
def opened(repository):
    """The analysed sample of a name in ``SAMPLES``, or of a path."""
    shelf = state.shelf()
    # Reading a sample anew because others were opened since would take most of the time of the tests.
    shelf._most = 50
    known = {}

    def get(name):
        if name not in known:
            files = SAMPLES.get(name, [name])
            job = shelf.open([str(repository / "sample_traces" / file) for file in files])
            assert job.done.wait(300)
            assert not job.error, job.error
            known[name] = job.opened
        return known[name]

    return get


@pytest.fixture(scope="session")
def as_open(opened):
    """The id of a sample that the app has open."""
    return lambda name: opened(name).id
