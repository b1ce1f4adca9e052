"""What a group of operators takes: as a kernel of ours, and as PyTorch runs it.

With a clock, the time of whatever runs in its place, the kernel tuned before. Without one, the time that is predicted
for the best kernel, its launches included; that also tells which kernels are worth tuning.
"""

from __future__ import annotations

import math
import pathlib
import threading
from typing import Any, Callable

import torch

from sundog._library import SundogError
from sundog.kernel import Kernel
from sundog.optimizer import optimize, result_name
from sundog.program import Program
from sundog.torch import measure
from sundog.torch.lowering import Unsupported
from sundog.torch.partition import Group, Partition
from sundog.torch.programs import Lowering, eager_module, operators_of
from sundog.torch.runtime import Expected, FusedKernel

UNFUSED = "the search found nothing better than one kernel an operator"

_BY_TEXT: dict[tuple[str, str], Kernel] = {}  # identical layers are searched for once a process
_BY_TEXT_LOCK = threading.Lock()


def optimized(program: Program, options: dict[str, Any]) -> Kernel:
    key = (program.text, repr(sorted(options.items())))
    with _BY_TEXT_LOCK:
        if key not in _BY_TEXT:
            _BY_TEXT[key] = optimize(program, **options)
        return _BY_TEXT[key]


class Choice(str):
    """Why something that could be fused is not."""


class Priced:
    """A group with what is known of it.

    `call` runs in its place, or is None where PyTorch's operators do, for `reason`. `us` is the time of what runs by
    the clock, None where it has none; `predicted` that of the kernel, infinite where there is none."""

    def __init__(self, kernel: FusedKernel | None, predicted: float, reason: str = "") -> None:
        self.kernel, self.predicted, self.reason = kernel, predicted, reason
        self.call: Callable[..., Any] | None = kernel
        self.times: measure.Times | None = None

    @property
    def us(self) -> float | None:
        return self.times.us.get(self.times.winner) if self.times else None


class Pricer:
    """Searches for kernels and times them, equal groups once. `search` are options of sundog.optimize."""

    def __init__(self, search: dict[str, Any], stopwatch: measure.Stopwatch, on: str, keep_unfused: bool) -> None:
        self.search, self.stopwatch, self.on, self.keep_unfused = search, stopwatch, on, keep_unfused
        self.device = torch.device("cpu")
        self.target: str = search.get("target") or "h200"
        self._known: dict[Any, Priced] = {}
        self._alone: dict[Any, float | None] = {}
        self._untuned: dict[Any, Kernel] = {}

    def price(self, partition: Partition, group: Group, program: Program) -> Priced:
        if group.key not in self._known:
            self._known[group.key] = self._priced(partition, group, program)
        return self._known[group.key]

    def forecast(self, group: Group, program: Program) -> float:
        """Predicted microseconds, infinite without a kernel; nothing is tuned or timed for it."""
        if group.key in self._known:
            return self._known[group.key].predicted
        try:
            kernel = self._searched(group, program)
        except SundogError:
            return math.inf
        return kernel.predicted_us if self._stands(kernel) or self.times_groups(group) else math.inf

    def times_groups(self, group: Group) -> bool:
        """Whether there is a clock for a group's device."""
        return self.stopwatch.clock_for(_device(group)) is not None

    def bound(self, program: Program) -> float:
        """Microseconds that nothing which computes it is predicted to beat."""
        return program.bound_us(self.target)

    def alone(self, partition: Partition, node: Any, timed: bool) -> float:
        """Microseconds of an operator that PyTorch runs by itself: a launch, and its tensors through memory."""
        if (node, timed) not in self._alone:
            group = partition.by_itself(node)
            try:
                if timed:
                    inputs, _ = _expected(group)
                    us = self.stopwatch.eager(eager_module(partition, group, declared=False), inputs, _device(group))
                else:
                    us = self.bound(Lowering(partition, group, node.name).run())
            except (SundogError, Unsupported):
                us = None
            self._alone[node, timed] = us
        found = self._alone[node, timed]
        return math.inf if found is None else found

    def _priced(self, partition: Partition, group: Group, program: Program) -> Priced:
        try:
            kernel = self._tuned(group, program)
        except SundogError as error:
            if error.code == "bad input":
                raise  # an option
            return Priced(None, math.inf, error.message)
        self.target = kernel.target
        inputs, outputs = _expected(group)
        fused = FusedKernel(kernel, inputs, outputs, eager_module(partition, group), self.on)
        priced = Priced(fused, kernel.predicted_us)
        subgraph = eager_module(partition, group, declared=False)
        timed = self.stopwatch.times(fused, subgraph, len(operators_of(partition, group)))
        if timed is None:
            if not self._stands(kernel):
                priced.call, priced.reason, priced.predicted = None, UNFUSED, math.inf
            return priced
        priced.times, ways = timed
        winner = priced.times.winner
        if winner == measure.EAGER:
            priced.call, priced.reason = None, Choice(f"PyTorch's own is faster: {priced.times}")
        elif winner != measure.FUSED:
            priced.call = measure.Foreign(ways[winner], outputs, winner.replace("-", "_"))
        return priced

    def _options(self, group: Group) -> dict[str, Any]:
        search = dict(self.search)
        device = self.device = _device(group)
        if device.type != "cuda":
            search.setdefault("no_gpu", True)
            search.setdefault("target", "h200")
        else:
            search.setdefault("gpu", torch.cuda.current_device() if device.index is None else device.index)
        return search

    def _tuned(self, group: Group, program: Program) -> Kernel:
        search = self._options(group)
        if group.key in self._untuned:  # nothing is left but to tune it
            search.update(start=self._untuned[group.key].to_bytes(), no_search=True)
        return optimized(program, search)

    def _searched(self, group: Group, program: Program) -> Kernel:
        """A kernel by prediction: a result that lies ready, or what a search finds."""
        search = self._options(group)
        if search.get("no_gpu"):
            return optimized(program, search)
        folder = search.get("results")
        if folder is not None and (pathlib.Path(folder) / result_name(program, search.get("target", ""))).exists():
            return optimized(program, search)
        search.pop("results", None)  # what is put there is taken as it is: let it be tuned
        kernel = self._untuned[group.key] = optimized(program, {**search, "no_gpu": True})
        return kernel

    def _stands(self, kernel: Kernel) -> bool:
        """Whether more was found than the program as it stands in several kernels, or that will do."""
        report = kernel.result.report
        same = report.unfused is not None and report.unfused.structure == report.candidates[0].structure
        return self.keep_unfused or not (same and kernel.launches > 1)


def _device(group: Group) -> torch.device:
    return group.outputs[0].meta["val"].device


def _expected(group: Group) -> tuple[list[Expected], list[Expected]]:
    inputs = [Expected(n.name, n.meta["val"], n.meta.get("sundog_align", 16)) for n in group.inputs]
    return inputs, [Expected(n.name, n.meta["val"]) for n in group.outputs]
