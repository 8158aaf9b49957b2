"""Runs somebody's program with a profiler around it: the child of ``traceview capture torch`` and ``jax``.

The program sees what it would see without: its ``sys.argv``, its ``__main__``, its folder first on ``sys.path``. The
profiler stops and the trace is written however it ends, short of ``os._exit`` and a crash of the interpreter.
"""

from __future__ import annotations

import json
import os
import runpy
import signal
import sys
import time
import traceback
from dataclasses import asdict, dataclass, field
from typing import TYPE_CHECKING, Any, Final

from traceview.capture.jax_recording import JaxRecording
from traceview.capture.torch_recording import TorchRecording
from traceview.errors import TraceviewError

if TYPE_CHECKING:
    from collections.abc import Callable

    Recording = TorchRecording | JaxRecording

TERMINATED: Final = 128 + signal.SIGTERM
INTERRUPTED: Final = 128 + signal.SIGINT
_TRACED: Final = "/jax/core/compile/jaxpr_trace_duration"
"""The event of JAX's first work (``jax.monitoring``, jax 0.10): from then on its set-up is over."""


@dataclass(frozen=True, slots=True)
class Job:
    """What to record.

    Attributes:
        profiler: ``"torch"`` or ``"jax"``.
        out: The trace.
        status: Where to say what became of it.
        module: The program is the name of a module, not of a file.
        delay: Seconds to wait before recording.
        duration: Seconds to record; ``None``: to the end.
        steps: Steps of an optimizer to record; ``None``: steps are not looked at.
        warmup: Such steps before that.
        shapes: Record shapes.
        stacks: Record Python call stacks.
        memory: Record allocations.
        contract: What is measured.
    """

    profiler: str
    out: str
    status: str
    module: bool = False
    delay: float = 0.0
    duration: float | None = None
    steps: int | None = None
    warmup: int = 0
    shapes: bool = True
    stacks: bool = False
    memory: bool = False
    contract: dict[str, str] = field(default_factory=dict)

    def text(self) -> str:
        """As one argument of a command line."""
        return json.dumps(asdict(self))


@dataclass(slots=True)
class Outcome:
    """What became of it, for the parent.

    Attributes:
        exit_code: What the program ended with; ``None``: it did not run or did not end by itself.
        recorded_s: How long was recorded, s.
        error: Why there is no trace, one line; empty if there is one.
        steps: Steps that were recorded; ``None``: none was marked.
        changed: Settings of the framework that did not stay the same while it was recorded.
    """

    exit_code: int | None = None
    recorded_s: float = 0.0
    error: str = ""
    steps: int | None = None
    changed: list[str] = field(default_factory=list)

    def write(self, path: str) -> None:
        """Write it, whole or not at all."""
        with open(f"{path}.part", "w", encoding="utf-8") as file:
            json.dump(asdict(self), file)
        os.replace(f"{path}.part", path)


class Window:
    """When to record: from the start or after a delay, to the end or for a duration or a number of steps."""

    def __init__(self, job: Job) -> None:
        self._job = job
        self._begun: float | None = None
        self.recorded_s = 0.0
        self.error = ""
        options: dict[str, Any] = {"stacks": job.stacks, "contract": job.contract, "steps": job.steps}
        self.recording: Recording
        if job.profiler == "torch":
            self.recording = TorchRecording(
                job.out, warmup=job.warmup, shapes=job.shapes, memory=job.memory, all_threads=True, **options
            )
        else:
            self.recording = JaxRecording(job.out, **options)

    def open(self) -> None:
        """Import the framework and record, or see to it that recording begins when it should."""
        self.recording.prepare()
        if self._job.delay:
            _after(self._job.delay, self._on_alarm)
        elif isinstance(self.recording, JaxRecording):
            _on_first_work(self._start)
        else:
            self._start()

    def close(self) -> None:
        """Stop and write the trace."""
        signal_off()
        self._stop()
        if isinstance(self.recording, TorchRecording):
            self.recording.release()
        if self.recording.info is None and not self.error:
            late = f" before --delay {self._job.delay:g} s was over" if self._job.delay else ""
            self.error = f"the program ended{late} without anything to record, so there is no trace."

    def _start(self) -> None:
        if self._begun is not None:
            return
        self._begun = time.monotonic()
        try:
            if isinstance(self.recording, TorchRecording) and self._job.steps is not None:
                _on_optimizer_step(self._step)
            self.recording.start(marks=self._job.steps is not None)
        except TraceviewError as error:
            self.error = str(error)
            return
        if self._job.duration is not None:
            _after(self._job.duration, self._on_alarm)

    def _step(self) -> None:
        """End a step; the last one ends the recording."""
        if self._begun is None or not isinstance(self.recording, TorchRecording):
            return
        before, now = self.recording.info, time.monotonic()
        self.recording.step()
        if before is None and self.recording.info is not None:
            self.recorded_s = now - self._begun

    def _stop(self) -> None:
        if self._begun is None or self.recording.info is not None or self.error:
            return
        self.recorded_s = time.monotonic() - self._begun
        try:
            self.recording.stop()
        except (TraceviewError, OSError) as error:
            self.error = str(error)

    def _on_alarm(self, *_: object) -> None:
        if self._begun is None:
            self._start()
        else:
            self._stop()


