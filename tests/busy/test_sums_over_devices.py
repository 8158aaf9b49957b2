"""Times of several devices are means, or say that they are a sum: no sum stands beside a wall time unmarked."""

from __future__ import annotations

import io

import pytest

from authored_timeline import host, kernel, launch, timeline
from traceview.dispatch import dispatch_table
from traceview.gap_report import gap_report
from traceview.render.idle_text import gap_sentence
from traceview.render.kernels_text import write_kernel_report
from traceview.render.page import Page
from traceview.render.report_text import write_report
from traceview.render.time_text import stage_sentence
from traceview.render.transfer_text import transfer_sentence
from traceview.report import kernel_report, report
from traceview.rules.base import Facts
from traceview.rules.catalogue import all_findings
from traceview.time_report import stage_report
from traceview.transfer_report import transfer_report

CAST = "void at::native::unrolled_elementwise_kernel<at::native::direct_copy_kernel_cuda(at::TensorIteratorBase&)>"


def same_on(devices):
    """A step of 100 us on each device: busy for 60, idle for 40 between its two kernels, all in one stage."""
    events = [host("annotation", "ProfilerStep#0", 0, 101), host("annotation", "forward", 0, 101)]
    for device in range(devices):
        key = 10 * device
        events += [
            launch(0, key + 1),
            kernel(CAST, 1, 31, key + 1, device=device),
            launch(69, key + 2),
            kernel("Memcpy HtoD (Pageable -> Device)", 71, 101, key + 2, device=device, kind="memcpy"),
        ]
    return timeline(*events)


def text(write):
    out = io.StringIO()
    write(Page(out))
    return " ".join(out.getvalue().split())


@pytest.mark.parametrize(
    ("devices", "sentence"),
    [
        (1, "Device idle 40.00 us of 100.0 us (40.0 %)"),
        (3, "3 devices idle, on average, 40.00 us of 100.0 us (40.0 %)"),
    ],
)
def test_idle_time_is_that_of_one_device(devices, sentence):
    result = gap_report(same_on(devices))
    assert gap_sentence(result).startswith(sentence)
    assert result.idle_ns == devices * 40_000
    assert ("At most 40.00 us each can be won back" in gap_sentence(result)) is (devices > 1)


@pytest.mark.parametrize(("devices", "split"), [(1, "(busy 60.00 us, idle 41.00 us)"), (3, "(per device: busy 60.00 us, idle 41.00 us)")])  # fmt: skip
def test_a_stage_is_told_in_the_time_of_a_step(devices, split):
    assert split in stage_sentence(stage_report(same_on(devices)).stages)


@pytest.mark.parametrize("devices", [1, 3])
def test_what_is_a_sum_says_so(devices):
    trace = same_on(devices)
    together = f"on {devices} devices together"
    kernels = kernel_report(trace)
    said = [
        transfer_sentence(transfer_report(trace)),
        text(lambda page: write_kernel_report(kernels, kernels.kernels, page, full_names=False)),
        text(lambda page: write_report(report(trace), page)),
        *(one.title for one in all_findings(Facts(trace, dispatch_table(trace))) if one.cost_ns is not None),
    ]
    assert len(said) > 4
    assert [together in one for one in said] == [devices > 1] * len(said)
