"""What people see, word for word, on small results written by hand."""

from __future__ import annotations

import io
from dataclasses import replace

import pytest

from traceview.busy import DeviceBusy
from traceview.dispatch import Dispatch, DispatchTable, KernelShare
from traceview.errors import ExitCode
from traceview.findings import Confidence, CostOf, Finding, Severity
from traceview.gate import CheckResult, Verdict
from traceview.reasons import Detail, Reason, Role
from traceview.render.dispatch_text import shapes, write_check
from traceview.render.kernels_text import write_kernel_report
from traceview.render.page import Column, Page
from traceview.render.report_text import write_report
from traceview.render.units import saving
from traceview.report import KernelReport, KernelUse, PartNote, Report, Step

FLASH = "void pytorch_flash::flash_fwd_kernel<Flash_fwd_kernel_traits<64, 128>, false>(Flash_fwd_params)"


def device(key=0, **more):
    facts = {
        "device": key, "events": 100, "start_ns": 0, "span_ns": 1_078_288_379, "busy_ns": 566_759_477, "computation_ns": 552_189_219,
        "communication_ns": 0, "exposed_communication_ns": 0, "memcpy_ns": 14_570_258, "exposed_memcpy_ns": 14_570_258,
        "without_launch": 0, "left_out": 0,
    }  # fmt: skip
    return DeviceBusy(**(facts | more))


def use(name, family, total_ns, count, share, busy_share=None, *, implementation=None, provider=None, tensor_core=None):
    return KernelUse(
        name,
        family,
        implementation,
        provider,
        tensor_core,
        count,
        total_ns,
        total_ns,
        share,
        share if busy_share is None else busy_share,
    )


KERNELS = (
    use(
        FLASH, "attention", 300_000_000, 120, 0.75, 0.8, implementation="flash-2", provider="pytorch", tensor_core=True
    ),
    use(
        "ampere_sgemm_128x64_nn",
        "gemm",
        90_500_000,
        1470,
        0.226,
        0.24,
        implementation="cublas",
        provider="cublas",
        tensor_core=False,
    ),
    use("frobnicate_42", "unknown", 1_000, 2, 0.0000025),
)
FAMILIES = (
    use("attention", "attention", 300_000_000, 120, 0.75, 0.8),
    use("gemm", "gemm", 90_500_000, 1470, 0.226, 0.24),
    use("memcpy", "memcpy", 9_500_000, 85, 0.024, 0.024),
    use("unknown", "unknown", 1_000, 2, 0.0000025),
)


@pytest.fixture
def report(trace, summary):
    steps = tuple(Step(f"ProfilerStep#{n}", n, None, n * 10**9, 1_211_182_000 + n, None) for n in (6, 7))
    notes = (
        PartNote("devices", "509 pieces of device work have no launch in the file."),
        PartNote("gaps", "not shown"),
    )
    return Report(trace, False, (device(),), steps, KERNELS, FAMILIES, summary, notes)


def test_report(report, text):
    assert (
        text(lambda page: write_report(report, page))
        == """\
Device busy 52.6 % of 1.078 s; idle 511.5 ms. Not hidden behind computation: copies 14.57 ms
(1.4 %). Most device time: attention, 75.0 %.

  trace     runs/rank0.json.gz
  producer  PyTorch profiler (Kineto)
  device    NVIDIA H100 80GB HBM3, compute capability 9.0 (1 more listed, no work recorded)
  events    117,635
  trust     limited: 509 of 1,707 device events have no launch in the file.

Steps
  step              wall ms
  ProfilerStep#6  1,211.182
  ProfilerStep#7  1,211.182

Devices (ms)
  device      busy       span     busy     idle  computation  exposed comm.  exposed memcpy
  device 0  52.6 %  1,078.288  566.759  511.529      552.189          0.000          14.570

Device time by family
   share    busy  total ms  count  family
  75.0 %  80.0 %   300.000    120  attention
  22.6 %  24.0 %    90.500  1,470  gemm
   2.4 %   2.4 %     9.500     85  memcpy
  <0.1 %  <0.1 %     0.001      2  unknown

Kernels
   share  total ms  count  mean us  TC   family/implementation  kernel
  75.0 %   300.000    120  2,500.0  yes  attention/flash-2      pytorch_flash::flash_fwd_kernel<...>
  22.6 %    90.500  1,470     61.6  no   gemm/cublas            ampere_sgemm_128x64_nn
  <0.1 %     0.001      2      0.5  ?    unknown                frobnicate_42

Notes
  - 509 pieces of device work have no launch in the file.

Import
  - 22 of 83 launches have no device event in the file.
  - repaired-escape: 3 (e.g. torch\\cuda)
"""
    )


