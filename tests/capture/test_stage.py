"""Marks with NVTX, seen by a package that only takes note; those of PyTorch and JAX are recorded live elsewhere."""

from __future__ import annotations

import asyncio
import types

import pytest

from own_loop import ran
from traceview.capture import stage, stages
from traceview.errors import TraceviewError

LOG: list[str] = []


@pytest.fixture
def nvtx(monkeypatch):
    """A package whose tool is attached."""
    LOG.clear()
    package = types.ModuleType("nvtx")
    package.push_range = lambda name: LOG.append(f"< {name}")
    package.pop_range = lambda: LOG.append(">")
    package.get_domain = lambda name: object()
    stages._attached.cache_clear()
    monkeypatch.setitem(stages._modules, "nvtx", package)
    for other in ("torch", "jax"):
        monkeypatch.delitem(stages._modules, other, raising=False)
    return package


def test_marks_nest_and_close_on_an_error(nvtx):
    with pytest.raises(KeyError), stage("denoise"), stage("attention"):
        raise KeyError
    assert LOG == ["< traceview.stage:denoise", "< traceview.stage:attention", ">", ">"]


def test_one_object_may_be_used_again_and_inside_itself(nvtx):
    mark = stage("x")
    with mark, mark:
        pass
    with mark:
        pass
    assert LOG == ["< traceview.stage:x", "< traceview.stage:x", ">", ">", "< traceview.stage:x", ">"]


def test_every_kind_of_function_can_be_decorated(nvtx):
    @stage("a")
    def plain(x):
        """Doc."""
        return x + 1

    @stage("b")
    def generator():
        yield 1

    @stage("c")
    async def coroutine():
        await asyncio.sleep(0)
        return 2

    @stage("d")
    async def asyncgen():
        yield 3

    async def both():
        return await coroutine(), [one async for one in asyncgen()]

    assert (plain(1), plain.__name__, plain.__doc__) == (2, "plain", "Doc.")
    assert LOG == ["< traceview.stage:a", ">"]
    assert list(generator()) == [1]
    assert ran(both()) == (2, [3])
    assert {name for name in LOG if name != ">"} == {f"< traceview.stage:{name}" for name in "abcd"}
    assert LOG.count(">") * 2 == len(LOG)


def test_without_a_tool_nothing_is_marked(nvtx):
    nvtx.get_domain = lambda name: type("DummyDomain", (), {})()
    stages._attached.cache_clear()
    with stage("x"):
        pass
    assert LOG == []


def test_only_what_is_asked_for_is_marked(nvtx, monkeypatch):
    monkeypatch.setitem(stages._IMPORTS, "torch", lambda: None)
    with stage("x", using=["torch"]):
        pass
    assert LOG == []


def test_a_missing_package_says_how_to_get_it(monkeypatch):
    monkeypatch.setitem(stages._modules, "nvtx", None)
    with pytest.raises(TraceviewError) as caught:
        stage("x", using=["nvtx"])
    assert str(caught.value) == (
        'stage needs the package nvtx, which is not installed here. Install it (pip install "traceview[capture]").'
    )
