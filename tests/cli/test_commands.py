"""Each command on the sample traces, whose truth tables say what is right."""

from __future__ import annotations

import json

import pytest


def truth(samples, stem):
    return json.loads((samples / f"{stem}.truth.json").read_text())


@pytest.mark.parametrize(
    ("sample", "code"),
    [
        ("flash-requested-flash-ran.cuda-authored.json.gz", 0),
        ("flash-requested-math-ran.cuda-authored.json.gz", 1),
        ("unfused-by-hand.cuda-authored.json", 1),
    ],
)
def test_check_dispatch_ends_with_its_verdict(sample, code, samples, run):
    done = run("check-dispatch", samples / sample)
    assert done.code == code
    assert done.out.startswith({0: "PASS: ", 1: "FAIL: "}[code])
    assert done.out.endswith(f"exit code {code}\n")
    document = run("check-dispatch", samples / sample, "--format", "json").json
    assert document["verdict"] == {0: "pass", 1: "fail"}[code]
    assert document["exit_code"] == code
    assert any(finding["severity"] == "error" for finding in document["findings"]) == bool(code)


def test_inconclusive_is_3_or_a_warning(tmp_path, run):
    trace = tmp_path / "host-only.json"
    trace.write_text(
        '{"schemaVersion": 1, "traceEvents": [{"ph": "X", "cat": "cpu_op", "name": "aten::mm", "pid": 1, "tid": 1, "ts": 0, "dur": 5}]}'
    )
    done = run("check-dispatch", trace)
    assert (done.code, done.out.split(":")[0]) == (3, "INCONCLUSIVE")
    done = run("check-dispatch", trace, "--inconclusive=warn")
    assert (done.code, done.out.split(":")[0]) == (0, "INCONCLUSIVE")
    assert run("check-dispatch", trace, "--inconclusive=warn", "--format", "json").json["verdict"] == "inconclusive"


def test_report_of_two_ranks(samples, run):
    document = run("report", samples / "two-ranks", "--format", "json").json
    assert [one["rank"] for one in document["devices"]] == [0, 1]
    assert len(document["trace"]["files"]) == 2
    for one in document["devices"]:
        assert one["busy_ns"] == one["computation_ns"] + one["exposed_communication_ns"] + one["exposed_memcpy_ns"]
        assert one["span_ns"] == one["busy_ns"] + one["idle_ns"]


def test_kernels_are_chosen_and_ordered(samples, run):
    trace = samples / "mixed-backends.cuda-authored.json"
    everything = run("kernels", trace, "--format", "json").json
    totals = [one["total_ns"] for one in everything["kernels"]]
    assert totals == sorted(totals, reverse=True)
    assert everything["distinct"] == len(totals)
    counts = [one["count"] for one in run("kernels", trace, "--format", "json", "--sort", "count").json["kernels"]]
    assert counts == sorted(counts, reverse=True)
    names = [one["name"] for one in run("kernels", trace, "--format", "json", "--sort", "name").json["kernels"]]
    assert names == sorted(names)
    assert len(run("kernels", trace, "--format", "json", "--limit", "2").json["kernels"]) == 2
    family = everything["kernels"][0]["family"]
    chosen = run("kernels", trace, "--format", "json", "--family", family).json
    assert {one["family"] for one in chosen["kernels"]} == {family}


def test_a_family_that_is_not_there(samples, run):
    done = run("kernels", samples / "mixed-backends.cuda-authored.json", "--family", "attenton")
    assert (done.code, done.out) == (2, "")
    assert done.err.startswith(
        "traceview: error: --family attenton: no kernel in this trace is of that family. Families here: "
    )


def test_text_fits_into_a_hundred_columns(samples, run):
    for name in ("report", "stages", "steps", "check-dispatch", "gaps", "recompiles", "transfers"):
        for sample in ("two-ranks", "mixed-backends.cuda-authored.json", "rocm.hip-authored.json"):
            for line in run(name, samples / sample).out.splitlines():
                assert len(line) <= 100, (name, sample, line)


def test_strict_refuses_a_cut_file(tmp_path, samples, run):
    cut = tmp_path / "cut.json"
    data = (samples / "unfused-by-hand.cuda-authored.json").read_bytes()
    cut.write_bytes(data[: len(data) * 2 // 3])
    assert "cut off" in run("report", cut).out
    done = run("report", cut, "--strict")
    assert (done.code, done.out) == (2, "")
    assert done.err.startswith(
        "traceview: error: strict mode: the import was not clean: the file ends before its own end"
    )
