"""Write small profiler traces by hand, in the layout of the PyTorch profiler (Kineto).

A trace is written like the program it pretends to record::

    trace = Trace(gpu=H100, note="two calls, one kernel each")
    main = trace.thread()
    with main.step(0), main.range("denoise"):
        with main.op("aten::mm", Tensor(64, 64), Tensor(64, 64)):
            main.launch("ampere_sgemm_128x64_nn", us=12.5)
        main.sync()
    trace.write(Path("two-calls.json"))

Every thread has a clock of whole nanoseconds that only calls on it move, so a trace comes out the same to the
byte each time. Nothing here is measured: what is written says so in the key ``traceview_authored``.
"""

from __future__ import annotations

from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final

from sample_traces.kineto_text import A100, H100, MI300X, Event, Gpu, Tensor, render, signature, write_text

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from pathlib import Path

__all__ = ["A100", "H100", "MI300X", "Dispatch", "Event", "Gpu", "Tensor", "Thread", "Trace"]

CBID: Final[dict[str, int]] = {
    "cudaMalloc": 20, "cudaMemcpyAsync": 41, "cudaMemsetAsync": 51, "cudaStreamSynchronize": 131,
    "cudaEventSynchronize": 137, "cudaDeviceSynchronize": 165, "cudaLaunchKernel": 211, "cudaFuncSetAttribute": 273,
    "cudaGraphLaunch": 311, "cudaStreamIsCapturing": 317, "cudaLaunchKernelExC": 430, "cuLaunchKernel": 307,
    "cuLaunchKernelEx": 652, "hipGetDevice": 44, "hipGraphLaunch": 215, "hipLaunchKernel": 211,
    "hipModuleLaunchKernel": 256, "hipExtModuleLaunchKernel": 37, "hipMemcpyWithStream": 153,
    "hipStreamSynchronize": 393, "hipDeviceSynchronize": 38,
}  # fmt: skip
"""Callback ids; only decoration, no reader may depend on them."""

COPY_ENDS: Final = {"HtoD": "{host} -> Device", "DtoH": "Device -> {host}", "DtoD": "Device -> Device"}


@dataclass(slots=True)
class Dispatch:
    """What the author says about one requested operation: the answer a reader has to find."""

    op: str
    implementation: str
    provider: str | None
    attribution: str
    stage: str
    kernels: list[Event] = field(default_factory=list)


class Trace:
    """One trace file in the making.

    Args:
        gpu: Product of every device; ``None`` for a machine without one.
        devices: How many of them ``deviceProperties`` lists.
        device: Ordinal that launches go to.
        pid: Process id of the recorded program.
        base_ns: ``baseTimeNanoseconds``; the wall clock of an event is this plus its ``ts``.
        start_ns: First instant of the clocks, counted from ``base_ns``.
        rank: Distributed rank, with ``world_size``; ``None`` leaves ``distributedInfo`` out.
        first_correlation: Where correlation ids start.
        shapes: Whether op arguments are written (``record_shapes``).
        note: What the trace shows; goes into ``traceview_authored``.
        extra: More top-level keys.
    """

    def __init__(
        self, *, gpu: Gpu | None = H100, devices: int = 1, device: int = 0, pid: int = 4242,
        base_ns: int = 1_767_225_600_000_000_000, start_ns: int = 5_000_000_000_123_456,
        rank: int | None = None, world_size: int = 1, first_correlation: int = 101, shapes: bool = True,
        note: str = "", extra: dict[str, Any] | None = None,
    ) -> None:  # fmt: skip
        self.gpu, self.devices, self.device, self.pid = gpu, devices if gpu else 0, device, pid
        self.base_ns, self.start_ns = base_ns, start_ns
        self.rank, self.world_size, self.shapes, self.note = rank, world_size, shapes, note
        self.extra = dict(extra or {})
        self.host: list[Event] = []
        self.device_events: list[Event] = []
        self.launches: list[Event] = []
        self.threads: list[Thread] = []
        self.dispatches: list[Dispatch] = []
        self.instants: list[dict[str, Any]] = []
        self.stream_free: dict[tuple[int, int], int] = {}
        self.owner: dict[int, Event] = {}
        self._correlation, self._external, self._python = first_correlation - 1, 0, 0

    def thread(self, tid: int | None = None, *, name: str = "python3") -> Thread:
        """A host thread; the first one is the main thread."""
        thread = Thread(self, self.pid if tid is None else tid, name)
        self.threads.append(thread)
        return thread

    def next_correlation(self) -> int:
        """A fresh launch key."""
        self._correlation += 1
        return self._correlation

    def next_external(self) -> int:
        """A fresh op key."""
        self._external += 1
        return self._external

    def next_python(self) -> int:
        """A fresh Python frame key."""
        self._python += 1
        return self._python

    def text(self) -> str:
        """The file, in the layout that PyTorch writes."""
        return render([self])

    def write(self, path: Path) -> Path:
        """Write the file; a name that ends in ``.gz`` is compressed."""
        return write_text(path, self.text())


