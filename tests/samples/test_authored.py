"""The authored samples are well-formed Kineto files, and their truth tables follow from the files alone."""

from __future__ import annotations

import gzip
import json
from collections import Counter
from pathlib import Path

import pytest

from sample_traces import make_authored
from sample_traces.truth import union_ns

FOLDER = Path(make_authored.__file__).parent
FILES = [sample.file for sample in make_authored.SAMPLES]
HOST = ("cpu_op", "user_annotation", "python_function", "cuda_runtime", "cuda_driver")
WORK = ("kernel", "gpu_memcpy", "gpu_memset")


def ns(value: float | str) -> int:
    whole, _, digits = str(value).partition(".")
    return int(whole) * 1000 + int((digits + "000")[:3])


class File:
    """One sample read with nothing but the standard library."""

    def __init__(self, file: str):
        data = (FOLDER / file).read_bytes()
        text = gzip.decompress(data) if file.endswith(".gz") else data
        self.content = json.loads(text, parse_float=str)
        self.truth = json.loads((FOLDER / (make_authored.stem(file) + ".truth.json")).read_text())
        self.rows = [e for e in self.content["traceEvents"] if e["ph"] == "X" and e["cat"] != "Trace"]
        self.host = [e for e in self.rows if e["cat"] in HOST]
        self.work = [e for e in self.rows if e["cat"] in WORK]
        # Merged ranks repeat their correlations: the truth table says which GPU works for which process.
        self.gpu_of = {int(pid): gpu for pid, gpu in self.truth.get("work_of_pid", {}).items()}

    def key(self, event: dict) -> tuple[int, int]:
        if event["cat"] in WORK or not self.gpu_of:
            return (event["pid"] if self.gpu_of else 0, event["args"]["correlation"])
        return (self.gpu_of[event["pid"]], event["args"]["correlation"])

    def span(self, event: dict) -> tuple[int, int]:
        return ns(event["ts"]), ns(event["ts"]) + ns(event["dur"])


@pytest.fixture(scope="module", params=FILES)
def file(request) -> File:
    return File(request.param)


def test_files_are_small_and_have_a_note():
    for name in FILES:
        assert (FOLDER / name).stat().st_size < 300_000
        assert (FOLDER / (make_authored.stem(name) + ".md")).stat().st_size > 500


def test_a_file_says_that_it_is_authored(file):
    assert file.content["traceview_authored"].startswith("Written by hand, not measured.")


def test_all_work_has_one_earlier_launch_of_its_own_process(file):
    calls = {file.key(e): e for e in file.host if e["cat"] in ("cuda_runtime", "cuda_driver")}
    for work in file.work:
        call = calls[file.key(work)]
        assert ns(work["ts"]) > ns(call["ts"]), work["name"]
        assert work["args"].get("External id") == call["args"].get("External id")


def test_streams_run_one_thing_at_a_time(file):
    lanes: dict[tuple[int, int], list[tuple[int, int]]] = {}
    for work in file.work:
        lanes.setdefault((work["pid"], work["tid"]), []).append(file.span(work))
    for spans in lanes.values():
        assert union_ns(spans) == sum(end - start for start, end in spans)


def test_host_events_nest(file):
    threads: dict[tuple[int, int], list[tuple[int, int]]] = {}
    for event in file.host:
        start, end = file.span(event)
        threads.setdefault((event["pid"], event["tid"]), []).append((start, -end))
    for spans in threads.values():
        open_ends: list[int] = []
        for start, minus_end in sorted(spans):
            while open_ends and open_ends[-1] <= start:
                open_ends.pop()
            assert not open_ends or -minus_end <= open_ends[-1]
            open_ends.append(-minus_end)


def test_flows_pair_launches_with_work(file):
    flows = [e for e in file.content["traceEvents"] if e["ph"] in "sf"]
    starts = Counter(e["id"] for e in flows if e["ph"] == "s")
    host_pids = {e["pid"] for e in file.host}
    ends = Counter(e["id"] for e in flows if e["ph"] == "f" and e["pid"] not in host_pids)
    assert set(starts) == set(ends)
    assert sum(ends.values()) == len(file.work)


def test_counts_in_the_truth_table(file):
    seen = Counter(e["cat"] for e in file.rows)
    seen.pop("gpu_user_annotation", None)
    assert dict(seen) == file.truth["events"]
    launched = {file.key(w) for w in file.work}
    assert len(launched) == file.truth["launches"]


def test_device_times_in_the_truth_table(file):
    for device in file.truth["devices"]:
        spans = [file.span(w) for w in file.work if w["pid"] == device["ordinal"]]
        assert (len(spans), union_ns(spans)) == (device["events"], device["busy_ns"])


def test_stage_times_in_the_truth_table(file):
    calls = {file.key(e): e for e in file.host if e["cat"] in ("cuda_runtime", "cuda_driver")}
    for pid in {e["pid"] for e in file.host}:
        stages = [s for s in file.truth["stages"] if s.get("pid", pid) == pid]
        for stage in stages:
            ranges = [file.span(e) for e in file.host if e["pid"] == pid and e["name"] == stage["stage"]]
            spans = []
            for work in file.work:
                call = calls[file.key(work)]
                at = ns(call["ts"])
                if call["pid"] == pid and any(start <= at <= end for start, end in ranges):
                    spans.append(file.span(work))
            assert (len(ranges), len(spans), union_ns(spans)) == (
                stage["count"], stage["device_events"], stage["device_busy_ns"],
            )  # fmt: skip


