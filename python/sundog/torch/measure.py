"""Whether a fused subgraph is worth it, by the clock.

A cost model ranks kernels of ours; it does not know what PyTorch's own kernels take. So where there is a GPU each fused
subgraph is timed against what would run in its place, and runs fused only if that is faster:

    rivals      "eager": the operators as PyTorch launches them. "max-autotune": Inductor's code for the subgraph too.
    the rule    the least time wins. Within 2 % of one another the form with fewer launches is kept: the fused one,
                unless it stands for a single operator, which PyTorch runs without us.
    the method  that of codegen/launch.h: the calls of a replay are captured into one CUDA graph, each reads another
                copy of the inputs, the copies together exceed the L2 four times, a large buffer is read before each
                replay; median over the replays of two rounds, the second in reverse order.
    the check   the outputs are compared with PyTorch's before and after, on inputs that the kernel has not seen: one
                that skips work is the fastest there is.

Times are kept beside the results (optimizer.cache_folder()), by kernel, subgraph, GPU and version of PyTorch. The clock
is a parameter: a function of the ways to time and the inputs they take.
"""

from __future__ import annotations

import hashlib
import json
import logging
import pathlib
import statistics
from typing import Any, Callable, Mapping, Protocol, Sequence

import torch
from torch.utils._python_dispatch import _disable_current_modes

from sundog import _library
from sundog._library import SundogError
from sundog.kernel import write_whole
from sundog.optimizer import cache_folder

log = logging.getLogger("sundog")

TIE = 0.02
FUSED, EAGER, MAX_AUTOTUNE = "fused", "eager", "max-autotune"
RIVALS = (EAGER, MAX_AUTOTUNE)

REPLAYS = 22  # of each way, over both rounds
MIN_CALLS, MAX_COPIES = 16, 64
FLUSH_BYTES = 512 << 20
MAX_REPLAY_US = 20_000.0
AGREEMENT = 0.05  # of the largest value: outputs further apart than this are no rounding


class Clock(Protocol):
    """Microseconds of each way to compute the same, or why it has none. `inputs` say what a way is called with."""

    def __call__(self, ways: Mapping[str, Callable[..., Any]], inputs: Sequence[Any]) -> dict[str, float | str]: ...


class Times:
    """What the clock said of one subgraph, and what follows from it."""

    def __init__(self, found: Mapping[str, float | str], launches: int, operators: int) -> None:
        self.us = {way: float(us) for way, us in found.items() if not isinstance(us, str)}
        self.failed = {way: us for way, us in found.items() if isinstance(us, str)}
        self.winner = self._winner(launches, operators)

    def _winner(self, launches: int, operators: int) -> str:
        rivals = {way: us for way, us in self.us.items() if way != FUSED}
        best = min(rivals, key=rivals.__getitem__, default=EAGER)
        if FUSED not in self.us or not rivals:
            return best if FUSED in self.failed else FUSED
        tie = 1 + TIE if launches < operators else 1 - TIE
        return FUSED if self.us[FUSED] <= rivals[best] * tie else best

    def __str__(self) -> str:
        parts = [f"{us:.2f} us {way}" for way, us in self.us.items()]
        parts += [f"{way} not timed ({reason})" for way, reason in self.failed.items()]
        return ", ".join(parts)


class Foreign:
    """A rival that runs in place of a subgraph, with the strides that were foretold."""

    def __init__(self, call: Callable[..., Any], outputs: Sequence[Any], name: str) -> None:
        self.call, self.strides = call, [tuple(e.stride) for e in outputs]
        self.__name__ = self.__qualname__ = name

    def __call__(self, *tensors: torch.Tensor) -> Any:
        found = self.call(*tensors)
        values = tuple(with_strides(v, s) for v, s in zip(_outputs(found), self.strides))
        return values[0] if len(values) == 1 else values


def with_strides(value: torch.Tensor, strides: tuple[int, ...]) -> torch.Tensor:
    """Eager operators may give other strides than tracing foretold; a kernel of ours never does."""
    if tuple(value.stride()) == strides:
        return value
    copy = torch.empty_strided(value.shape, strides, dtype=value.dtype, device=value.device)
    return copy.copy_(value)


