"""What the tests of this format share: a small program written once, exported by any generation of the profiler."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from sample_traces.nsys_authoring import Export

if TYPE_CHECKING:
    from collections.abc import Callable

FLASH = (
    "void pytorch_flash::flash_fwd_kernel<Flash_fwd_kernel_traits<128, 128, 64, 4, false, false, cutlass::bfloat16_t>>"
)
SHORT_FLASH = "flash_fwd_kernel"


def program(generation: str = "2026", **more) -> Export:
    """Two ranks with the same correlation numbers, one op, one attention kernel, one copy and one wait each."""
    export = Export(generation, **more)
    for rank in range(2):
        one = export.process(300 + rank, physical=rank)
        one.now += rank * 1_000
        for _ in range(rank):
            one.call("cudaStreamIsCapturing_v10000")  # the ranks' numbers are the same, their meaning is not
        with (
            one.range("denoise", registered=True),
            one.op("aten::scaled_dot_product_attention", [[1, 8, 64, 64]] * 3 + [[]]),
        ):
            one.launch(FLASH, us=20)
        one.copy(5, kind=2, source=2, target=0, size=1 << 20)
        one.synchronize()
    return export


@pytest.fixture
def author() -> Callable[..., Export]:
    return program
