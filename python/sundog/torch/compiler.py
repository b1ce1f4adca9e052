"""From an aten graph to a graph whose supported subgraphs are kernels."""

from __future__ import annotations

import logging
import operator
import re
import threading
from typing import Any, Callable, Iterable

import torch

from sundog import _library
from sundog._library import SundogError, library, made
from sundog.kernel import Kernel
from sundog.optimizer import optimize
from sundog.program import Program
from sundog.torch import measure
from sundog.torch.lowering import DTYPES, FLOATS, Builder, Ref, Unsupported, lower_node
from sundog.torch.partition import Group, Partition
from sundog.torch.rounding import as_stored
from sundog.torch.runtime import Expected, FusedKernel

log = logging.getLogger("sundog")

DEFAULTS = {
    "budget": "10s", "within": "55s", "on": "auto", "max_rows": 64, "fullgraph": False, "report": None,
    "keep_unfused": False, "against": measure.EAGER, "clock": None,
}  # fmt: skip
MAX_ATTEMPTS = 40


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


class Choice(str):
    """Why something that could be fused is not."""


class Slower:
    """A subgraph that has a kernel which is slower than what runs in its place."""

    def __init__(self, operators: list[str], kernel: FusedKernel, times: measure.Times) -> None:
        self.operators, self.kernel, self.times = operators, kernel, times

    def __str__(self) -> str:
        return f"{', '.join(self.operators)}: {self.times}: runs by PyTorch ({self.times.winner})"


def _microseconds(kernel: Kernel | Any) -> str:
    return f"{kernel.measured_us:.2f} us measured" if kernel.measured_us else f"{kernel.predicted_us:.2f} us predicted"


class Report:
    """Which subgraphs were fused, which are faster by PyTorch, and which operators were not fused and why.

    `clock` says by what it was decided: the GPU that timed each subgraph, or why nothing was timed."""

    def __init__(self) -> None:
        self.fused: list[Fused] = []
        self.slower: list[Slower] = []
        self.eager: list[tuple[str, str, str]] = []  # name, operator, reason
        self.clock = ""

    def __str__(self) -> str:
        lines = [f"{len(self.fused)} fused subgraphs, {len(self.eager)} operators left to PyTorch"]
        if self.clock:
            lines.append(f"  {self.clock}")
        lines += [f"  {number}: {each}" for number, each in enumerate(self.fused)]
        lines += [f"  slower: {each}" for each in self.slower]
        lines += [f"  eager: {name} ({target}): {reason}" for name, target, reason in self.eager]
        return "\n".join(lines)


def contains_symbols(values: Iterable[Any]) -> bool:
    for value in values:
        if isinstance(value, torch.SymInt):
            return True
        if isinstance(value, torch.Tensor) and any(not isinstance(e, int) for e in value.shape):
            return True
    return False


_BY_TEXT: dict[tuple[str, str], Kernel] = {}  # identical layers are searched for once a process
_BY_TEXT_LOCK = threading.Lock()


def optimized(program: Program, options: dict[str, Any]) -> Kernel:
    key = (program.text, repr(sorted(options.items())))
    with _BY_TEXT_LOCK:
        if key not in _BY_TEXT:
            _BY_TEXT[key] = optimize(program, **options)
        return _BY_TEXT[key]


def _graph_tensor(name: str, value: torch.Tensor, align: int = 16) -> dict[str, Any]:
    if value.dtype not in DTYPES:
        raise Unsupported(f"{name} has the type {value.dtype}")
    return dict(
        name=name, dtype=DTYPES[value.dtype], extents=list(value.shape), strides=list(value.stride()), alignment=align
    )


def _alignment(value: torch.Tensor) -> int:
    """Bytes to which rows of an input can be relied on to be aligned: those of an allocation, unless the
    value is known to lie elsewhere."""
    if isinstance(value, torch._subclasses.FakeTensor):
        return 16
    address, align = value.data_ptr(), 16
    while align > 1 and address % align:
        align //= 2
    return max(align, value.element_size())