def test_report_without_device_work(report, text):
    nothing = replace(
        report,
        devices=None,
        kernels=None,
        families=None,
        steps=None,
        notes=(PartNote("devices", "The trace has no device work."),),
    )
    lines = text(lambda page: write_report(nothing, page)).splitlines()
    assert lines[0] == "No device work in this trace: only what the host did can be seen."
    assert "  - The trace has no device work." in lines


def test_report_of_several_devices(report, text):
    two = replace(report, devices=(device(0), device(1, busy_ns=1_000_000_000)), families=None, kernels=None)
    lines = text(lambda page: write_report(two, page)).splitlines()
    assert lines[0] == "2 devices busy 52.6 % to 92.7 % of their spans; idle 589.8 ms together. Not hidden behind"


def test_many_steps_are_summed_up(report, text):
    steps = tuple(Step(f"ProfilerStep#{n}", n, rank, 0, (n + 1) * 1_000_000, None) for n in range(6) for rank in (1, 0))
    lines = text(lambda page: write_report(replace(report, steps=steps), page)).splitlines()
    at = lines.index("Steps")
    assert lines[at + 1 : at + 4] == [
        "  steps   count  shortest ms  median ms  longest ms",
        "  rank 0      6        1.000      3.500       6.000",
        "  rank 1      6        1.000      3.500       6.000",
    ]


def test_kernels(trace, summary, text):
    result = KernelReport(trace, 400_001_000, 375_000_000, KERNELS, FAMILIES, summary, ())
    shown = text(lambda page: write_kernel_report(result, KERNELS[:2], page, full_names=False), width=160)
    assert (
        shown
        == """\
3 kernels in 1,592 runs, 390.5 ms of device time. Longest in total: attention/flash-2, 75.0 %.

  trace     runs/rank0.json.gz
  producer  PyTorch profiler (Kineto)
  device    NVIDIA H100 80GB HBM3, compute capability 9.0 (1 more listed, no work recorded)
  events    117,635
  trust     limited: 509 of 1,707 device events have no launch in the file.

Device time by family
   share    busy  total ms  count  family
  75.0 %  80.0 %   300.000    120  attention
  22.6 %  24.0 %    90.500  1,470  gemm
   2.4 %   2.4 %     9.500     85  memcpy
  <0.1 %  <0.1 %     0.001      2  unknown

2 of 3 kernels
   share    busy  total ms  count  mean us  TC   family/implementation  provider  kernel
  75.0 %  80.0 %   300.000    120  2,500.0  yes  attention/flash-2      pytorch   pytorch_flash::flash_fwd_kernel<Flash_fwd_kernel_traits<64, 128>, false>
  22.6 %  24.0 %    90.500  1,470     61.6  no   gemm/cublas            cublas    ampere_sgemm_128x64_nn
  share: of the sum of all device work. TC: tensor (matrix) cores; ? means not known. busy: time in which it ran, of the time in which anything ran.
"""
    )


def test_a_name_that_gets_too_little_room_stands_above_its_row(trace, summary, text):
    result = KernelReport(trace, 400_001_000, 375_000_000, KERNELS, FAMILIES, summary, ())
    lines = text(lambda page: write_kernel_report(result, KERNELS[:1], page, full_names=False)).splitlines()
    at = lines.index("1 of 3 kernels")
    assert lines[at + 1 : at + 4] == [
        "   share    busy  total ms  count  mean us  TC   family/implementation  provider",
        "  void pytorch_flash::flash_fwd_kernel<Flash_fwd_kernel_traits<64, 128>, false>(Flash_fwd_params)",
        "  75.0 %  80.0 %   300.000    120  2,500.0  yes  attention/flash-2      pytorch",
    ]


