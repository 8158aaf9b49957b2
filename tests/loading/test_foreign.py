"""Each wrong kind of file is named for what it is, by its content, with the next step."""

from __future__ import annotations

import gzip
import io
import pickle
import sqlite3
import tarfile
import zipfile

import pytest

from traceview import foreign, sniffing
from traceview.errors import UnreadableTraceError, UsageError


def message(*fields):
    """A protocol-buffer message of ``(number, value)``; bytes are length-delimited, integers are varints."""

    def varint(n):
        out = b""
        while n > 0x7F:
            out, n = out + bytes([n & 0x7F | 0x80]), n >> 7
        return out + bytes([n])

    return b"".join(
        varint(number << 3 | 2) + varint(len(value)) + value
        if isinstance(value, bytes)
        else varint(number << 3) + varint(value)
        for number, value in fields
    )


def sqlite(*tables):
    database = sqlite3.connect(":memory:")
    for table in tables:
        database.execute(f"CREATE TABLE {table} (id INTEGER)")
    return database.serialize()


def packed(kind):
    buffer = io.BytesIO()
    if kind == "zip":
        with zipfile.ZipFile(buffer, "w") as archive:
            archive.writestr("trace.json", "{}")
    else:
        with tarfile.open(fileobj=buffer, mode="w") as archive:
            archive.addfile(tarfile.TarInfo("trace.json"), io.BytesIO())
    return buffer.getvalue()


PLANE = message((1, 2), (2, b"/device:TPU:0"), (3, message((2, b"XLA Ops"))))
DAMAGED_PLANE = message((1, PLANE))[:20] + "\ufffd".encode() * 40