class Lowering:
    """One group as a program."""

    def __init__(self, partition: Partition, group: Group, name: str) -> None:
        self.partition, self.group = partition, group
        self.builder = Builder(name)
        self.values: dict[Any, Any] = {}
        self.culprit: str | None = None
        self._numbers: dict[str, int] = {}

    def value_of(self, node: Any) -> Any:
        if node not in self.values:  # a view of something outside
            self.values[node] = self._lowered(node)
        return self.values[node]

    def _lowered(self, node: Any) -> Any:
        for operand in node.all_input_nodes:
            self.value_of(operand)  # what fails there is not of this node
        self.culprit = node.name
        return as_stored(self.builder, node, lower_node(self.builder, node, self.value_of))

    def _name(self, node: Any) -> str:
        """The name of a tensor in the program: the node's, numbered within the program and not within the model, so
        that equal layers are equal programs."""
        word = re.sub(r"(_?\d+)+$", "", node.name) or "x"
        number = self._numbers[word] = self._numbers.get(word, -1) + 1
        return f"{word}_{number}" if number else word

    def run(self) -> Program:
        from sundog import _wire

        message = self.builder.message
        for node in self.group.inputs:
            value = node.meta["val"]
            if not isinstance(value, torch.Tensor):
                raise Unsupported(f"{node.name} is no tensor")
            self.culprit = next((u.name for u in node.users if u in self.group.nodes), None)
            name = self._name(node)
            spec = _graph_tensor(name, value, node.meta.get("sundog_align", 16))
            message.inputs.append(_wire.message("TensorGraph.Tensor", **spec))
            self.values[node] = Ref(name, tuple(value.shape))
            if value.dtype is torch.bool:
                self.values[node] = self.builder.truth(self.values[node])
        for node in self.group.nodes:
            self.values[node] = self._lowered(node)
        for node in self.group.outputs:
            value = node.meta["val"]
            self.culprit = node.name
            if value.dtype not in FLOATS:
                raise Unsupported(f"its result is {value.dtype}")
            spec = _wire.message("TensorGraph.Tensor", **_graph_tensor("out_" + self._name(node), value))
            result = self.builder.number(self.values[node])
            message.outputs.append(_wire.message("TensorGraph.Output", value=result.name, tensor=spec))
        if not self.group.outputs:
            raise Unsupported("nothing reads its result")
        data = message.to_bytes()
        return Program(made("program", library().program_from_graph, data, len(data)))


def _program_name(nodes: list[Any]) -> str:
    words = []
    for node in nodes:
        word = re.sub(r"^(native_|_fused_|_+)|_?\d*$", "", node.name)
        if word not in words and word not in ("getitem", "clone", "mul", "add", "to_copy"):
            words.append(word)
    return "_".join(words[:4])[:40] or "elementwise"


def lower_groups(partition: Partition) -> list[tuple[Group, Program]]:
    """Partitions until every group is a program; what is to blame for a failure stays eager."""
    for _ in range(MAX_ATTEMPTS):
        partition.run()
        programs = []
        for group in partition.groups:
            lowering = Lowering(partition, group, _program_name(group.nodes))
            try:
                programs.append((group, lowering.run()))
            except Unsupported as reason:
                partition.give_up(group, str(reason), lowering.culprit)
                break
            except SundogError as error:
                label = error.message.split(":")[0]
                reason = error.message.removeprefix(label + ":").strip()
                partition.give_up(group, reason or error.message, label)
                break
        else:
            return programs
    partition.reasons.update({n: "too many attempts" for n in partition.graph.nodes if n.op == "call_function"})
    partition.run()
    return []


def _copier(graph: torch.fx.Graph, env: dict[Any, Any]) -> Callable[[Any], Any]:
    """Of a node of another graph: its value in `graph`, copied there with its operands unless `env` has it."""

    def copied(node: Any) -> Any:
        if node not in env:
            for operand in node.all_input_nodes:
                copied(operand)
            env[node] = graph.node_copy(node, lambda n: env[n])
        return env[node]

    return copied


def _eager(partition: Partition, group: Group, declared: bool = True) -> torch.fx.GraphModule:
    """The group as PyTorch would run it, its outputs in the memory order that was foretold if `declared`."""
    graph = torch.fx.Graph()
    env = {node: graph.placeholder(node.name) for node in group.inputs}

    copied = _copier(graph, env)
    for node in group.nodes:
        copied(node)
    outputs = [_as_declared(graph, env[n], n.meta["val"]) if declared else env[n] for n in group.outputs]
    graph.output(outputs[0] if len(outputs) == 1 else tuple(outputs))
    return torch.fx.GraphModule(torch.nn.Module(), graph)


def _as_declared(graph: torch.fx.Graph, node: Any, value: torch.Tensor) -> Any:
    return graph.call_function(measure.with_strides, (node, tuple(value.stride())))