def _after(seconds: float, handler: Any) -> None:
    """Call in the main thread, which is the one that the PyTorch profiler records from."""
    if not hasattr(signal, "SIGALRM"):
        raise TraceviewError("no-timer", where="--delay", why="and --duration need a timer that this system lacks.")
    signal.signal(signal.SIGALRM, handler)
    signal.setitimer(signal.ITIMER_REAL, seconds)


def signal_off() -> None:
    """No alarm any more."""
    if hasattr(signal, "SIGALRM"):
        signal.setitimer(signal.ITIMER_REAL, 0)


def _on_optimizer_step(step: Callable[[], None]) -> None:
    """Every step of an optimizer ends a step of the recording."""
    from importlib import import_module

    module = import_module("torch.optim.optimizer")
    module.register_optimizer_step_post_hook(lambda *_: step())


def _on_first_work(start: Any) -> None:
    """Start when JAX traces its first function: starting before would settle what the program may still configure."""
    from importlib import import_module

    monitoring = import_module("jax.monitoring")

    def heard(event: str, *_: object, **__: object) -> None:
        if event == _TRACED:
            start()

    monitoring.register_event_duration_secs_listener(heard)


def _terminate(*_: object) -> None:
    raise SystemExit(TERMINATED)


def run(job: Job, program: str, arguments: list[str]) -> Outcome:
    """Run a program and record it."""
    outcome = Outcome()
    try:
        window = Window(job)
        window.open()
    except TraceviewError as error:
        outcome.error = str(error)
        return outcome
    if signal.getsignal(signal.SIGTERM) is signal.SIG_DFL:
        signal.signal(signal.SIGTERM, _terminate)
    sys.argv = [program, *arguments]
    # In place of the folder of this module.
    sys.path[0] = os.getcwd() if job.module else os.path.dirname(os.path.abspath(program))
    try:
        outcome.exit_code = _run_program(program, module=job.module)
    finally:
        window.close()
        outcome.recorded_s, outcome.error = window.recorded_s, window.error
        if (info := window.recording.info) is not None:
            outcome.steps, outcome.changed = info.steps, list(info.changed)
    return outcome


def _run_program(program: str, *, module: bool) -> int:
    """The exit code that Python would end with; an error is printed as Python prints it."""
    try:
        if module:
            runpy.run_module(program, run_name="__main__", alter_sys=True)
        else:
            runpy.run_path(program, run_name="__main__")
    except SystemExit as end:
        if end.code is None or isinstance(end.code, int):
            return end.code or 0
        print(end.code, file=sys.stderr)  # noqa: T201 - as Python does
        return 1
    except KeyboardInterrupt:
        return INTERRUPTED
    except BaseException as error:  # noqa: BLE001 - whatever it is, it is the program's
        own = {__file__, runpy.__file__, "<frozen runpy>"}
        trace = error.__traceback__
        while trace is not None and trace.tb_frame.f_code.co_filename in own:
            trace = trace.tb_next
        traceback.print_exception(type(error), error, trace)
        return 1
    return 0


def main(arguments: list[str]) -> int:
    """Entry of the child: the job as JSON, the program, its arguments."""
    job = Job(**json.loads(arguments[0]))
    # Whoever started this knows from the file that it came so far.
    Outcome(error="the process was killed, or ended by os._exit, so there is no trace.").write(job.status)
    outcome = run(job, arguments[1], arguments[2:])
    outcome.write(job.status)
    for stream in (sys.stdout, sys.stderr):
        stream.flush()
    return outcome.exit_code if outcome.exit_code is not None else 2


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
