"""The pages What-if and Compare: pure views first, then the pages as the app runs them."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from hostile_trace import write_hostile
from traceview import load
from traceview.compare import compare_sides, side
from traceview.dashboards import state
from traceview.dashboards.views import compare as compare_view
from traceview.dashboards.views import what_if as view
from traceview.whatif import Change, Effect, what_if

FLASH = "flash-requested-flash-ran.cuda-authored.json.gz"
SHARES = {"denoise": 0.785, "vae_decode": 0.193, "a/b:c,d": 0.01}


@pytest.fixture(scope="module")
def stages(opened):
    return opened("cuda").report.stages


@pytest.fixture(scope="module")
def compared(opened):
    return compare_sides(side(opened("cuda").timeline), side(opened(FLASH).timeline))


@pytest.mark.parametrize(
    "changes",
    [
        {},
        {"denoise": Change(Effect.FASTER, 3.5)},
        {"denoise": Change(Effect.FLOOR), "a/b:c,d": Change(Effect.REMOVED), "vae_decode": Change(Effect.OVERLAPPED)},
    ],
)
def test_changes_survive_the_address(changes):
    assert view.decoded(view.encoded(changes), SHARES) == changes


@pytest.mark.parametrize(
    "text",
    ["nothing", "denoise", "denoise:explode", "other:removed", "denoise:faster:nan", "denoise:faster:1e9",
     "denoise:faster:", ":::,,,", "denoise:faster:-3"],
)  # fmt: skip
def test_an_address_that_makes_no_sense_changes_nothing(text):
    assert view.decoded(text, SHARES) == {}


def test_the_answer_names_range_and_bound(stages):
    assert view.answer(what_if(stages, {})) == "A step takes 10.22 ms. Choose what happens to a stage."
    found = what_if(stages, {"denoise": Change(Effect.FASTER, 10)}, host_ns=1_240_623)
    assert view.answer(found) == (
        "A step would take 2.999 ms to 3.089 ms instead of 10.22 ms: 3.31x as fast to 3.41x as fast."
    )
    assert dict(view.bounds(found))["ceiling"] == "4.66x as fast, if the changed stages took no time at all"
    assert "what is not changed takes 2.196 ms, most of it vae_decode" in dict(view.bounds(found))["bounded by"]
    host = what_if(stages, {"denoise": Change(Effect.FASTER, 10)}, host_ns=9_000_000)
    assert dict(view.bounds(host))["worst case"] == "the host alone needs 9.000 ms"
    gone = what_if(stages, {"denoise": Change(Effect.REMOVED)})
    assert "instead of 10.22 ms: 4.66x as fast." in view.answer(gone)


def test_the_bars_add_up_to_the_range(stages):
    found = what_if(stages, {"denoise": Change(Effect.FASTER, 10)})
    bars = view.bars(found)
    assert [bar.wall_ns for bar in bars.bars] == pytest.approx(
        [found.before_ns, found.least_ns, found.most_ns], abs=len(bars.names)
    )


def test_what_if_page_answers_and_keeps_its_choice_in_the_address(show, as_open):
    shown = show("what_if", as_open("cuda"))
    assert shown.texts[0].startswith("A step takes 10.22 ms.")
    shown.test.selectbox[0].select("faster").run()
    assert not shown.test.exception
    shown.test.slider[0].set_value(10.0).run()
    assert shown.texts[0].startswith("A step would take 2.999 ms to 3.089 ms")
    assert "denoise:faster:10" in str(shown.test.query_params["what"])
    again = show("what_if", as_open("cuda"), what="denoise:faster:10")
    assert again.texts[0] == shown.texts[0]
    assert again.test.slider[0].value == 10.0


def test_an_unknown_floor_is_said(show, as_open):
    shown = show("what_if", as_open("cuda"), what="vae_decode:floor")
    assert any("vae_decode: its hardware floor is not known" in one for one in shown.texts)


@pytest.mark.parametrize("name", ["tpu", "cpu", "no-device"])
def test_what_if_page_for_every_kind_of_trace(show, as_open, name):
    shown = show("what_if", as_open(name))
    assert "This could not be done" not in shown.words
    assert shown.texts


def test_compare_views(compared):
    differ, alike = compare_view.conditions(compared)
    assert differ == []
    assert "device: NVIDIA H100 80GB HBM3" in alike
    assert [one.value for one in compare_view.figures(compared)] == ["10.22 ms", "3.211 ms", "-68.6 %"]
    bars = compare_view.bars(compared)
    assert [bar.wall_ns for bar in bars.bars] == pytest.approx([10_224_462, 3_211_418], abs=len(bars.names))
    table = compare_view.dispatch_table(compared).frame
    assert table.row(0, named=True) | {"before ms": None, "after ms": None} == {
        "work": "attention", "stage": "denoise", "ran before": "math (slow) 2", "runs after": "flash-2 2",
        "before ms": None, "after ms": None,
    }  # fmt: skip
    kernels = compare_view.kernels_table(compared).frame
    assert kernels["difference ms"].abs().is_sorted(descending=True)
    stages = compare_view.stages_table(compared).frame
    assert stages["stage"].to_list() == ["denoise", "vae_decode", "text_encoder", "Unattributed"]


def test_compare_page_needs_two_traces_and_says_so(show, monkeypatch):
    monkeypatch.setattr(type(state.shelf()), "jobs", property(lambda _: ()))
    assert any("Open two traces" in one for one in show("compare").marked)


def test_compare_page_puts_comparability_before_the_answer(show, as_open):
    before, after = as_open("cuda"), as_open(FLASH)
    shown = show("compare", before=before, after=after)
    assert any("Comparable, as far as recorded" in one for one in shown.marked)
    assert any(one.startswith("Faster: a step takes 3.211 ms instead of 10.22 ms") for one in shown.texts)
    assert ("Change", "-68.6 %") in [(one.label, one.value) for one in shown.test.metric]
    assert any("runs after" in frame.columns for frame in shown.tables)
    turned = show("compare", before=after, after=before)
    assert any(one.startswith("Slower:") for one in turned.texts)


def test_the_trace_opened_first_is_before_until_they_are_swapped(show, opened, monkeypatch):
    first, second = opened("cuda"), opened(FLASH)
    jobs = {one.id: one for one in state.shelf().jobs if one.id in {first.id, second.id}}
    monkeypatch.setattr(type(state.shelf()), "jobs", property(lambda _: tuple(jobs.values())))
    monkeypatch.setattr(jobs[first.id], "number", 0)
    monkeypatch.setattr(jobs[second.id], "number", 1)
    shown = show("compare", second.id)
    boxes = [shown.test.selectbox(key=f"compare-{name}") for name in ("before", "after")]
    assert [one.value for one in boxes] == [first.id, second.id]
    next(one for one in shown.test.button if one.label == "Swap").click().run()
    assert not shown.test.exception
    boxes = [shown.test.selectbox(key=f"compare-{name}") for name in ("before", "after")]
    assert [one.value for one in boxes] == [second.id, first.id]
    assert shown.test.query_params["before"] == second.id


def test_compare_page_of_what_cannot_be_compared(show, as_open):
    shown = show("compare", before=as_open("cpu"), after=as_open("tpu"))
    assert any("Not comparable" in one for one in shown.marked)
    assert any(one.startswith("Inconclusive: not comparable") for one in shown.texts)


def test_the_same_trace_twice_is_no_comparison(show, as_open):
    shown = show("compare", before=as_open("cuda"), after=as_open("cuda"))
    assert any("Choose two different traces" in one for one in shown.marked)


@pytest.mark.parametrize("page", ["what_if", "compare"])
def test_no_name_is_read_as_markdown(show, as_open, tmp_path_factory, page):
    job = state.shelf().open([str(write_hostile(tmp_path_factory.mktemp("hostile")))])
    assert job.done.wait(300)
    query = {"before": as_open("cuda"), "after": job.id} if page == "compare" else {}
    shown = show(page, job.id, **query)
    marks = ("<img", "**bold**", "javascript:", "<b>", "onerror", "$E=mc", ":smile:")
    assert [one for one in shown.marked if any(mark in one for mark in marks)] == []
    labels = [one.label for one in (*shown.test.selectbox, *shown.test.slider)]
    assert [one for one in labels if any(mark in one for mark in marks)] == []


def test_downloads_do_not_say_where_an_upload_lies(opened, monkeypatch, tmp_path):
    from traceview.dashboards.pages import compare as page
    from traceview.dashboards.uploads import FOLDER_VARIABLE

    monkeypatch.setenv(FOLDER_VARIABLE, str(tmp_path))
    folder = tmp_path / "abc"
    folder.mkdir()
    path = folder / "mine.json"
    path.write_bytes((state_samples(opened) / "compiled.cuda-authored.json").read_bytes())
    own = side(load(path))
    found = compare_sides(own, own)
    for text in (page._json(found), page._markdown(found)):
        assert "mine.json" in text
        assert str(tmp_path) not in text


def state_samples(opened):
    return Path(opened("gaps").timeline.runs[0].path).parent


def test_the_downloads_are_the_answer(compared):
    from traceview.dashboards.pages import compare as page

    assert json.loads(page._json(compared))["verdict"] == "faster"
    assert page._markdown(compared).startswith("## traceview compare")


def test_a_second_trace_can_be_opened_on_the_page(show, as_open, samples_folder):
    shown = show("compare", before=as_open("cuda"))
    shown.test.text_input(key="compare-path").set_value(str(samples_folder / FLASH))
    next(one for one in shown.test.button if one.label == "Open").click().run()
    assert not shown.test.exception
    assert shown.test.selectbox(key="compare-after").value == as_open(FLASH)
    shown.test.text_input(key="compare-path").set_value(str(samples_folder / "README.md"))
    next(one for one in shown.test.button if one.label == "Open").click().run()
    assert "This could not be done" in shown.words
    assert any("README.md" in one for one in shown.texts)


@pytest.fixture
def samples_folder(repository):
    return repository / "sample_traces"


def test_a_link_to_traces_that_are_gone_compares_no_others(show, as_open):
    """Two other traces in their place would be the answer to another question."""
    before, _ = as_open("cuda"), as_open(FLASH)
    shown = show("compare", before=before, after="0123456789abcdef")
    assert any("does not have every trace of this link" in one for one in shown.marked)
    assert not [box for box in shown.test.selectbox if box.key.startswith("compare-")]
    assert shown.test.query_params["after"] == "0123456789abcdef"
    next(one for one in shown.test.button if one.label == "Compare traces that are open").click().run()
    assert not shown.test.exception
    assert [box.key for box in shown.test.selectbox][:2] == ["compare-before", "compare-after"]
