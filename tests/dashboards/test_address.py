"""A browser takes every change of the address for a place to go back to, so a page makes few of them."""

from __future__ import annotations

import pytest
from streamlit.runtime.state.query_params import QueryParams


@pytest.fixture
def changes(monkeypatch):
    """Every change of the address, as it is after it."""
    made = []
    send = QueryParams._send_query_param_msg

    def noted(self):
        made.append(self.to_dict())
        send(self)

    monkeypatch.setattr(QueryParams, "_send_query_param_msg", noted)
    return made


def test_what_a_page_shows_goes_into_its_address_with_one_change(show, as_open, changes):
    trace, other = as_open("cuda"), as_open("flash-requested-flash-ran.cuda-authored.json.gz")
    for page in ("dispatch", "gaps", "timeline", "compare"):
        changes.clear()
        shown = show(page, trace)
        assert len(changes) == 1, (page, changes)
        assert changes[0]["trace"] == trace
        assert len(changes[0]) > 1, page
    assert other in changes[0].values()
    changes.clear()
    shown.test.run()
    assert changes == [], "the same page again is no other place"


def test_a_page_that_says_nothing_of_its_own_leaves_the_address_as_it_is(show, as_open, changes):
    trace = as_open("cuda")
    for page in ("overview", "recompiles", "what_if", "rules"):
        show(page, trace)
    show("what_if", trace, what="denoise:faster:10")
    show("dispatch", trace, row="0")
    assert changes == []
