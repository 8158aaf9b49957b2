"""``profile_dispatch``, live: blocks are recorded with PyTorch on this machine's CPU and judged at once."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from live_frameworks import live
from traceview.pytest_plugin import DispatchInconclusiveWarning

torch = live("torch")

sdpa = torch.nn.functional.scaled_dot_product_attention
FLASH = {"expect": [{"op": "attention", "implementation": "cpu-flash"}]}


def tensors(*head_dims):
    return [torch.randn(1, 4, 128, head_dim) for head_dim in head_dims]


def words(text):
    """A text without its line breaks."""
    return " ".join(str(text).split())


def test_attention_that_dispatches_to_flash_passes(profile_dispatch, tmp_path):
    with profile_dispatch(FLASH) as profile:
        sdpa(*tensors(64, 64, 64))

    assert profile.path == str(tmp_path / "dispatch-1.pt.trace.json")
    assert [(row.op, row.implementation) for row in profile.result.table.attention] == [
        ("aten::scaled_dot_product_attention", "cpu-flash")
    ]
    assert profile.result.context.torch == torch.__version__


@pytest.mark.parametrize(
    ("head_dims", "more", "why"),
    [
        ((64, 64, 64), {"dropout_p": 0.1}, "P1-dropout (dropout_p is 0.1)"),
        ((64, 64, 32), {}, "P1-head-dim (head sizes of query, key and value are 64, 64, 32)"),
    ],
    ids=["dropout", "head dimension"],
)
def test_attention_that_lands_on_math_fails_and_the_text_says_why(profile_dispatch, head_dims, more, why):
    with pytest.raises(AssertionError) as caught, profile_dispatch(FLASH):
        sdpa(*tensors(*head_dims), **more)

    text = words(caught.value)
    assert text.startswith("FAIL: 1 of 1 expectations is violated: ")
    assert "fail: attention: cpu-flash observed none of 1 call; math 1 call (" in text
    assert "TV102 error: 1 SDPA call fell back to math: " in text
    assert f"refused: flash by {why}" in text
    assert set(re.findall(r"P\d-[a-z-]+", text)) == {why.split()[0]}


def test_dicts_are_placed_on_the_line_of_the_call(profile_dispatch):
    with pytest.raises(AssertionError) as caught, profile_dispatch(FLASH):  # this line
        sdpa(*tensors(64, 64, 32))
    line = next(
        at for at, text in enumerate(Path(__file__).read_text().splitlines(), 1) if text.endswith("# this line")
    )

    assert f"test_profile_dispatch.py:{line}: fail: attention: cpu-flash" in words(caught.value)


def test_a_function_is_recorded_at_each_call_and_returns_what_it_returns(profile_dispatch, tmp_path):
    attend = profile_dispatch(FLASH)(sdpa)

    assert attend(*tensors(64, 64, 64)).shape == (1, 4, 128, 64)
    with pytest.raises(AssertionError, match="fell back to math"):
        attend(*tensors(64, 64, 64), dropout_p=0.1)
    assert attend.__name__ == sdpa.__name__
    names = sorted(path.name for path in tmp_path.iterdir())
    assert names == ["dispatch-1.pt.trace.json", "dispatch-2.pt.trace.json"]


@pytest.mark.dispatch(expect={"forbid": [{"implementation": "cpu-flash"}]})
def test_the_marker_holds_for_blocks_too(profile_dispatch):
    with pytest.raises(AssertionError, match="forbid cpu-flash"), profile_dispatch():
        sdpa(*tensors(64, 64, 64))


def test_the_built_in_policy_holds_for_blocks_too(profile_dispatch):
    with profile_dispatch():
        sdpa(*tensors(64, 64, 64))
    with pytest.raises(AssertionError, match="FAIL: 1 SDPA call fell back to math"), profile_dispatch():
        sdpa(*tensors(64, 64, 32))


def test_stacks_name_the_line_that_asked(profile_dispatch):
    with pytest.raises(AssertionError, match=r"where +.*test_profile_dispatch.py"), profile_dispatch(with_stack=True):
        sdpa(*tensors(64, 64, 32))


def test_a_block_without_attention_cannot_be_told(profile_dispatch):
    with pytest.raises(pytest.fail.Exception, match=r"^INCONCLUSIVE: "), profile_dispatch():
        torch.ones(3).sum()
    with pytest.warns(DispatchInconclusiveWarning, match=r"^INCONCLUSIVE: "), profile_dispatch(inconclusive="warn"):
        pass


def test_an_error_in_the_block_is_the_error_of_the_test(profile_dispatch):
    with pytest.raises(ZeroDivisionError), profile_dispatch(FLASH):
        1 / 0  # noqa: B018 - it is there to fail
    with profile_dispatch(FLASH):
        sdpa(*tensors(64, 64, 64))


def test_one_block_inside_another_is_refused(profile_dispatch):
    only_one = pytest.raises(pytest.fail.Exception, match=r"only one can\. Is this block inside another one")
    with only_one, profile_dispatch(FLASH), profile_dispatch(FLASH):
        pass
    with torch.profiler.profile(), only_one, profile_dispatch(FLASH):
        pass
    profile = profile_dispatch(FLASH)
    with pytest.raises(pytest.fail.Exception, match="this recording is running already"), profile, profile:
        pass
    with profile_dispatch(FLASH):
        sdpa(*tensors(64, 64, 64))


def test_the_example_of_the_page_does_what_the_page_says(run, pytester, repository):
    page = (repository / "docs" / "pytest.md").read_text(encoding="utf-8")
    file, output = re.search(r"```python file=test_live.py\n(.*?)```.*?```text\n(.*?)```", page, re.DOTALL).groups()
    pytester.path.joinpath("test_live.py").write_text(file)

    result = run("", "-q", "test_live.py", subprocess=True)

    result.stdout.fnmatch_lines(output.splitlines())
