"""Names from a trace are text: none reaches a place where Markdown or HTML is read."""

from __future__ import annotations

import pytest

from hostile_trace import write_hostile
from traceview.dashboards import state


@pytest.mark.parametrize("page", ["overview", "dispatch", "gaps", "recompiles"])
def test_no_name_is_read_as_markdown(show, tmp_path_factory, page):
    path = write_hostile(tmp_path_factory.mktemp("hostile"))
    job = state.shelf().open([str(path)])
    assert job.done.wait(300)
    assert not job.error
    shown = show(page, job.id)
    marks = ("<img", "**bold**", "javascript:", "<b>", "onerror", "$E=mc", ":smile:")
    assert [one for one in shown.marked if any(mark in one for mark in marks)] == []
    assert [one.value for one in shown.test.get("html") if "onerror" in str(one)] == []
    if page in {"overview", "dispatch"}:
        # It is shown all the same.
        assert any("<img" in str(frame.to_dict()) for frame in shown.tables)
