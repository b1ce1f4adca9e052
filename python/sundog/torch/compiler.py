"""From an aten graph to a graph whose supported subgraphs are kernels."""

from __future__ import annotations

import logging
import operator
from typing import Any, Callable, Iterable

import torch

from sundog import _library
from sundog._library import SundogError
from sundog.kernel import Kernel
from sundog.torch import measure
from sundog.torch.cuts import Compared, Explorer
from sundog.torch.partition import Group, Partition
from sundog.torch.pricing import Choice, Priced, Pricer
from sundog.torch.programs import Programs, copier, operators_of
from sundog.torch.runtime import FusedKernel

log = logging.getLogger("sundog")

DEFAULTS = {
    "budget": "10s", "within": "55s", "on": "auto", "max_rows": 64, "fullgraph": False, "report": None,
    "keep_unfused": False, "against": measure.EAGER, "clock": None, "cuts": True,
}  # fmt: skip


class Fused:
    """One fused subgraph, for the report; `times` is what it was decided by, or None where nothing was timed."""

    def __init__(self, operators: list[str], kernel: FusedKernel, times: measure.Times | None = None) -> None:
        self.operators, self.kernel, self.times = operators, kernel, times

    def __str__(self) -> str:
        k = self.kernel.kernel
        time = str(self.times) if self.times else _microseconds(k)
        return (
            f"{', '.join(self.operators)}\n"
            f"     {k.launches} kernel{'s' if k.launches != 1 else ''}, {time}, on {self.kernel.on}: {k.best.structure}"
        )


class Slower:
    """A subgraph that has a kernel which is slower than what runs in its place."""

    def __init__(self, operators: list[str], kernel: FusedKernel, times: measure.Times) -> None:
        self.operators, self.kernel, self.times = operators, kernel, times

    def __str__(self) -> str:
        return f"{', '.join(self.operators)}: {self.times}: runs by PyTorch ({self.times.winner})"


def _microseconds(kernel: Kernel | Any) -> str:
    return f"{kernel.measured_us:.2f} us measured" if kernel.measured_us else f"{kernel.predicted_us:.2f} us predicted"


class Report:
    """Which subgraphs were fused, which are faster by PyTorch, which cuts were compared, and which operators were not
    fused and why.

    `clock` says by what it was decided: the GPU that timed each subgraph, or why nothing was timed."""

    def __init__(self) -> None:
        self.fused: list[Fused] = []
        self.slower: list[Slower] = []
        self.compared: list[Compared] = []
        self.eager: list[tuple[str, str, str]] = []  # name, operator, reason
        self.clock = ""

    def __str__(self) -> str:
        lines = [f"{len(self.fused)} fused subgraphs, {len(self.eager)} operators left to PyTorch"]
        if self.clock:
            lines.append(f"  {self.clock}")
        lines += [f"  {number}: {each}" for number, each in enumerate(self.fused)]
        lines += [f"  slower: {each}" for each in self.slower]
        lines += [f"  {each}" for each in self.compared]
        lines += [f"  eager: {name} ({target}): {reason}" for name, target, reason in self.eager]
        return "\n".join(lines)


def contains_symbols(values: Iterable[Any]) -> bool:
    for value in values:
        if isinstance(value, torch.SymInt):
            return True
        if isinstance(value, torch.Tensor) and any(not isinstance(e, int) for e in value.shape):
            return True
    return False