class Stopwatch:
    """Times subgraphs against what would run in their place, each once."""

    def __init__(self, against: str | None, clock: Clock | None, cache: bool) -> None:
        if against is not None and against not in RIVALS:
            raise SundogError(f"against={against!r} is nothing to time against", f"it is {', '.join(RIVALS)} or None")
        self.against, self.clock, self.cache = against, clock, cache
        self._known: dict[str, Times] = {}

    def times(self, kernel: Any, subgraph: torch.fx.GraphModule, operators: int) -> tuple[Times, dict[str, Callable[..., Any]]] | None:
        """Of a runtime.FusedKernel, and of the subgraph that it stands for; with what was timed. None where there is
        nothing to time with or against."""
        clock = self.clock_for(kernel.device)
        if clock is None or kernel.on == "eager":
            return None
        ways: dict[str, Callable[..., Any]] = {FUSED: kernel.run, EAGER: subgraph}
        names = [*ways, MAX_AUTOTUNE] if self.against == MAX_AUTOTUNE else [*ways]
        key = key_of(kernel, subgraph.graph, names)
        path = cache_folder() / "times" / f"{key}.json"
        if key not in self._known and (found := _read(path, names) if self.cache else None) is not None:
            self._known[key] = Times(found, kernel.kernel.launches, operators)
        known = self._known.get(key)
        # A backend is called while values are fake; what is timed is real.
        with _disable_current_modes(), torch._guards.tracing(None), torch.no_grad():
            if self.against == MAX_AUTOTUNE and (known is None or known.winner == MAX_AUTOTUNE):
                ways[MAX_AUTOTUNE] = inductor(subgraph, kernel.inputs)
            if known is None:
                found = clock(ways, kernel.inputs)
                known = self._known[key] = Times(found, kernel.kernel.launches, operators)
                if self.cache:
                    _write(path, found)
        return known, ways

    def clock_for(self, device: torch.device) -> Clock | None:
        """What times the subgraphs of a device, or None where they are not timed."""
        return None if self.against is None else self.clock or clock_of(device)

    def eager(self, subgraph: torch.fx.GraphModule, inputs: Sequence[Any], device: torch.device) -> float | None:
        """Microseconds of operators as PyTorch launches them, or None where the clock cannot tell."""
        clock = self.clock_for(device)
        if clock is None:
            return None
        with _disable_current_modes(), torch._guards.tracing(None), torch.no_grad():
            found = clock({EAGER: subgraph}, inputs)[EAGER]
        return None if isinstance(found, str) else found

    def described(self, device: torch.device) -> str:
        """By what subgraphs are decided, for the report."""
        if self.against is None:
            return "not timed: asked not to (against=None)"
        if self.clock is not None:
            return f"timed against {self.against}"
        if clock_of(device) is None:
            return "not timed: no GPU"
        return f"timed on {torch.cuda.get_device_name(device)} against {self.against}"


def _read(path: pathlib.Path, ways: Sequence[str]) -> dict[str, float | str] | None:
    try:
        found = json.loads(path.read_bytes())
        right = set(found) == set(ways) and all(isinstance(v, (float, int, str)) for v in found.values())
        return found if right else None
    except (OSError, ValueError, TypeError):
        return None  # a damaged entry is no entry


def _write(path: pathlib.Path, found: Mapping[str, float | str]) -> None:
    try:
        write_whole(path, json.dumps(dict(found)).encode())
    except OSError:
        pass  # as with results: no reason to fail


def key_of(kernel: Any, graph: torch.fx.Graph, ways: Sequence[str]) -> str:
    """What the times of a subgraph depend on; names of its values are not of it."""
    device = torch.cuda.get_device_name(kernel.device) if kernel.device.type == "cuda" else kernel.device.type
    layout = [(str(e.dtype), e.shape, e.stride, e.align) for e in kernel.inputs]
    number: dict[Any, int] = {}
    for node in graph.nodes:
        number[node] = len(number)
    operators = [
        (str(n.target) if n.op == "call_function" else n.op, torch.fx.map_arg((n.args, n.kwargs), lambda m: f"%{number[m]}"))
        for n in graph.nodes
    ]
    parts = (
        kernel.kernel.mugraph, kernel.kernel.program.text, repr(operators), repr(layout), repr(list(ways)), device,
        torch.__version__, _library.version(),
    )  # fmt: skip
    key = hashlib.sha256()
    for part in parts:
        key.update(f"{len(part)}:{part}".encode())
    return key.hexdigest()[:40]


def inductor(module: torch.fx.GraphModule, inputs: Sequence[Any]) -> Callable[..., Any]:
    """Inductor's code for a subgraph, with its kernels tuned."""
    import torch._inductor

    options = {"max_autotune": True, "triton.cudagraphs": False}
    return torch._inductor.compile(module, [_filled(e) for e in inputs], options=options)


# The clock of a GPU -----------------------------------------------------------------------------------


def _filled(expected: Any) -> torch.Tensor:
    """A tensor as it is expected, of random values."""
    span = 1 + sum((e - 1) * s for e, s in zip(expected.shape, expected.stride))
    made = torch.empty(span, dtype=expected.dtype, device=expected.device)
    if expected.dtype is torch.bool:
        made.random_(0, 2)
    elif expected.dtype.is_floating_point:
        made.copy_(torch.randn(span, device=expected.device))
    else:
        made.zero_()
    return made.as_strided(expected.shape, expected.stride)


def _outputs(value: Any) -> list[torch.Tensor]:
    return [value] if isinstance(value, torch.Tensor) else list(value)


