"""Coroutines in a thread of their own: Playwright leaves a running event loop in the thread that used it."""

from __future__ import annotations

import asyncio
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Coroutine


def ran(coroutine: Coroutine[object, object, object]) -> object:
    """What a coroutine returns."""
    with ThreadPoolExecutor(1) as pool:
        return pool.submit(asyncio.run, coroutine).result()
