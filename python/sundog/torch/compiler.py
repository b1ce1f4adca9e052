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
from sundog.torch.lowering import DTYPES, FLOATS, Builder, Ref, Unsupported, lower_node
from sundog.torch.partition import Group, Partition
from sundog.torch.runtime import Expected, FusedKernel

log = logging.getLogger("sundog")

DEFAULTS = {"budget": "10s", "on": "auto", "max_rows": 64, "fullgraph": False, "report": None, "keep_unfused": False}
MAX_ATTEMPTS = 40


class Fused:
    """One fused subgraph, for the report."""

    def __init__(self, operators: list[str], kernel: FusedKernel) -> None:
        self.operators, self.kernel = operators, kernel


class Report:
    """Which subgraphs were fused, and which operators were not and why."""

    def __init__(self) -> None:
        self.fused: list[Fused] = []
        self.eager: list[tuple[str, str, str]] = []  # name, operator, reason

    def __str__(self) -> str:
        lines = [f"{len(self.fused)} fused subgraphs, {len(self.eager)} operators left to PyTorch"]
        for number, each in enumerate(self.fused):
            k = each.kernel.kernel
            time = f"{k.measured_us:.2f} us measured" if k.measured_us else f"{k.predicted_us:.2f} us predicted"
            lines.append(f"  {number}: {', '.join(each.operators)}")
            lines.append(f"     {k.launches} kernel{'s' if k.launches != 1 else ''}, {time}, on {each.kernel.on}: {k.best.structure}")
        for name, target, reason in self.eager:
            lines.append(f"  eager: {name} ({target}): {reason}")
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

    def value_of(self, node: Any) -> Any:
        if node not in self.values:  # a view of something outside
            self.values[node] = self._lowered(node)
        return self.values[node]

    def _lowered(self, node: Any) -> Any:
        self.culprit = node.name
        return lower_node(self.builder, node, self.value_of)

    def run(self) -> Program:
        from sundog import _wire

        message = self.builder.message
        for node in self.group.inputs:
            value = node.meta["val"]
            if not isinstance(value, torch.Tensor):
                raise Unsupported(f"{node.name} is no tensor")
            self.culprit = next((u.name for u in node.users if u in self.group.nodes), None)
            spec = _graph_tensor(node.name, value, node.meta.get("sundog_align", 16))
            message.inputs.append(_wire.message("TensorGraph.Tensor", **spec))
            self.values[node] = Ref(node.name, tuple(value.shape))
            if value.dtype is torch.bool:
                self.values[node] = self.builder.truth(self.values[node])
        for node in self.group.nodes:
            self.values[node] = self._lowered(node)
        for node in self.group.outputs:
            value = node.meta["val"]
            self.culprit = node.name
            if value.dtype not in FLOATS:
                raise Unsupported(f"its result is {value.dtype}")
            spec = _wire.message("TensorGraph.Tensor", **_graph_tensor("out_" + node.name, value))
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


def _fallback(partition: Partition, group: Group) -> torch.fx.GraphModule:
    """The group as PyTorch would run it."""
    graph = torch.fx.Graph()
    env = {node: graph.placeholder(node.name) for node in group.inputs}

    copied = _copier(graph, env)
    for node in group.nodes:
        copied(node)
    outputs = [_as_declared(graph, env[n], n.meta["val"]) for n in group.outputs]
    graph.output(outputs[0] if len(outputs) == 1 else tuple(outputs))
    return torch.fx.GraphModule(torch.nn.Module(), graph)


def _as_declared(graph: torch.fx.Graph, node: Any, value: torch.Tensor) -> Any:
    return graph.call_function(_with_strides, (node, tuple(value.stride())))