class Thread:
    """One host thread: a clock and what happens on it."""

    def __init__(self, trace: Trace, tid: int, name: str) -> None:
        self.trace, self.tid, self.name = trace, tid, name
        self.now = trace.start_ns
        self._open: list[Event] = []
        self._frames: list[Event] = []
        self._dispatch: list[Dispatch] = []

    def idle(self, us: float) -> None:
        """Let time pass without an event."""
        self.now += round(us * 1000)

    @contextmanager
    def _span(self, cat: str, name: str, args: dict[str, Any], head_ns: int, tail_ns: int) -> Iterator[Event]:
        event = Event(cat, name, self.trace.pid, self.tid, self.now, 0, args)
        self.trace.host.append(event)
        self._open.append(event)
        self.now += head_ns
        yield event
        self.now += tail_ns
        event.end_ns = self.now
        self._open.pop()
        self.now += 371  # an odd gap between siblings, so that nanosecond digits matter

    @contextmanager
    def op(self, name: str, *inputs: Any, us: float = 2.113) -> Iterator[Event]:
        """An operator with children; ``us`` is its own time. ``inputs`` are its arguments in order."""
        args: dict[str, Any] = {"External id": self.trace.next_external(), "Record function id": 0}
        if self.trace.shapes and inputs:
            args |= signature(inputs)
        own = round(us * 1000)
        with self._span("cpu_op", name, args, own * 2 // 3, own - own * 2 // 3) as event:
            yield event

    def call(self, name: str, *inputs: Any, us: float = 0.897) -> None:
        """An operator without children."""
        with self.op(name, *inputs, us=us):
            pass

    @contextmanager
    def range(self, name: str, *, us: float = 3.271) -> Iterator[Event]:
        """A ``record_function`` range."""
        args = {"External id": self.trace.next_external(), "Record function id": 0}
        with self._span("user_annotation", name, args, round(us * 500), round(us * 500)) as event:
            yield event

    def step(self, index: int) -> Any:
        """One step of the profiler's schedule."""
        return self.range(f"ProfilerStep#{index}", us=9.418)

    @contextmanager
    def python(self, name: str, *, us: float = 1.614) -> Iterator[Event]:
        """A Python frame (``with_stack``)."""
        parent = self._frames[-1].args["Python id"] if self._frames else None
        args = {"Python parent id": parent, "Python id": self.trace.next_python()}
        with self._span("python_function", name, args, round(us * 500), round(us * 500)) as event:
            self._frames.append(event)
            yield event
            self._frames.pop()

    @contextmanager
    def dispatch(
        self, op: str, implementation: str, provider: str | None, *, stage: str = "", attribution: str = "attributed"
    ) -> Iterator[None]:
        """State the right answer for the device work launched inside. Writes nothing into the trace."""
        said = Dispatch(op, implementation, provider, attribution, stage)
        self.trace.dispatches.append(said)
        self._dispatch.append(said)
        yield
        self._dispatch.pop()

    def _runtime(self, name: str, us: float, args: dict[str, Any] | None = None) -> Event:
        correlation = self.trace.next_correlation()
        head: dict[str, Any] = {}
        owner = next((e for e in reversed(self._open) if "External id" in e.args), None)
        if owner:
            head["External id"] = owner.args["External id"]
        head["cid" if name.startswith("hip") else "cbid"] = CBID.get(name, 0)
        head["correlation"] = correlation
        driver = name.startswith("cu") and not name.startswith("cuda")
        end = self.now + round(us * 1000)
        event = Event("cuda_driver" if driver else "cuda_runtime", name, self.trace.pid, self.tid, self.now, end, head)
        event.args |= args or {}
        self.trace.host.append(event)
        ranges = [e for e in self._open if e.cat == "user_annotation"]
        if ranges:
            self.trace.owner[correlation] = ranges[-1]
        self.now = end + 219
        return event

    def api(self, name: str, *, us: float = 1.109) -> None:
        """A runtime call that starts no device work."""
        self._runtime(name, us)

    def launch(
        self, kernel: str, *, us: float, stream: int | None = None, api: str | None = None, api_us: float = 4.877,
        grid: tuple[int, int, int] = (132, 1, 1), block: tuple[int, int, int] = (128, 1, 1), regs: int = 96,
        smem: int = 0, latency_us: float = 2.6, not_before_ns: int = 0, more: dict[str, Any] | None = None,
    ) -> Event:  # fmt: skip
        """A launch call and its kernel; returns the kernel. The kernel waits for its stream."""
        call = self._launch_call(api, api_us)
        return self._kernel(call, kernel, us, stream, grid, block, regs, smem, latency_us, not_before_ns, more)

    def graph_launch(self, kernels: Sequence[tuple[str, float]], *, api_us: float = 21.344) -> list[Event]:
        """One graph launch that owns several kernels."""
        rocm = self._rocm
        call = self._launch_call("hipGraphLaunch" if rocm else "cudaGraphLaunch", api_us)
        return [
            self._kernel(call, name, us, None, (132, 1, 1), (128, 1, 1), 64, 0, 4.2, 0, None) for name, us in kernels
        ]

    @property
    def _rocm(self) -> bool:
        return self.trace.gpu is not None and self.trace.gpu.rocm

    def _launch_call(self, api: str | None, us: float) -> Event:
        call = self._runtime(api or ("hipLaunchKernel" if self._rocm else "cudaLaunchKernel"), us)
        self.trace.launches.append(call)
        return call

    def _device(
        self, call: Event, cat: str, name: str, us: float, stream: int | None, latency_us: float, not_before_ns: int
    ) -> Event:
        trace = self.trace
        lane = (0 if self._rocm else 7) if stream is None else stream
        key = (trace.device, lane)
        start = max(trace.stream_free.get(key, 0), call.end_ns + round(latency_us * 1000), not_before_ns)
        end = start + round(us * 1000)
        trace.stream_free[key] = end + 640
        event = Event(cat, name, trace.device, lane, start, end)
        if "External id" in call.args:
            event.args["External id"] = call.args["External id"]
        trace.device_events.append(event)
        if self._dispatch and cat == "kernel":
            self._dispatch[-1].kernels.append(event)
        return event

    def _kernel(  # noqa: PLR0917
        self, call: Event, name: str, us: float, stream: int | None, grid: Sequence[int], block: Sequence[int],
        regs: int, smem: int, latency_us: float, not_before_ns: int, more: dict[str, Any] | None,
    ) -> Event:  # fmt: skip
        event = self._device(call, "kernel", name, us, stream, latency_us, not_before_ns)
        correlation = call.args["correlation"]
        if self._rocm:
            event.args |= {"device": event.pid, "stream": event.tid, "correlation": correlation,
                           "kind": "Dispatch Kernel", "grid": list(grid), "block": list(block)}  # fmt: skip
        else:
            sms = self.trace.gpu.sms if self.trace.gpu else 1
            blocks = grid[0] * grid[1] * grid[2] / sms
            warps = blocks * ((block[0] * block[1] * block[2] + 31) // 32)
            event.args |= {
                "queued": 0, "device": event.pid, "context": 1, "stream": event.tid, "correlation": correlation,
                "registers per thread": regs, "shared memory": smem, "blocks per SM": round(blocks, 6),
                "warps per SM": round(warps, 6), "grid": list(grid), "block": list(block),
                "est. achieved occupancy %": min(100, round(warps * 100 / 64)),
            }  # fmt: skip
        event.args |= more or {}
        return event

    def memcpy(
        self, direction: str, nbytes: int, *, us: float, pinned: bool = False, stream: int | None = None
    ) -> None:
        """A copy (``HtoD``, ``DtoH``, ``DtoD``). A copy of pageable memory blocks the caller until it is done."""
        call = self._launch_call("hipMemcpyWithStream" if self._rocm else "cudaMemcpyAsync", 6.032)
        ends = COPY_ENDS[direction].format(host="Pinned" if pinned else "Pageable")
        event = self._device(call, "gpu_memcpy", f"Memcpy {direction} ({ends})", us, stream, 1.9, 0)
        self._bytes(event, call, nbytes)
        if direction != "DtoD" and not pinned:
            call.end_ns = max(call.end_ns, event.end_ns + 1500)
            self.now = call.end_ns + 219

    def memset(self, nbytes: int, *, us: float = 1.184, stream: int | None = None) -> None:
        """A fill."""
        call = self._launch_call("cudaMemsetAsync", 4.105)
        self._bytes(self._device(call, "gpu_memset", "Memset (Device)", us, stream, 1.9, 0), call, nbytes)

    def _bytes(self, event: Event, call: Event, nbytes: int) -> None:
        rate = nbytes / (event.end_ns - event.start_ns)
        context = {} if self._rocm else {"context": 1}
        event.args |= {"device": event.pid, **context, "stream": event.tid, "correlation": call.args["correlation"],
                       "bytes": nbytes, "memory bandwidth (GB/s)": rate}  # fmt: skip

    def sync(self, api: str | None = None, *, stream: int | None = None) -> None:
        """Wait for one stream, or for the device with ``cudaDeviceSynchronize``."""
        name = api or ("hipStreamSynchronize" if self._rocm else "cudaStreamSynchronize")
        call = self._runtime(name, 1.337)
        lane = (0 if self._rocm else 7) if stream is None else stream
        whole = "Device" in name
        busy = [e.end_ns for e in self.trace.device_events if whole or e.tid == lane]
        call.end_ns = max([call.end_ns, *(end + 2200 for end in busy)])
        self.now = call.end_ns + 219
