"""Every test of the readers runs with the compiled scanner and without it: both must give the same."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from traceview.parsers.kineto import fastscan

if TYPE_CHECKING:
    from collections.abc import Iterator


@pytest.fixture(params=["compiled", "portable"], scope="module", autouse=True)
def scanner(request: pytest.FixtureRequest) -> Iterator[None]:
    if request.param == "compiled":
        if not fastscan.AVAILABLE:
            pytest.skip("installed without a C compiler: the scanner was not built")
        yield
        return
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(fastscan, "_scan", None)
        yield