KERNELS_OF = {
    ("flash-2", "pytorch"): "pytorch_flash::flash_fwd", ("flash-2", "flash-attn"): "void flash::flash_fwd",
    ("mem-efficient", "pytorch"): "fmha_cutlassF", ("cudnn", "cudnn"): "native_sdpa", ("triton", "vllm"): "kernel_unified",
    ("aotriton", "aotriton"): "attn_fwd",
}  # fmt: skip


def test_fused_dispatches_in_the_truth_table(file):
    for row in file.truth["dispatches"]:
        marker = KERNELS_OF.get((row["implementation"], row["provider"]))
        if marker is None:
            continue
        rows = [r for r in file.truth["dispatches"] if KERNELS_OF.get((r["implementation"], r["provider"])) == marker]
        spans = [file.span(w) for w in file.work if marker in w["name"]]
        assert sum(r["device_ns"] for r in rows) == union_ns(spans)
        assert sum(r["kernels"] for r in rows) == len(spans)


def test_math_dispatch_is_all_work_below_the_math_op():
    file = File("flash-requested-math-ran.cuda-authored.json.gz")
    maths = [file.span(e) for e in file.host if e["name"] == "aten::_scaled_dot_product_attention_math"]
    calls = {file.key(e): ns(e["ts"]) for e in file.host if e["cat"] in ("cuda_runtime", "cuda_driver")}
    work = [w for w in file.work if any(a <= calls[file.key(w)] <= b for a, b in maths)]
    math = next(r for r in file.truth["dispatches"] if r["implementation"] == "math")
    assert (len(maths), len(work), union_ns(map(file.span, work))) == (6, 66, math["device_ns"])
    assert (math["count"], math["kernels"]) == (6, 66)
    for name in (
        "sm80_xmma_gemm_f32f32",
        "cunn_SoftMaxForward<4, float",
        "isneginf",
        "and_kernel_cuda",
        "where_kernel_impl",
    ):
        assert any(name in w["name"] for w in work), name


def test_the_pair_differs_in_denoise_alone():
    before, after = (File(f"flash-requested-{what}-ran.cuda-authored.json.gz").truth for what in ("math", "flash"))
    times = {
        s["stage"]: (s["device_busy_ns"], t["device_busy_ns"])
        for s, t in zip(before["stages"], after["stages"], strict=True)
    }
    assert times["text_encoder"][0] == times["text_encoder"][1]
    assert times["vae_decode"][0] == times["vae_decode"][1]
    assert times["denoise"][0] > 5 * times["denoise"][1]


def test_gaps_are_what_no_work_covers():
    file = File("gaps-and-copies.cuda-authored.json")
    gaps = [(gap["start_ns"], gap["start_ns"] + gap["dur_ns"]) for gap in file.truth["gaps"]]
    assert Counter(gap["during"].partition("#")[0] for gap in file.truth["gaps"]) == {
        "metrics": 4,
        "enumerate(DataLoader)": 3,
    }
    spans = [file.span(w) for w in file.work]
    assert union_ns([*spans, *gaps]) == union_ns(spans) + sum(end - start for start, end in gaps)
    whole = (min(spans)[0], max(end for _, end in spans))
    rest = whole[1] - whole[0] - union_ns([*spans, *gaps])
    assert 0 <= rest < 100_000 * len(spans)  # what is left are pauses shorter than a gap
    copies = Counter(w["args"]["bytes"] for w in file.work if w["name"] == "Memcpy HtoD (Pageable -> Device)")
    assert copies == {8 << 20: 4, file.truth["repeated_host_to_device_bytes"]: 4}


def test_both_ranks_leave_the_all_reduce_together():
    ranks = [File(f"two-ranks/rank{rank}.cuda-authored.json") for rank in (0, 1)]
    assert ranks[0].content["baseTimeNanoseconds"] != ranks[1].content["baseTimeNanoseconds"]
    ends = [
        [file.content["baseTimeNanoseconds"] + file.span(w)[1] for w in file.work if w["name"].startswith("nccl")]
        for file in ranks
    ]
    assert len(ends[0]) == 2
    assert ends[0] == ends[1]
    assert {w["args"]["correlation"] for w in ranks[0].work} == {w["args"]["correlation"] for w in ranks[1].work}


def test_a_join_by_correlation_alone_fails_on_merged_ranks():
    file = File("merged-ranks.cuda-authored.json")
    assert max(Counter(w["args"]["correlation"] for w in file.work).values()) == 2


def test_samples_are_built_to_the_same_bytes(tmp_path):
    for path in make_authored.build(tmp_path):
        kept = FOLDER / path.relative_to(tmp_path)
        new, old = path.read_bytes(), kept.read_bytes()
        if path.suffix == ".gz" and kept.parent.name != "bad":
            # Another zlib may compress to other bytes; the content must not change.
            new, old = gzip.decompress(new), gzip.decompress(old)
        assert new == old, f"{kept} is out of date: run python sample_traces/make.py"


def test_the_example_of_the_index_runs(capsys):
    example = (FOLDER / "README.md").read_text().split("```python\n")[1].split("```")[0]
    exec(compile(example, "README.md", "exec"), {})  # noqa: S102
    assert json.loads(capsys.readouterr().out)["traceEvents"][2]["name"] == "aten::mm"
