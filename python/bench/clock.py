"""How every method is timed: the protocol of codegen/launch.h, in PyTorch.

All calls of one replay are one CUDA graph, so that gaps between kernels count; time = replay / calls; the median over
the replays of two rounds, the second with the methods in reverse order. Cold: each call has another copy of the
inputs, the copies together exceed the L2 four times (or each is used once a replay), and 512 MB are read before every
replay. Warm: one copy, and an untimed replay first.

What PyTorch does before it launches a graph stands between the events too: some 20 us, which is little only where a
replay takes a millisecond. So there are more copies and more calls than in launch.h.
"""

from __future__ import annotations

import dataclasses
import statistics
import subprocess
import time
from typing import Callable, Optional

import torch

MAX_COPIES, MIN_CALLS = 512, 16
MIN_REPLAY_US, MAX_REPLAY_US = 1000.0, 20000.0
Call = Callable[[int], object]  # of the copy of the inputs that it reads


@dataclasses.dataclass
class Timing:
    cold_us: Optional[float] = None
    warm_us: Optional[float] = None
    cold_spread: Optional[float] = None
    warm_spread: Optional[float] = None
    calls: int = 0
    copies: int = 0


@dataclasses.dataclass
class Prepared:
    calls: int
    cold: "torch.cuda.CUDAGraph"
    warm: "torch.cuda.CUDAGraph"
    cold_us: tuple[list[float], list[float]]
    warm_us: tuple[list[float], list[float]]


def copies_for(input_bytes: int) -> tuple[int, bool]:
    """How many copies of the inputs, and whether one may be used twice in a replay."""
    target = max(4 * torch.cuda.get_device_properties(torch.cuda.current_device()).L2_cache_size, 256 << 20)
    memory = min(8 << 30, torch.cuda.mem_get_info()[0] // 4)
    size = max(input_bytes, 1)
    copies = max(1, min(-(-target // size), memory // size, MAX_COPIES))
    return copies, copies * size >= target


def captured(call: Call, order: list[int]) -> "torch.cuda.CUDAGraph":
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        for copy in order:
            call(copy)
    return graph


def warmed(call: Call) -> None:
    """What a first call compiles, loads or allocates must not fall into a capture."""
    stream = torch.cuda.Stream()
    stream.wait_stream(torch.cuda.current_stream())
    with torch.cuda.stream(stream):
        for _ in range(2):
            call(0)
    torch.cuda.current_stream().wait_stream(stream)
    torch.cuda.synchronize()


def replay_us(graph: "torch.cuda.CUDAGraph") -> float:
    start, end = torch.cuda.Event(enable_timing=True), torch.cuda.Event(enable_timing=True)
    start.record()
    graph.replay()
    end.record()
    end.synchronize()
    return start.elapsed_time(end) * 1e3


def spread(rounds: tuple[list[float], list[float]]) -> tuple[float, float]:
    """The median, and by how much of it the two rounds differ."""
    middle = statistics.median(rounds[0] + rounds[1])
    return middle, abs(statistics.median(rounds[0]) - statistics.median(rounds[1])) / middle if middle > 0 else 0.0


class GpuClock:
    def __init__(self, replays: int, flush_bytes: int) -> None:
        self.replays = max(1, replays // 2)
        self.flush = torch.ones(flush_bytes // 4, dtype=torch.int32, device="cuda")

    def occupy(self) -> None:
        """Empties the cache, for long enough that the replay behind it is enqueued before it is due."""
        for _ in range(3):
            torch.amax(self.flush)

    def prepare(self, call: Call, copies: int, reuse: bool) -> Prepared:
        warmed(call)
        few = captured(call, [0] * MIN_CALLS)
        replay_us(few)
        once = max(replay_us(few) / MIN_CALLS, 0.01)
        wanted = max(MIN_CALLS, copies, int(MIN_REPLAY_US / once))
        calls = -(-wanted // copies) * copies if reuse else copies
        calls = max(1, min(calls, int(MAX_REPLAY_US / once)))
        order = [i % copies for i in range(calls)]
        return Prepared(calls, captured(call, order), captured(call, [0] * calls), ([], []), ([], []))

    def round(self, p: Prepared, number: int) -> None:
        p.cold.replay()
        for _ in range(self.replays):
            self.occupy()
            p.cold_us[number].append(replay_us(p.cold) / p.calls)
        for _ in range(self.replays):
            self.occupy()
            p.warm.replay()
            p.warm_us[number].append(replay_us(p.warm) / p.calls)

    def time(self, calls: dict[str, Call], copies: int, reuse: bool, failures: dict[str, str]) -> dict[str, Timing]:
        """Times all methods in turn; what goes wrong with one is put into `failures`."""
        prepared: dict[str, Prepared] = {}
        for name, call in calls.items():
            try:
                prepared[name] = self.prepare(call, copies, reuse)
            except Exception as error:  # noqa: BLE001  one method that fails leaves the others
                failures[name] = described(error)
        for number, order in enumerate((list(prepared), list(prepared)[::-1])):
            for name in order:
                self.round(prepared[name], number)
        found = {}
        for name, p in prepared.items():
            (cold, cold_spread), (warm, warm_spread) = spread(p.cold_us), spread(p.warm_us)
            found[name] = Timing(cold, warm, cold_spread, warm_spread, p.calls, copies)
        return found


class CpuClock:
    """For a dry run: times of a CPU, in which neither caches nor launches mean what they do on a GPU."""

    def time(self, calls: dict[str, Call], copies: int, reuse: bool, failures: dict[str, str]) -> dict[str, Timing]:
        found = {}
        for name, call in calls.items():
            times: list[float] = []
            while len(times) < 3 or (len(times) < 9 and sum(times) < 2e5):
                start = time.perf_counter()
                call(0)
                times.append((time.perf_counter() - start) * 1e6)
            found[name] = Timing(warm_us=statistics.median(times), calls=1, copies=1)
        return found


def described(error: Exception) -> str:
    return f"{type(error).__name__}: {error}".strip().splitlines()[0][:300]


def clocks() -> Optional[dict[str, str]]:
    """Clocks and power of the GPU as they are now, as nvidia-smi gives them."""
    names = ["clocks.sm", "clocks.mem", "power.draw", "temperature.gpu"]
    query = ["nvidia-smi", f"--query-gpu={','.join(names)}", "--format=csv,noheader"]
    query += ["-i", str(torch.cuda.current_device())]
    try:
        done = subprocess.run(query, capture_output=True, text=True, timeout=20, check=True)
    except (OSError, subprocess.SubprocessError):
        return None
    return dict(zip(names, (part.strip() for part in done.stdout.strip().split(","))))
