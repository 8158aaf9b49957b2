"""What the app is for, on real recordings."""

from __future__ import annotations

import pytest

from traceview.dashboards import state


@pytest.fixture
def show_real(corpus, show):
    def get(path, page="overview"):
        job = state.shelf().open([str(corpus / path)])
        assert job.done.wait(300)
        assert not job.error
        return show(page, job.id)

    return get


def test_an_unfused_model_is_told_at_once_with_share_and_fix(show_real):
    shown = show_real("pytorch/owlv2-large-h100.json.gz")
    assert shown.texts[0] == "180 attention calls ran unfused: 492.506 ms of device time, 86.9 % of busy time."
    assert "scaled_dot_product_attention" in shown.texts[1]


def test_a_tpu_shows_waiting_against_work(show_real):
    shown = show_real("xprof/tpu-v6e-inference.xplane.pb")
    assert "waits for asynchronous work 97.0 %, compute 3.0 %" in shown.texts[0]
    assert ("Device waits", "97.0 %") in [(one.label, one.value) for one in shown.test.metric]