def _operators(partition: Partition, group: Group) -> list[str]:
    """The names of a group's operators."""
    return [n.name for n in group.nodes if not partition.is_part(n)]


class Compiler:
    """Replaces the supported subgraphs of an aten graph."""

    def __init__(self, graph_module: torch.fx.GraphModule, options: dict[str, Any]) -> None:
        self.module = graph_module
        known = {**DEFAULTS, **options}
        self.on = known.pop("on")
        self.max_rows = known.pop("max_rows")
        self.fullgraph = known.pop("fullgraph")
        self.keep_unfused = known.pop("keep_unfused")
        self.report = known.pop("report") or Report()
        against = None if known.get("no_gpu") and known["clock"] is None else known["against"]
        self.stopwatch = measure.Stopwatch(against, known.pop("clock"), known.get("cache", True))
        del known["against"]
        self.search = known
        self._times: dict[Group, measure.Times] = {}
        self._kernels: dict[Group, FusedKernel] = {}
        self._device = torch.device("cpu")

    def run(self) -> torch.fx.GraphModule:
        partition = Partition(self.module.graph, self.max_rows)
        slower: dict[str, Slower] = {}
        while True:
            calls: dict[Group, Callable[..., Any]] = {}
            failed: list[tuple[Group, str]] = []
            for group, program in lower_groups(partition):
                try:
                    call, reason = self._call_of(partition, group, program)
                except SundogError as error:
                    if error.code == "bad input":
                        raise  # an option
                    call, reason = None, error.message
                if (times := self._times.get(group)) and times.winner != measure.FUSED:
                    names = _operators(partition, group)
                    slower[" ".join(names)] = Slower(names, self._kernels[group], times)
                if call is not None:
                    calls[group] = call
                else:
                    failed.append((group, reason))
            if not failed:
                break
            # Too much at once, perhaps: smaller pieces first, then none.
            for group, reason in failed:
                if not partition.take_apart(group):
                    partition.give_up(group, reason, None)
        self.report.slower += slower.values()
        self._explain(partition, calls)
        return self._assemble(partition, calls)

    def _call_of(self, partition: Partition, group: Group, program: Program) -> tuple[Callable[..., Any] | None, str]:
        """What runs in place of a group, or why it is left as it is."""
        kernel = self._kernels[group] = self._kernel(partition, group, program)
        subgraph = _eager(partition, group, declared=False)
        timed = self.stopwatch.times(kernel, subgraph, len(_operators(partition, group)))
        if timed is None:
            if self._is_unfused(kernel) and not self.keep_unfused:
                return None, "the search found nothing better than one kernel an operator"
            return kernel, ""
        times, ways = timed
        self._times[group] = times
        if times.winner == measure.FUSED:
            return kernel, ""
        if times.winner == measure.EAGER:
            return None, Choice(f"PyTorch's own is faster: {times}")
        return measure.Foreign(ways[times.winner], kernel.outputs, times.winner.replace("-", "_")), ""

    def _kernel(self, partition: Partition, group: Group, program: Program) -> FusedKernel:
        search = dict(self.search)
        device = self._device = group.outputs[0].meta["val"].device
        if device.type != "cuda":
            search.setdefault("no_gpu", True)
            search.setdefault("target", "h200")
        else:
            search.setdefault("gpu", torch.cuda.current_device() if device.index is None else device.index)
        kernel = optimized(program, search)
        inputs = [Expected(n.name, n.meta["val"], n.meta.get("sundog_align", 16)) for n in group.inputs]
        outputs = [Expected(n.name, n.meta["val"]) for n in group.outputs]
        return FusedKernel(kernel, inputs, outputs, _eager(partition, group), self.on)

    @staticmethod
    def _is_unfused(kernel: FusedKernel) -> bool:
        """Whether the best that was found is the program as it stands, in more than one kernel."""
        report = kernel.kernel.result.report
        same = report.unfused is not None and report.unfused.structure == report.candidates[0].structure
        return same and kernel.kernel.launches > 1

    def _explain(self, partition: Partition, calls: dict[Group, Callable[..., Any]]) -> None:
        kernels = {group: call for group, call in calls.items() if isinstance(call, FusedKernel)}
        for group, kernel in kernels.items():
            self.report.fused.append(Fused(_operators(partition, group), kernel, self._times.get(group)))
        self.report.clock = self.stopwatch.described(self._device)
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

        needed = _copier(graph, env)  # views are made where they are wanted
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
