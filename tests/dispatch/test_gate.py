"""The built-in policy: what fails, what only warns, and when the answer is that there is none."""

from __future__ import annotations

from dataclasses import replace

from authored_timeline import Event, host, kernel, launch, op, timeline
from traceview.errors import ExitCode
from traceview.expectations.model import Context
from traceview.findings import Severity
from traceview.gate import CheckResult, Verdict, check
from traceview.timeline import ImportReport

FLASH = "void pytorch_flash::flash_fwd_kernel<pytorch_flash::Flash_fwd_kernel_traits<64, 128, 128, 4> >"
GEMM = "sm90_xmma_gemm_bf16bf16_bf16f32_f32_tn_n_tilesize128x128x64_warpgroupsize1x1x1_execute_segment_k_off_kernel__5x_cublas"
SOFTMAX = "void (anonymous namespace)::softmax_warp_forward<float, float, float, 9, false, false>(float*, float const*, int, int, int)"


def judged(*events: Event) -> CheckResult:
    return check(timeline(*events))


def flash_call(at: float, corr: int, kernel_name: str = FLASH) -> list[Event]:
    return [
        op("aten::scaled_dot_product_attention", at, at + 9),
        launch(at + 1, corr),
        kernel(kernel_name, at + 100, at + 110, corr),
    ]


MATH = [op("aten::scaled_dot_product_attention", 50, 59), op("aten::_scaled_dot_product_attention_math", 51, 58)]
CHAIN_BY_ORDER = [kernel(GEMM, 300, 310), kernel(SOFTMAX, 310, 320), kernel(GEMM, 320, 330)]


def test_fused_passes() -> None:
    result = judged(*flash_call(0, 1), *flash_call(20, 2))
    assert (result.verdict, result.exit_code, result.findings) == (Verdict.PASS, ExitCode.OK, ())
    assert result.summary == "every attention call ran fused (2 flash-2)"


def test_one_proven_slow_call_fails_the_check() -> None:
    result = judged(*flash_call(0, 1), *MATH)
    assert (result.verdict, result.exit_code) == (Verdict.FAIL, ExitCode.VIOLATED)
    assert [(f.code, f.severity) for f in result.findings] == [("TV102", Severity.ERROR)]
    words = "0.009 ms of host time, and no device work of theirs is recorded"
    assert result.summary == f"1 SDPA call fell back to math: {words}"


def test_stated_versions_narrow_the_reasons() -> None:
    """Without strides and values little is certain; which releases are asked shows in the reasons all the same."""
    dims = [[1, 4, 128, 64]] * 3
    events = [
        op("aten::scaled_dot_product_attention", 0, 9, dims=dims, dtypes=["c10::Half"] * 3),
        launch(1, 1),
        kernel(FLASH, 100, 110, 1),
    ]
    judged_for = {
        torch: next(
            reason.evidence
            for reason in check(timeline(*events), context=Context(torch=torch)).table.attention[0].reasons
            if reason.rule == "order"
        )
        for torch in ("2.6", "2.8")
    }
    assert judged_for == {"2.6": "judged for torch 2.6", "2.8": "judged for torch 2.8"}


def test_a_hint_neither_fails_nor_passes() -> None:
    result = judged(*flash_call(0, 1), *CHAIN_BY_ORDER)
    assert (result.verdict, result.exit_code) == (Verdict.INCONCLUSIVE, ExitCode.INCONCLUSIVE)
    assert ("TV101", Severity.WARNING) in [(f.code, f.severity) for f in result.findings]
    assert Severity.ERROR not in [f.severity for f in result.findings]
    assert result.summary.startswith("1 of 2 attention calls look unfused (75.0 % of busy time), but only the order")


def test_products_of_single_matrices_neither_fail_nor_pass() -> None:
    result = judged(
        op("aten::mm", 0, 8, dims=[[8, 4], [4, 8]]),
        op("aten::_softmax", 10, 18, dims=[[8, 8], [], []]),
        op("aten::mm", 20, 28, dims=[[8, 8], [8, 4]]),
    )
    assert (result.exit_code, [f.severity for f in result.findings]) == (ExitCode.INCONCLUSIVE, [Severity.WARNING])
    assert result.summary == (
        "1 of 1 attention calls look unfused, but products without batches around a softmax may as well be a soft "
        "lookup in a table: that is not proven"
    )


def test_an_opaque_program_could_hold_attention() -> None:
    result = judged(kernel("pe_exe", 0, 100))
    assert result.exit_code is ExitCode.INCONCLUSIVE
    assert "100.0 % of device time is in kernels that are not identified (such as pe_exe)" in result.summary


def test_an_unidentified_call_is_inconclusive_not_math() -> None:
    result = judged(*flash_call(0, 1), *flash_call(20, 2, "brand_new_kernel_2027"))
    assert (result.verdict, result.exit_code) == (Verdict.INCONCLUSIVE, ExitCode.INCONCLUSIVE)
    assert [f.code for f in result.findings] == ["TV103"]
    assert result.summary == "1 of 2 attention calls cannot be judged: the trace does not tell what ran"