def disagreement(got: Any, want: Any) -> str | None:
    """How outputs differ by more than rounding, or None."""
    for number, (g, w) in enumerate(zip(_outputs(got), _outputs(want))):
        usable = torch.isfinite(w)
        if not bool(usable.any()):
            continue
        g, w = g[usable].double(), w[usable].double()
        error, scale = (g - w).abs().max().item(), w.abs().max().item()
        if not error <= AGREEMENT * scale:  # NaN too
            return f"output {number} is {error:.1e} off PyTorch's, whose largest value is {scale:.1e}"
    return None


class GpuClock:
    """The clock of one GPU, by PyTorch's CUDA graphs, on the ways that PyTorch calls them."""

    def __init__(self, device: torch.device) -> None:
        self.device = device

    def __call__(self, ways: Mapping[str, Callable[..., Any]], inputs: Sequence[Any]) -> dict[str, float | str]:
        with torch.cuda.device(self.device), torch.no_grad():
            return self._timed(ways, inputs)

    def _timed(self, ways: Mapping[str, Callable[..., Any]], inputs: Sequence[Any]) -> dict[str, float | str]:
        copies = self._copies(inputs)
        found: dict[str, float | str] = {}
        graphs: dict[str, tuple[torch.cuda.CUDAGraph, int]] = {}
        for way, call in ways.items():
            try:
                if way == FUSED and (wrong := self._wrong(call, ways[EAGER], inputs)):
                    found[way] = wrong
                    continue
                graphs[way] = self._captured(call, copies)
            except Exception as error:  # noqa: BLE001  what cannot be captured has no time
                torch.cuda.synchronize()
                found[way] = f"{type(error).__name__}: {error}"[:200]
        flush = torch.ones(FLUSH_BYTES // 4, device=self.device)
        times: dict[str, list[float]] = {way: [] for way in graphs}
        for order in (list(graphs), list(graphs)[::-1]):
            for way in order:
                times[way] += self._replayed(*graphs[way], flush)
        for way, values in times.items():
            found[way] = statistics.median(values)
        if FUSED in times and (wrong := self._wrong(ways[FUSED], ways[EAGER], inputs)):
            found[FUSED] = wrong
        return {way: found[way] for way in ways}

    @staticmethod
    def _wrong(fused: Callable[..., Any], eager: Callable[..., Any], inputs: Sequence[Any]) -> str | None:
        fresh = [_filled(e) for e in inputs]
        got = fused(*fresh)  # first: memory that it gets must not hold the right answer
        return disagreement(got, eager(*fresh))

    def _copies(self, inputs: Sequence[Any]) -> list[list[torch.Tensor]]:
        """Copies of the inputs that together exceed the L2 four times, where memory is there for so many."""
        first = [_filled(e) for e in inputs]
        size = max(1, sum(t.untyped_storage().nbytes() for t in first))
        free, _ = torch.cuda.mem_get_info()
        cache = getattr(torch.cuda.get_device_properties(self.device), "L2_cache_size", 50 << 20)
        wanted = -(-max(4 * cache, 256 << 20) // size)
        count = max(1, min(wanted, min(8 << 30, free // 4) // size, MAX_COPIES))
        self._reusable = count * size >= 4 * cache
        return [first, *([_filled(e) for e in inputs] for _ in range(count - 1))]

    def _captured(self, call: Callable[..., Any], copies: list[list[torch.Tensor]]) -> tuple[torch.cuda.CUDAGraph, int]:
        """A graph of calls, and how many."""
        stream = torch.cuda.Stream()
        stream.wait_stream(torch.cuda.current_stream())
        start, end = (torch.cuda.Event(enable_timing=True) for _ in range(2))
        with torch.cuda.stream(stream):
            for _ in range(2):
                call(*copies[0])
            start.record()
            call(*copies[0])
            end.record()
        torch.cuda.synchronize()
        once = max(1.0, start.elapsed_time(end) * 1e3)
        calls = -(-MIN_CALLS // len(copies)) * len(copies) if self._reusable else len(copies)
        calls = max(1, min(calls, int(MAX_REPLAY_US / once)))
        graph = torch.cuda.CUDAGraph()
        with torch.cuda.graph(graph, stream=stream):
            for i in range(calls):
                call(*copies[i % len(copies)])
        return graph, calls

    @staticmethod
    def _replayed(graph: torch.cuda.CUDAGraph, calls: int, flush: torch.Tensor) -> list[float]:
        times = []
        for _ in range(1 + REPLAYS // 2):
            # Empties the cache, and keeps the GPU busy until the replay is enqueued.
            for _ in range(3):
                flush.sum()
            start, end = (torch.cuda.Event(enable_timing=True) for _ in range(2))
            start.record()
            graph.replay()
            end.record()
            end.synchronize()
            times.append(start.elapsed_time(end) * 1e3 / calls)
        return times[1:]  # the first uploads the graph


def clock_of(device: torch.device) -> Clock | None:
    """The clock of a device, or None: without a GPU nothing is timed."""
    return GpuClock(device) if device.type == "cuda" and torch.cuda.is_available() else None