def test_kernels_without_overlap_show_one_share(trace, summary, text):
    kernels = (use("a", "gemm", 10, 1, 1.0),)
    shown = text(
        lambda page: write_kernel_report(
            KernelReport(trace, 10, 10, kernels, kernels, summary, ()), kernels, page, full_names=False
        )
    )
    assert "busy  total" not in shown
    assert "Nothing overlaps, so shares are also shares of the busy time." in " ".join(shown.split())


def test_full_names(trace, summary, text):
    result = KernelReport(trace, 10, 10, KERNELS, FAMILIES, summary, ())
    assert FLASH in text(lambda page: write_kernel_report(result, KERNELS, page, full_names=True))


def test_full_names_of_megabytes_lose_their_middle(trace, summary, text):
    long = (replace(KERNELS[0], name="a" * 3_000_000 + "\x1b"), replace(KERNELS[1], name="b" * 8_192))
    result = KernelReport(trace, 10, 10, long, long, summary, ())
    shown = text(lambda page: write_kernel_report(result, long, page, full_names=True))
    assert max(map(len, shown.splitlines())) < 8_300
    assert "b" * 8_192 in shown
    assert "aaa...aaa" in shown
    assert "1 name of more than 8,192 characters: --format json has them whole." in shown


def dispatch(op="aten::scaled_dot_product_attention", implementation="flash-2", verdict="ok", **more):
    facts = {
        "op": op, "family": "attention", "implementation": implementation, "provider": "pytorch", "direction": "forward", "stage": None,
        "count": 24, "device_ns": 2_723_000, "share": 0.06, "host_ns": 1, "attribution": "attributed", "evidence": "kernel",
        "verdict": verdict, "inputs": {"dims": "[[16, 16, 559, 64], [16, 16, 559, 64], []]", "dtypes": '["c10::BFloat16", "c10::BFloat16", "Scalar"]', "strides": None, "concrete": None},
        "reasons": (), "kernels": (KernelShare(FLASH, 24, 2_723_000),), "event_ids": (1,),
    }  # fmt: skip
    return Dispatch(**(facts | more))


GEMM = dispatch(
    "aten::mm",
    None,
    family="gemm",
    provider=None,
    inputs=None,
    device_ns=9_000_000,
    share=0.2,
    kernels=(KernelShare("sgemm", 24, 9_000_000),),
)
FINDING = Finding(
    "TV102", Severity.ERROR, "24 attention calls ran the math path: 2.723 ms of device time", "model.py(7): forward",
    ("24 x aten::scaled_dot_product_attention: a softmax ran under it",), 2_723_000, Confidence.MEASURED, "Use fp16 or bf16 inputs.", "the heads are tiny",
)  # fmt: skip


def table(*rows):
    return DispatchTable(rows, 45_383_000, 100, 0, ())


def test_check_passes(trace, summary, text):
    result = CheckResult(Verdict.PASS, "every attention call ran fused (24 flash-2)", table(dispatch(), GEMM), ())
    assert (
        text(lambda page: write_check(result, trace, summary, page, code=ExitCode.OK, limit=12))
        == """\
PASS: every attention call ran fused (24 flash-2).

  trace     runs/rank0.json.gz
  producer  PyTorch profiler (Kineto)
  device    NVIDIA H100 80GB HBM3, compute capability 9.0 (1 more listed, no work recorded)
  events    117,635
  trust     limited: 509 of 1,707 device events have no launch in the file.

Attention calls
  verdict  calls  device ms  of busy  implementation     known by  inputs
  aten::scaled_dot_product_attention
  ok          24      2.723    6.0 %  flash-2 (pytorch)  kernel    [16,16,559,64] bf16
  24 x  pytorch_flash::flash_fwd_kernel<Flash_fwd_kernel_traits<...>, false>, 2.723 ms

Other device work
  kernels  device ms  of busy  family/implementation  op and inputs, or kernel
       24      9.000   20.0 %  gemm                   mm

0 errors, 0 warnings, 24 attention calls, exit code 0
"""
    )


