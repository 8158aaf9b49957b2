"""What the threads of one file learn together."""

from __future__ import annotations

import sys
import threading

import numpy as np
import polars as pl
import pytest

from traceview.parsers.kineto.columns import Knowledge


@pytest.fixture(scope="module", autouse=True)
def scanner() -> None:
    """Once is enough: no block is read here."""


def test_threads_that_learn_at_the_same_time_do_not_disturb_each_other() -> None:
    failures: list[Exception] = []

    def learn(knowledge: Knowledge, offset: int) -> None:
        try:
            for step in range(20):
                # A code beyond all that were met before makes the shared table grow.
                knowledge.unsound(pl.Series(["1"]), np.array([4096 * (step + 1) + offset], np.uint32))
        except ValueError as error:
            failures.append(error)

    usual = sys.getswitchinterval()
    sys.setswitchinterval(1e-6)
    try:
        for _ in range(50):
            shared = Knowledge()
            threads = [threading.Thread(target=learn, args=(shared, 7 * number)) for number in range(4)]
            for thread in threads:
                thread.start()
            for thread in threads:
                thread.join()
    finally:
        sys.setswitchinterval(usual)
    assert failures == []