def cut(data):
    return data[: len(data) * 2 // 3]


CASES = {
    "nsys-report": b"NVIDIA Tegra Profiler Report 2026@1@2@63-1v0\n\x00\x01",
    "nsys-sqlite": sqlite("StringIds", "CUPTI_ACTIVITY_KIND_KERNEL"),
    "rocpd": sqlite("rocpd_string", "rocpd_op"),
    "nvprof": sqlite("StringTable", "CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL"),
    "sqlite": sqlite("users"),
    "sqlite-cut": cut(sqlite("StringIds", "users")),
    "sqlite-packed": gzip.compress(sqlite("StringIds")),
    "zeroed": bytes(4096) + b"rest",
    "xplane": message((1, PLANE)),
    "xplane-as-text": DAMAGED_PLANE,
    "perfetto": message((1, message((8, 100), (10, 1))), (1, message((8, 200), (10, 1)))),
    "xprof-json": b'{"displayTimeUnit":"ns","metadata":{"highres-ticks":true},"traceEvents":[{"ph":"M","pid":3,"name":"process_name","args":{"name":"/device:TPU:0"}}]}',
    "tensorflow-timeline": b'{"traceEvents":[{"ph":"M","pid":0,"name":"process_name","args":{"name":"/job:localhost/replica:0/task:0/device:GPU:0 Compute"}}]}',
    "ascend": b'[{"ph":"X","name":"aten::mm","cat":"cpu_op","ts":"1.5","dur":2,"pid":1,"tid":1},' + b" " * 100_000 + b'{"ph":"M","name":"process_name","pid":2,"args":{"name":"Ascend Hardware"}}]',
    "execution-trace": b'{"schema": "1.0.1", "pid": 1, "nodes": [{"name": "aten::mm", "id": 2, "op_schema": "aten::mm(Tensor self)"}]}',
    "nccl-flight-recorder": b'{"version": "2.5", "pg_config": {"0": {"name": "0"}}, "entries": []}',
    "memory-snapshot": pickle.dumps({"segments": [], "device_traces": []}),
    "pickle": pickle.dumps([1, 2, 3]),
    "torch-trace-log": b'V0606 12:31:04.581000 140 torch/_logging/structured.py:22] {"str": ["a.py", 0]}\n',
    "capture-sidecar": b'{"schema": "traceview.capture/1", "session": "0123456789abcdef", "framework": "jax"}',
    "speedscope": b'{"$schema": "https://www.speedscope.app/file-format-schema.json", "profiles": []}',
    "viztracer": b'{"traceEvents": [], "viztracer_metadata": {"version": "1.0"}}',
    "devtools": b'{"metadata": {"source": "DevTools"}, "traceEvents": []}',
    "html": b"\n<!-- saved -->\n<!DOCTYPE html>\n<html><body>sign in</body></html>",
    "zip": packed("zip"),
    "tar": packed("tar"),
    "double-gzip": gzip.compress(gzip.compress(b'{"traceEvents": []}')),
    "zstd": b"\x28\xb5\x2f\xfd\x00",
    "bzip2": b"BZh91AY",
    "xz": b"\xfd7zXZ\x00\x00",
    "tensorboard-events": b"\x18\x00\x00\x00\x00\x00\x00\x00\xa3\x7fK\x22\x09\x00\x00\xc0\x9b\x91\xe1\xd9A\x1a\x0dbrain.Event:2",
    "git-lfs-pointer": b"version https://git-lfs.github.com/spec/v1\noid sha256:0\nsize 1\n",
    "chrome-trace": b'{"traceEvents": [{"ph": "X", "name": "draw", "ts": 0, "dur": 1}]}',
    "json-without-events": b'{"loss": [1.0, 0.5]}',
    "text": b"epoch,loss\n1,0.5\n",
    "binary": b"\x7fELF\x02\x01\x01\x00\x00",
}  # fmt: skip


def refusal(path):
    """What is said of a file when the parser of its format, if there is one, is not installed."""
    kind = foreign.identify(sniffing.probe(path))
    formats = [one for one in sniffing.installed_formats() if kind is None or one.name != kind.format]
    with pytest.raises(UnreadableTraceError) as caught:
        sniffing.recognise(sniffing.probe(path), formats)
    return caught.value


@pytest.mark.parametrize("kind", CASES)
def test_a_wrong_kind_of_file_is_named(kind, write):
    path = write("something.dat", CASES[kind])
    error = refusal(path)
    assert error.code == kind
    assert str(error).startswith(f"{path}: this is ")
    assert error.next_step.endswith(".")


@pytest.mark.parametrize("kind", ["execution-trace", "chrome-trace", "text", "tar", "memory-snapshot"])
def test_gzip_hides_nothing(kind, write):
    error = refusal(write("something.gz", gzip.compress(CASES[kind])))
    assert error.code == kind
    assert error.why.endswith(", packed with gzip.")


def test_every_kind_has_a_case():
    assert {kind.id for kind in (*foreign.KINDS, *foreign.FALLBACKS)} == set(CASES)


def test_the_answer_is_one_line_with_the_next_step(write):
    path = write("run.nsys-rep", CASES["nsys-report"])
    assert str(refusal(path)) == (
        f"{path}: this is a raw Nsight Systems report. Export it to SQLite first: nsys export --type sqlite FILE. "
        "This version of traceview cannot read that form (nsys) yet."
    )


def test_a_parser_for_the_kind_decides(write):
    class Nsys:
        name = "nsys"

        def sniff(self, probe):
            return 0.9

    path = write("run.sqlite", CASES["nsys-sqlite"])
    assert sniffing.recognise(sniffing.probe(path), [Nsys()]).name == "nsys"


def test_a_parser_that_is_not_for_the_kind_does_not(write):
    class Greedy:
        name = "greedy"

        def sniff(self, probe):
            return 0.9

    path = write("trace.json", CASES["ascend"])
    with pytest.raises(UnreadableTraceError, match="Ascend"):
        sniffing.recognise(sniffing.probe(path), [Greedy()])


def test_the_best_score_wins(write):
    class Scored:
        def __init__(self, name, score):
            self.name, self.score = name, score

        def sniff(self, probe):
            return self.score

    seen = sniffing.probe(write("trace.json", CASES["chrome-trace"]))
    assert sniffing.recognise(seen, [Scored("a", 0.6), Scored("b", 0.8), Scored("c", 0.1)]).name == "b"
    with pytest.raises(UnreadableTraceError, match="Chrome trace"):
        sniffing.recognise(seen, [Scored("a", 0.4)])


@pytest.mark.parametrize(
    ("content", "code"),
    [(b"", "empty-file"), (b"\x1f\x8b\x08\x00 not gzip at all", "bad-gzip")],
)
def test_a_file_with_nothing_in_it(content, code, write):
    with pytest.raises(UnreadableTraceError) as caught:
        sniffing.probe(write("trace.json.gz", content))
    assert caught.value.code == code


def test_a_damaged_gzip_shows_what_lies_before_the_damage(write):
    data = bytearray(gzip.compress(b"".join(b'{"traceEvents": %d}' % n for n in range(9000)), compresslevel=1))
    data[len(data) // 2] ^= 0xFF
    seen = sniffing.probe(write("trace.json.gz", bytes(data)))
    assert seen.text.startswith(b'{"traceEvents": 0}')


def test_a_pipe_is_not_waited_for(tmp_path):
    import os

    os.mkfifo(tmp_path / "pipe")
    with pytest.raises(UsageError, match="not a regular file"):
        sniffing.probe(tmp_path / "pipe")


def test_a_missing_file(tmp_path):
    with pytest.raises(UsageError, match="no such file or folder"):
        sniffing.probe(tmp_path / "absent.json")


@pytest.mark.parametrize(
    ("file", "code"),
    [
        ("other/hta-execution-trace.et.json.gz", "execution-trace"),
        ("other/ascend-trace-view.json.gz", "ascend"),
        ("nsys/cs336-raw-report.nsys-rep", "nsys-report"),
        ("nsys/saxpy-mpi-a100.sqlite", "nsys-sqlite"),
        ("nsys/dynamicvit-no-meta-table.sqlite", "nsys-sqlite"),
        ("nsys/torch-tiny-rtx3080-wsl.sqlite", "nsys-sqlite"),
        ("nsys/gemm-no-kernel-table.sqlite", "nsys-sqlite"),
        ("xprof/tpu-v6e-inference.xplane.pb", "xplane"),
        ("xprof/tf-bert-v100-multi-worker.xplane.pb", "xplane"),
        ("xprof/jax08-gemm-mi300.xplane.pb", "xplane"),
        ("xprof/jax-conv-legacy-mi300.xplane.pb", "xplane"),
        ("xprof/tpu-v6e-inference-broken-utf8.xplane.pb", "xplane-as-text"),
        ("xprof/vllm-tpu-qwen3-a.trace.json.gz", "xprof-json"),
        ("xprof/vllm-tpu-qwen3-b.trace.json.gz", "xprof-json"),
    ],
)
def test_real_files_of_other_tools(file, code, corpus):
    assert refusal(corpus / file).code == code


def test_no_real_kineto_trace_is_taken_for_another_kind(corpus):
    for path in sorted((corpus / "pytorch").iterdir()):
        assert foreign.identify(sniffing.probe(path)) is None, path.name


def test_the_next_step_names_every_format_that_is_read(write):
    said = str(refusal(write("x.txt", b"hello\n")))
    for word in ("prof.export_chrome_trace", "Nsight Systems", "XProf", "traceview capture"):
        assert word in said


def test_what_lies_behind_the_head_counts(write):
    long = b'{"meta": "' + b"x" * 3_000_000 + b'", '
    events = b'"traceEvents": [{"ph": "X", "cat": "toplevel", "name": "f", "ts": 1, "dur": 2, "pid": 1, "tid": 1}]}'
    for data in (long + events, gzip.compress(long + events)):
        assert refusal(write("t", data)).code == "chrome-trace"
    assert refusal(write("t", long + b'"a": 1}')).code == "json-without-events"


def test_the_text_is_searched_in_bounded_steps_and_across_them(write):
    mark = b"MARK-of-some-length"
    for before in (0, (1 << 20) - 7, 3 << 20):
        text = b" " * before + mark
        for data in (text, gzip.compress(text), gzip.compress(text[: before + 3]) + gzip.compress(text[before + 3 :])):
            seen = sniffing.probe(write("t", data))
            assert seen.holds(b"no", mark)
            assert not seen.holds(b"other")
    assert not sniffing.probe(write("t", b" " * (3 << 20) + mark)).holds(mark, limit=1 << 20)