def _with_strides(value: torch.Tensor, strides: tuple[int, ...]) -> torch.Tensor:
    """Eager operators may give other strides than tracing foretold; the kernel never does."""
    if tuple(value.stride()) == strides:
        return value
    copy = torch.empty_strided(value.shape, strides, dtype=value.dtype, device=value.device)
    return copy.copy_(value)


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
        self.search = known

    def run(self) -> torch.fx.GraphModule:
        partition = Partition(self.module.graph, self.max_rows)
        while True:
            kernels: dict[Group, FusedKernel] = {}
            failed: list[tuple[Group, str]] = []
            for group, program in lower_groups(partition):
                try:
                    kernels[group] = self._kernel(partition, group, program)
                except SundogError as error:
                    if error.code == "bad input":
                        raise  # an option
                    failed.append((group, error.message))
                    continue
                if self._is_unfused(kernels[group]) and not self.keep_unfused:
                    failed.append((group, "the search found nothing better than one kernel an operator"))
            if not failed:
                break
            # Too much at once, perhaps: smaller pieces first, then none.
            for group, reason in failed:
                if not partition.take_apart(group):
                    partition.give_up(group, reason, None)
        self._explain(partition, kernels)
        return self._assemble(partition, kernels)

    def _kernel(self, partition: Partition, group: Group, program: Program) -> FusedKernel:
        search = dict(self.search)
        device = group.outputs[0].meta["val"].device
        if device.type != "cuda":
            search.setdefault("no_gpu", True)
            search.setdefault("target", "h200")
        else:
            search.setdefault("gpu", device.index or 0)
        kernel = optimized(program, search)
        inputs = [Expected(n.name, n.meta["val"], n.meta.get("sundog_align", 16)) for n in group.inputs]
        outputs = [Expected(n.name, n.meta["val"]) for n in group.outputs]
        return FusedKernel(kernel, inputs, outputs, _fallback(partition, group), self.on)

    @staticmethod
    def _is_unfused(kernel: FusedKernel) -> bool:
        """Whether the best that was found is the program as it stands, in more than one kernel."""
        report = kernel.kernel.result.report
        same = report.unfused is not None and report.unfused.structure == report.candidates[0].structure
        return same and kernel.kernel.launches > 1

    def _explain(self, partition: Partition, kernels: dict[Group, FusedKernel]) -> None:
        for group, kernel in kernels.items():
            names = [n.name for n in group.nodes if not partition.is_part(n)]
            self.report.fused.append(Fused(names, kernel))
        left: dict[str, str] = {}
        for node, reason in partition.reasons.items():
            if node.op != "call_function" or partition.is_part(node):
                continue
            self.report.eager.append((node.name, str(node.target), reason))
            left.setdefault(str(node.target), reason)
        if left:
            shown = "; ".join(f"{target}: {reason}" for target, reason in left.items())
            if self.fullgraph:
                raise SundogError(f"not everything can be fused: {shown}", "leave fullgraph out", "unsupported")
            log.warning("sundog leaves %d operators to PyTorch: %s", len(self.report.eager), shown)
        on = {k.on for k in kernels.values()}
        if on & {"emulator", "eager"}:
            log.warning(
                "sundog: no GPU: %d fused subgraphs run in the emulator, %d by PyTorch",
                sum(k.on == "emulator" for k in kernels.values()), sum(k.on == "eager" for k in kernels.values()),
            )  # fmt: skip

    def _assemble(self, partition: Partition, kernels: dict[Group, FusedKernel]) -> torch.fx.GraphModule:
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
            elif node.op == "call_function" and node not in partition.group_of and not partition.is_view(node):
                units.append((partition.level[node], position[node], node))
        for group in kernels:
            units.append((group.level, len(position), group))
        for _, _, unit in sorted(units, key=lambda u: u[:2]):
            if isinstance(unit, Group):
                self._call(graph, root, unit, kernels[unit], env, needed)
            else:
                needed(unit)
        output = next(n for n in old.nodes if n.op == "output")
        graph.output(torch.fx.map_arg(output.args[0], needed))
        return torch.fx.GraphModule(root, graph)

    def _call(self, graph: torch.fx.Graph, root: Any, group: Group, kernel: FusedKernel, env: dict[Any, Any], needed: Callable[[Any], Any]) -> None:
        result = graph.call_function(kernel, tuple(needed(n) for n in group.inputs))
        result.name = f"fused_{kernel.name}"
        for i, node in enumerate(group.outputs):
            env[node] = result if len(group.outputs) == 1 else graph.call_function(operator.getitem, (result, i))


__all__ = ["Compiler", "Report", "contains_symbols", "_library"]