class Compiler:
    """Replaces the supported subgraphs of an aten graph."""

    def __init__(self, graph_module: torch.fx.GraphModule, options: dict[str, Any]) -> None:
        self.module = graph_module
        known = {**DEFAULTS, **options}
        self.max_rows, self.fullgraph = known.pop("max_rows"), known.pop("fullgraph")
        self.report = known.pop("report") or Report()
        against = None if known.get("no_gpu") and known["clock"] is None else known["against"]
        self.stopwatch = measure.Stopwatch(against, known.pop("clock"), known.get("cache", True))
        del known["against"]
        on, keep_unfused, cuts = known.pop("on"), known.pop("keep_unfused"), known.pop("cuts")
        self.pricer = Pricer(known, self.stopwatch, on, keep_unfused)
        self.explorer = Explorer(self.pricer, Programs(), cuts)

    def run(self) -> torch.fx.GraphModule:
        partition = Partition(self.module.graph, self.max_rows)
        slower: dict[str, Slower] = {}
        while True:
            partition = self.explorer.best(partition)
            failed = []
            for group in partition.groups:
                priced = self._priced(group)
                if priced.times and priced.times.winner != measure.FUSED:
                    names = operators_of(partition, group)
                    slower[" ".join(names)] = Slower(names, priced.kernel, priced.times)
                if priced.call is None:
                    failed.append((group, priced.reason))
            if not failed:
                break
            for group, reason in failed:
                partition.give_up(group, reason, None)
        self.report.slower += slower.values()
        self.report.compared += self.explorer.compared.values()
        calls = {group: self._priced(group).call for group in partition.groups}
        self._explain(partition, calls)
        return self._assemble(partition, calls)

    def _priced(self, group: Group) -> Priced:
        return self.explorer.priced[group.key]

    def _explain(self, partition: Partition, calls: dict[Group, Callable[..., Any]]) -> None:
        kernels = {group: call for group, call in calls.items() if isinstance(call, FusedKernel)}
        for group, kernel in kernels.items():
            self.report.fused.append(Fused(operators_of(partition, group), kernel, self._priced(group).times))
        self.report.clock = self.stopwatch.described(self.pricer.device)
        left: dict[str, str] = {}
        for node, reason in partition.reasons.items():
            if node.op != "call_function" or partition.is_part(node):
                continue
            self.report.eager.append((node.name, str(node.target), reason))
            left.setdefault(str(node.target), reason)
        if left:
            shown = "; ".join(f"{target}: {reason}" for target, reason in left.items())
            if self.fullgraph and any(not isinstance(reason, Choice) for reason in left.values()):
                raise SundogError(f"not everything can be fused: {shown}", "leave fullgraph out", "unsupported")
            log.warning("sundog leaves %d operators to PyTorch: %s", len(self.report.eager), shown)
        on = {k.on for k in kernels.values()}
        if on & {"emulator", "eager"}:
            log.warning(
                "sundog: no GPU: %d fused subgraphs run in the emulator, %d by PyTorch",
                sum(k.on == "emulator" for k in kernels.values()), sum(k.on == "eager" for k in kernels.values()),
            )  # fmt: skip

    def _assemble(self, partition: Partition, calls: dict[Group, Callable[..., Any]]) -> torch.fx.GraphModule:
        graph = torch.fx.Graph()
        env: dict[Any, Any] = {}
        root = torch.nn.Module()
        old = partition.graph

        needed = copier(graph, env)  # views are made where they are wanted
        units: list[tuple[int, int, Any]] = []
        position = {node: i for i, node in enumerate(old.nodes)}
        for node in old.nodes:
            if node.op in ("placeholder", "get_attr"):
                if node.op == "get_attr":
                    setattr(root, node.target, getattr(self.module, node.target))
                env[node] = graph.node_copy(node)
            elif node.op == "call_function" and node not in partition.group_of and not partition.belongs_to_nobody(node):
                units.append((partition.level[node], position[node], node))
        for group in calls:
            units.append((group.level, len(position), group))
        for _, _, unit in sorted(units, key=lambda u: u[:2]):
            if isinstance(unit, Group):
                self._call(graph, unit, calls[unit], env, needed)
            else:
                needed(unit)
        output = next(n for n in old.nodes if n.op == "output")
        graph.output(torch.fx.map_arg(output.args[0], needed))
        return torch.fx.GraphModule(root, graph)

    @staticmethod
    def _call(
        graph: torch.fx.Graph, group: Group, call: Callable[..., Any], env: dict[Any, Any], needed: Callable[[Any], Any]
    ) -> None:
        result = graph.call_function(call, tuple(needed(n) for n in group.inputs))
        result.name = call.__name__
        for i, node in enumerate(group.outputs):
            env[node] = result if len(group.outputs) == 1 else graph.call_function(operator.getitem, (result, i))


__all__ = ["Compiler", "Report", "contains_symbols", "_library"]