def test_shares_of_the_span_stand_beside_those_of_the_busy_time(trace, summary, text):
    idle = replace(table(dispatch(), GEMM), span_ns=90_766_000)
    result = CheckResult(Verdict.PASS, "every attention call ran fused (24 flash-2)", idle, (FINDING,))
    shown = text(lambda page: write_check(result, trace, summary, page, code=ExitCode.OK, limit=12))
    assert "at most 2.723 ms can be saved, 6.0 % of the busy time, 3.0 % of the span\n" in shown
    assert (
        shown[shown.index("Attention calls") : shown.index("0 errors" if "0 errors" in shown else "1 error")]
        == """\
Attention calls
  verdict  calls  device ms  of busy  of span  implementation     known by  inputs
  aten::scaled_dot_product_attention
  ok          24      2.723    6.0 %    3.0 %  flash-2 (pytorch)  kernel    [16,16,559,64] bf16
  24 x  pytorch_flash::flash_fwd_kernel<Flash_fwd_kernel_traits<...>, false>, 2.723 ms

Other device work
  kernels  device ms  of busy  of span  family/implementation  op and inputs, or kernel
       24      9.000   20.0 %    9.9 %  gemm                   mm

  of busy: of 45.38 ms in which the devices worked, 50.0 % of their span (first to last work).

"""
    )


def test_a_share_of_the_span_never_takes_the_room_of_the_inputs(trace, summary, text):
    idle = replace(
        table(
            dispatch(
                implementation="math",
                inputs={"dims": "[[1, 16, 4096, 64], [1, 4, 4096, 64]]", "dtypes": '["float", "float"]'},
            )
        ),
        span_ns=90_766_000,
    )
    result = CheckResult(Verdict.PASS, "fine", idle, ())
    for width, column in ((97, False), (120, True)):
        shown = text(lambda page: write_check(result, trace, summary, page, code=ExitCode.OK, limit=12), width=width)
        assert "[1,16,4096,64] [1,4,4096,64] fp32" in shown
        assert ("of span" in shown) is column


def test_check_fails(trace, summary, text):
    result = CheckResult(
        Verdict.FAIL, FINDING.title, table(dispatch(implementation="math", verdict="slow", evidence="op")), (FINDING,)
    )
    shown = text(lambda page: write_check(result, trace, summary, page, code=ExitCode.VIOLATED, limit=12)).splitlines()
    assert shown[0] == "FAIL: 24 attention calls ran the math path: 2.723 ms of device time."
    at = shown.index("TV102 error: 24 attention calls ran the math path: 2.723 ms of device time")
    assert shown[at + 1 : at + 13] == [
        "  where           model.py(7): forward",
        "  cost            at most 2.723 ms can be saved, 6.0 % of the busy time",
        "  evidence        24 x aten::scaled_dot_product_attention: a softmax ran under it",
        "  known by        measured",
        "  fix             Use fp16 or bf16 inputs.",
        "  false alarm if  the heads are tiny",
        "",
        "Attention calls",
        "  verdict  calls  device ms  of busy  implementation  known by  inputs",
        "  aten::scaled_dot_product_attention",
        "  slow        24      2.723    6.0 %  math (pytorch)  op        [16,16,559,64] bf16",
        "  24 x  pytorch_flash::flash_fwd_kernel<Flash_fwd_kernel_traits<...>, false>, 2.723 ms",
    ]
    assert shown[-1] == "1 error, 0 warnings, 24 attention calls, exit code 1"


REFUSED = Reason(
    "F1", "refuses", "flash is refused: inputs are float32. Flash attention takes half precision.", role=Role.CAUSE,
    detail=Detail(("flash",), "inputs are float32", "Flash attention takes half precision."),
)  # fmt: skip
LEFT = Reason("order", "allows", "math is what is left", role=Role.ORDER)