def test_no_device_work_and_no_attention_op_is_inconclusive() -> None:
    result = judged(op("aten::add", 0, 1), host("annotation", "ProfilerStep#1", 0, 2))
    assert result.exit_code is ExitCode.INCONCLUSIVE
    assert "no device kernel is recorded and the only host op asks for no attention" in result.summary


def test_identified_work_without_attention_passes_and_says_so() -> None:
    result = judged(kernel(GEMM, 0, 100))
    assert result.exit_code is ExitCode.OK
    assert result.summary.startswith("no attention ran: the only device event is no attention kernel")


def test_too_much_unidentified_work_could_hide_attention() -> None:
    result = judged(kernel(GEMM, 0, 90), kernel("who_knows", 90, 100))
    assert result.exit_code is ExitCode.INCONCLUSIVE
    assert "10.0 % of device time is in kernels that are not identified (such as who_knows)" in result.summary


def test_unidentified_work_without_any_time_could_hide_attention_too() -> None:
    result = judged(kernel("mystery", 10, 10), kernel("riddle", 12, 12))
    assert (result.verdict, result.exit_code) == (Verdict.INCONCLUSIVE, ExitCode.INCONCLUSIVE)
    assert result.summary == (
        "no attention was found, but 2 of 2 kernels are not identified, and no time of theirs is recorded"
    )


def test_a_file_that_is_cut_off_proves_no_absence() -> None:
    complete = timeline(*flash_call(0, 1))
    result = check(replace(complete, report=ImportReport(truncated=True)))
    assert result.verdict is Verdict.INCONCLUSIVE
    assert result.summary == (
        "every attention call ran fused (1 flash-2); "
        "but the file is cut off, and the missing part could hold a counter-example"
    )
    slow = timeline(*MATH)
    assert check(replace(slow, report=ImportReport(truncated=True))).verdict is Verdict.FAIL


def test_findings_carry_place_cost_and_evidence() -> None:
    result = judged(
        host("python", "nn.Module: Attention_3", 40, 70),
        host("python", "models/eager.py(14): attention", 41, 69),
        *MATH,
        launch(52, 1),
        kernel(GEMM, 200, 230, 1),
    )
    (finding,) = result.findings
    assert finding.where == "Attention, models/eager.py(14): attention"
    assert finding.cost_ns == 30_000
    assert finding.title == "1 SDPA call fell back to math: 0.030 ms of device time, 100.0 % of busy time"
    assert finding.evidence == ("1 × aten::scaled_dot_product_attention: an op that only this path calls is recorded",)


def test_graph_replays_that_are_not_recorded_prove_no_absence() -> None:
    replay = launch(40, 3, name="cudaGraphLaunch")
    unseen = judged(*flash_call(0, 1), replay)
    assert unseen.verdict is Verdict.INCONCLUSIVE
    assert unseen.summary == (
        "every attention call ran fused (1 flash-2); but 1 of 1 graph launches have no recorded kernel, "
        "and what ran inside could hold a counter-example"
    )
    assert judged(*flash_call(0, 1), replay, kernel(GEMM, 200, 210, 3)).verdict is Verdict.PASS


def block(at: float, dur: float, corr: int) -> list[Event]:
    """A replay that is recorded as one opaque block."""
    return [launch(at, corr, name="cudaGraphLaunch"), kernel("CUDA Graph", at + 2, at + 2 + dur, corr, kind="graph")]


def test_much_time_in_opaque_graphs_proves_no_absence() -> None:
    result = judged(*flash_call(0, 1), *block(200, 90, 2))
    assert (result.verdict, result.exit_code) == (Verdict.INCONCLUSIVE, ExitCode.INCONCLUSIVE)
    assert result.summary == (
        "every attention call ran fused (1 flash-2); but 90.0 % of device time is in graphs recorded as one opaque "
        "block, and what ran inside could hold a counter-example"
    )
    # What is proven stays proven.
    assert judged(*MATH, *block(200, 90, 2)).verdict is Verdict.FAIL


def test_up_to_a_twentieth_in_opaque_graphs_changes_nothing() -> None:
    calls = [event for n in range(19) for event in flash_call(1000 * n, n + 1)]
    assert judged(*calls, *block(50_000, 10, 99)).verdict is Verdict.PASS
    assert judged(*calls, *block(50_000, 11, 99)).verdict is Verdict.INCONCLUSIVE


def test_a_kernel_that_only_waits_hides_no_attention() -> None:
    result = judged(kernel("at::cuda::(anonymous namespace)::spin_kernel(long)", 0, 90), kernel(GEMM, 95, 100))
    assert result.exit_code is ExitCode.OK
    assert result.summary.startswith("no attention ran: none of the 2 device events")
