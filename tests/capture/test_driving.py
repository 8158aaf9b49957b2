"""Coroutines and generators are inside their context while their own code runs, and only then."""

from __future__ import annotations

import asyncio
import contextlib

import pytest

from own_loop import ran
from traceview.capture.driving import driven_asyncgen, driven_awaitable, driven_generator

LOG: list[str] = []


@pytest.fixture(autouse=True)
def _empty():
    LOG.clear()


@contextlib.contextmanager
def inside():
    LOG.append("<")
    try:
        yield
    finally:
        LOG.append(">")


def test_a_generator_is_left_while_it_waits_for_its_caller():
    def numbers():
        got = yield 1
        LOG.append(f"got {got}")
        return "end"

    def outer():
        result = yield from driven_generator(numbers(), inside)
        LOG.append(result)

    running = outer()
    assert next(running) == 1
    LOG.append("outside")
    with pytest.raises(StopIteration):
        running.send("x")
    assert LOG == ["<", ">", "outside", "<", "got x", ">", "end"]


def test_what_is_thrown_reaches_the_generator():
    def patient():
        try:
            yield 1
        except KeyError:
            yield 2
        finally:
            LOG.append("closed")

    running = driven_generator(patient(), inside)
    assert next(running) == 1
    assert running.throw(KeyError()) == 2
    running.close()
    assert LOG == ["<", ">", "<", ">", "<", "closed", ">"]


def test_tasks_that_wait_for_one_another_do_not_mix():
    open_now = []

    @contextlib.contextmanager
    def of(name):
        open_now.append(name)
        try:
            yield
        finally:
            # A range that another task left open would be the last one here.
            assert open_now.pop() == name

    async def work(name):
        for _ in range(3):
            assert open_now == [name]
            await asyncio.sleep(0)
        return name

    async def both():
        return await asyncio.gather(*(driven(name) for name in ("a", "b")))

    async def driven(name):
        return await driven_awaitable(work(name), lambda: of(name))

    assert ran(both()) == ["a", "b"]


def test_an_asynchronous_generator():
    async def numbers():
        try:
            yield 1
            await asyncio.sleep(0)
            yield 2
        finally:
            LOG.append("closed")

    async def read():
        return [number async for number in driven_asyncgen(numbers(), inside)]

    assert ran(read()) == [1, 2]
    assert LOG[:2] == ["<", ">"]
    assert LOG[-2:] == ["closed", ">"]
    assert LOG.count("<") == LOG.count(">") == 4
