"""Run coroutines and generators stretch by stretch, each stretch inside a context of its own.

A range that stays open while a coroutine waits would hold whatever runs in between, and ranges of several tasks would
close in the wrong order. So the context is entered when the code goes on and left when it waits or yields.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, Awaitable, Callable, Generator
    from contextlib import AbstractContextManager

    Context = Callable[[], AbstractContextManager[object]]


def driven_generator(inner: Generator[Any, Any, Any], context: Context) -> Generator[Any, Any, Any]:
    """The same generator; its own code runs inside ``context``, that of who asks it does not."""

    def go_on(resume: Callable[[Any], Any], value: Any) -> Any:
        with context():
            return resume(value)

    resume: Callable[[Any], Any] = inner.send
    value: Any = None
    while True:
        try:
            yielded = go_on(resume, value)
        except StopIteration as end:
            return end.value
        try:
            value = yield yielded
            resume = inner.send
        except GeneratorExit:
            with context():
                inner.close()
            raise
        except BaseException as error:  # noqa: BLE001 - it belongs to the generator, which may catch it
            resume, value = inner.throw, error


class driven_awaitable:  # noqa: N801 - used like a function
    """An awaitable whose own code runs inside ``context``."""

    def __init__(self, inner: Awaitable[Any], context: Context) -> None:
        self._inner = inner
        self._context = context

    def __await__(self) -> Generator[Any, Any, Any]:
        return driven_generator(self._inner.__await__(), self._context)


async def driven_asyncgen(inner: AsyncGenerator[Any, Any], context: Context) -> AsyncGenerator[Any, Any]:
    """The same asynchronous generator; its own code runs inside ``context``."""
    next_one: Awaitable[Any] = inner.asend(None)
    try:
        while True:
            try:
                yielded = await driven_awaitable(next_one, context)
            except StopAsyncIteration:
                return
            try:
                sent = yield yielded
                next_one = inner.asend(sent)
            except GeneratorExit:
                raise
            except BaseException as error:  # noqa: BLE001 - it belongs to the generator, which may catch it
                next_one = inner.athrow(error)
    finally:
        await inner.aclose()