def test_check_says_why_a_slow_call_was_not_fused(trace, summary, text):
    slow = dispatch(implementation="math", verdict="slow", evidence="op", reasons=(REFUSED, LEFT))
    result = CheckResult(Verdict.FAIL, FINDING.title, table(slow, slow, dispatch(reasons=(LEFT,))), (FINDING,))
    shown = text(lambda page: write_check(result, trace, summary, page, code=ExitCode.VIOLATED, limit=12)).splitlines()
    at = shown.index("Why the slow calls were not fused")
    assert shown[at + 1 : at + 5] == [
        "  calls    48",
        "  refused  flash by F1: Flash attention takes half precision.",
        "  so       math is what is left",
        "  traceview explain shows the sources of these rules and what to change.",
    ]


def test_what_a_finding_says_is_not_said_in_the_strip_too(trace, summary, text):
    limit = "509 of 1,707 device events have no launch in the file"
    lost = replace(FINDING, code="TV902", severity=Severity.WARNING, title=limit, cost_ns=None)
    result = CheckResult(Verdict.PASS, "ok", table(dispatch()), (lost,))
    shown = text(lambda page: write_check(result, trace, summary, page, code=ExitCode.OK, limit=12))
    assert "  trust     limited: see TV902\n" in shown
    assert shown.count(limit) == 1


@pytest.mark.parametrize(
    ("cost_of", "said"),
    [
        (CostOf.DEVICE, "at most 525.6 ms can be saved, 1158.1 % of the busy time"),
        (CostOf.IDLE, "at most 525.6 ms of device idle time can be saved"),
        (CostOf.HOST, "at most 525.6 ms of host time can be saved"),
        (CostOf.WALL, "at most 525.6 ms of wall time can be saved"),
    ],
)
def test_only_device_time_is_a_share_of_the_busy_time(cost_of, said):
    assert saving(525_600_000, cost_of, 45_383_000) == said


def test_check_says_what_it_does_not_list(trace, summary, text):
    rows = [dispatch(device_ns=n) for n in range(5)] + [GEMM] * 10
    result = CheckResult(Verdict.PASS, "ok", table(*rows), ())
    shown = text(lambda page: write_check(result, trace, summary, page, code=ExitCode.OK, limit=2))
    assert "  3 more rows: --limit 5 shows all.\n" in shown
    assert "  2 more rows with 40.0 % together: --format json lists all.\n" in shown


@pytest.mark.parametrize(
    ("dims", "dtypes", "shown"),
    [
        ("[[8, 16], [16, 4]]", '["float", "float"]', "[8,16] [16,4] fp32"),
        ("[[], [8, 16]]", '["Scalar", "c10::Half"]', "[8,16] fp16"),
        ("[[[8, 16], [8, 16]], []]", '["TensorList", ""]', ""),
        ("[[8, 16", None, ""),
        ("[[8, 16]]", None, "[8,16]"),
        (None, None, ""),
        ("[[2, 8], [2, 8]]", '["float", "float"]', "[2,8] fp32"),
    ],
)
def test_shapes(dims, dtypes, shown):
    assert shapes({"dims": dims, "dtypes": dtypes}, tensors=2) == shown


def test_colour_only_where_it_is_wanted(monkeypatch):
    for name in ("NO_COLOR", "FORCE_COLOR"):
        monkeypatch.delenv(name, raising=False)

    def written():
        out = io.StringIO()
        Page(out, width=80).verdict("FAIL: x", "bold red")
        return out.getvalue()

    assert written() == "FAIL: x\n"
    monkeypatch.setenv("FORCE_COLOR", "1")
    assert "\x1b[" in written()
    monkeypatch.setenv("NO_COLOR", "1")
    assert "\x1b[31" not in written()


def test_a_name_in_a_trace_is_not_obeyed(text):
    shown = text(lambda page: page.table([Column("kernel", name=True)], [["\x1b[31mevil[bold]"]]))
    assert shown == "  kernel\n  \\x1b[31mevil[bold]\n"
