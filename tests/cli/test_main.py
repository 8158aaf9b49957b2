"""The frame of the command line: help, errors, exit codes, streams, speed."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from traceview import __version__
from traceview.cli import command, report
from traceview.cli import main as main_module
from traceview.cli.encoding import PLAIN_FOR
from traceview.cli.progress import Progress

PROGRAM = [sys.executable, "-c", "import sys; from traceview.cli.main import main; sys.exit(main())"]


def test_no_command_prints_the_help(run):
    done = run()
    assert done.code == 2
    assert done.out.startswith("usage: traceview")
    for name in ("check-dispatch", "report", "kernels"):
        assert name in done.out
    assert len(done.out.splitlines()) < 50


def test_version(run):
    assert run("--version").out == f"traceview {__version__}\n"


@pytest.mark.parametrize(
    "arguments", [["report"], ["repot", "x"], ["report", "x", "--form", "json"], ["kernels", "x", "--limit", "0"]]
)
def test_bad_usage_is_exit_code_2_and_says_what(arguments, run):
    done = run(*arguments)
    assert done.code == 2
    assert done.out == ""
    assert "error:" in done.err


@pytest.mark.parametrize("name", ["check-dispatch", "report", "kernels"])
def test_a_missing_file_is_one_line_on_stderr(name, run):
    done = run(name, "/no/such/trace.json")
    assert (done.code, done.out) == (2, "")
    assert done.err == "traceview: error: /no/such/trace.json: no such file or folder. Check the path.\n"


def test_a_defect_asks_for_a_report_and_keeps_its_traceback(monkeypatch, run):
    def broken(options):
        raise ZeroDivisionError("division by zero\nsecond line")

    monkeypatch.setattr(report, "run", broken)
    done = run("report", "x")
    assert (done.code, done.out) == (2, "")
    assert done.err == (
        "traceview: error: defect in traceview (ZeroDivisionError: division by zero); "
        "please report it with the output of the same command and --debug.\n"
    )
    assert "Traceback" in run("report", "x", "--debug").err


def test_a_panic_of_polars_is_a_defect_too(monkeypatch, run):
    class PanicException(BaseException):
        pass

    def broken(options):
        raise PanicException("index out of bounds")

    monkeypatch.setattr(report, "run", broken)
    assert run("report", "x").code == 2


def test_out_of_memory_is_said(monkeypatch, run):
    def broken(options):
        raise MemoryError

    monkeypatch.setattr(report, "run", broken)
    assert run("report", "x").err.startswith("traceview: error: out of memory.")


def test_interrupt_is_clean(monkeypatch, run):
    def interrupted(options):
        raise KeyboardInterrupt

    monkeypatch.setattr(report, "run", interrupted)
    done = run("report", "x")
    assert (done.code, done.err) == (130, "\ntraceview: interrupted\n")


def test_a_path_that_a_terminal_would_obey_is_shown(run):
    assert "\x1b" not in run("report", "/no/\x1b[31mred").err


def test_a_reader_that_goes_away_changes_nothing(samples):
    """The exit code is that of the answer, and nothing is said on stderr."""
    script = f"{subprocess.list2cmdline(PROGRAM[:1])} -c '{PROGRAM[2]}' check-dispatch --format json '{samples}/unfused-by-hand.cuda-authored.json' | true; echo ${{PIPESTATUS[0]}}"
    done = subprocess.run(["bash", "-c", script], capture_output=True, text=True, check=False)
    assert (done.stdout, done.stderr) == ("1\n", "")


@pytest.mark.parametrize("encoding", ["ascii", "latin-1", "utf-8"])
@pytest.mark.parametrize("form", ["text", "json"])
def test_any_terminal_encoding(encoding, form, samples):
    trace = samples / "unfused-by-hand.cuda-authored.json"
    done = subprocess.run(
        [*PROGRAM, "check-dispatch", str(trace), "--format", form],
        env=os.environ | {"PYTHONIOENCODING": encoding, "PYTHONUTF8": "0"}, capture_output=True, check=False,
    )  # fmt: skip
    assert (done.returncode, done.stderr) == (1, b"")
    done.stdout.decode(encoding)


def test_our_own_characters_have_a_stand_in_that_is_ascii(samples):
    done = subprocess.run(
        [*PROGRAM, "check-dispatch", str(samples / "flash-requested-math-ran.cuda-authored.json.gz")],
        env=os.environ | {"LC_ALL": "C", "PYTHONUTF8": "0", "PYTHONCOERCECLOCALE": "0"},
        capture_output=True, check=False,
    )  # fmt: skip
    assert b"6 x aten::scaled_dot_product_attention: an op that only this path" in done.stdout
    assert b"?" not in done.stdout


def test_every_character_that_we_write_has_a_stand_in():
    folder = Path(main_module.__file__).parents[1]
    written = {letter for file in folder.rglob("*.py") for letter in file.read_text("utf-8") if not letter.isascii()}
    assert written - set(PLAIN_FOR) == set()
    assert all(stand_in.isascii() for stand_in in PLAIN_FOR.values())


def test_nothing_but_the_result_is_written(samples):
    done = subprocess.run(
        [*PROGRAM, "report", str(samples / "two-ranks"), "--format", "json"],
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.stderr == ""
    assert done.stdout.startswith('{\n  "schema": "traceview.report/1"')


@pytest.mark.slow
def test_version_does_not_load_polars():
    code = "import sys; from traceview.cli.main import main\ntry: main(['--version'])\nexcept SystemExit: pass\nprint([m for m in ('polars', 'numpy', 'rich') if m in sys.modules])"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert done.stdout.splitlines()[-1] == "[]"


def test_json_does_not_load_rich(samples):
    code = f"import sys; from traceview.cli.main import main\nmain(['report', r'{samples / 'two-ranks'}', '--format', 'json'])\nprint([m for m in ('rich', 'jsonschema') if m in sys.modules], file=sys.stderr)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert done.stderr == "[]\n"


class Terminal:
    def __init__(self, *, tty):
        self.tty, self.written = tty, ""

    def isatty(self):
        return self.tty

    def write(self, text):
        self.written += text

    def flush(self):
        pass


@pytest.mark.parametrize(
    ("tty", "show", "expected"),
    [(True, True, "\rreading  50%\rreading 100%\r            \r"), (False, True, ""), (True, False, "")],
)
def test_progress_only_on_a_terminal(tty, show, expected, monkeypatch):
    clock = iter([0.0, 1.0, 1.1, 1.2, 1.3])
    monkeypatch.setattr(time, "monotonic", lambda: next(clock))
    terminal = Terminal(tty=tty)
    with Progress(terminal, show=show) as progress:
        for share in (0.5, 0.5, 1.0):
            progress(share)
    assert terminal.written == expected


def test_a_quick_read_shows_no_progress():
    terminal = Terminal(tty=True)
    with Progress(terminal, show=True) as progress:
        progress(1.0)
    assert terminal.written == ""


def test_a_log_gets_a_line_now_and_then(monkeypatch):
    now = [0.0]
    monkeypatch.setattr("traceview.cli.progress.time.monotonic", lambda: now[0])
    log = Terminal(tty=False)
    with Progress(log, show=True) as progress:
        for second in range(0, 131, 10):
            now[0] = float(second)
            progress(second / 200)
    assert log.written.splitlines() == [
        "traceview: still reading after 30 s (15%)",
        "traceview: still reading after 60 s (30%)",
        "traceview: still reading after 120 s (60%)",
    ]


def test_options_that_count():
    assert command.positive("3") == 3
    for text in ("0", "-1", "x", "1.5"):
        with pytest.raises(Exception, match="not a whole number above 0"):
            command.positive(text)


@pytest.mark.skipif(not hasattr(signal, "SIGINT"), reason="no signals")
def test_interrupting_the_program(tmp_path):
    """A real Ctrl-C while it reads."""
    code = PROGRAM[2].replace(
        "import sys;",
        "import sys; import traceview.cli.report as r, time; r.run = lambda o: (print('ready', flush=True), time.sleep(600));",
    )
    with subprocess.Popen(
        [sys.executable, "-c", code, "report", "x"], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    ) as program:
        assert program.stdout.readline() == "ready\n"
        program.send_signal(signal.SIGINT)
        _, err = program.communicate(timeout=300)
    assert (program.returncode, err) == (130, "\ntraceview: interrupted\n")


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["step", "x.json"], "Did you mean steps?"),
        (
            ["steps", "x.json", "--fromat", "json"],
            "traceview steps: error: unrecognized arguments: --fromat json. Did you mean --format?",
        ),
        (
            ["check-dispatch", "x.json", "--expct=a.toml"],
            "unrecognized arguments: --expct=a.toml. Did you mean --expect?",
        ),
        (["report", "x.json", "--format", "jsno"], "Did you mean json?"),
        (["--vresion"], "traceview: error: unrecognized arguments: --vresion. Did you mean --version?"),
        (
            ["capture", "torch", "--stepz", "3", "--", "x.py", "--foo"],
            "unrecognized arguments: --stepz. Did you mean --steps?",
        ),
        (["steps", "x.json", "--zzz"], "traceview steps: error: unrecognized arguments: --zzz"),
    ],
)
def test_what_may_have_been_meant_is_said(arguments, said, run):
    done = run(*arguments)
    assert (done.code, done.out) == (2, "")
    assert done.err.endswith(f"{said}\n")


def test_an_argument_cannot_write_to_the_terminal_as_it_likes(run):
    assert run("steps", "x.json", "--\x1b[31m\nforged").err.endswith("unrecognized arguments: --\\x1b[31m\\x0aforged\n")
