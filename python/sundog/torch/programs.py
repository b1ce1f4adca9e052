"""The groups of a partition as programs, and as PyTorch would run them."""

from __future__ import annotations

import re
from typing import Any, Callable

import torch

from sundog import _wire
from sundog._library import SundogError, library, made
from sundog.program import Program
from sundog.torch import measure
from sundog.torch.lowering import DTYPES, FLOATS, Builder, Ref, Unsupported, lower_node
from sundog.torch.partition import Group, Partition
from sundog.torch.rounding import as_stored

MAX_ATTEMPTS = 40


def _graph_tensor(name: str, value: torch.Tensor, align: int = 16) -> dict[str, Any]:
    if value.dtype not in DTYPES:
        raise Unsupported(f"{name} has the type {value.dtype}")
    return dict(
        name=name, dtype=DTYPES[value.dtype], extents=list(value.shape), strides=list(value.stride()), alignment=align
    )


def alignment(value: torch.Tensor) -> int:
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


def program_name(nodes: list[Any]) -> str:
    words = []
    for node in nodes:
        word = re.sub(r"^(native_|_fused_|_+)|_?\d*$", "", node.name)
        if word not in words and word not in ("getitem", "clone", "mul", "add", "to_copy"):
            words.append(word)
    return "_".join(words[:4])[:40] or "elementwise"


class Programs:
    """The programs of a graph's groups, each lowered once for all partitions that have it."""

    def __init__(self) -> None:
        self._known: dict[Any, Program | tuple[str, str | None]] = {}

    def of(self, partition: Partition) -> list[tuple[Group, Program]]:
        """Partitions until every group is a program; what is to blame for a failure stays eager."""
        for _ in range(MAX_ATTEMPTS):
            partition.run()
            programs = []
            for group in partition.groups:
                found = self._lowered(partition, group)
                if not isinstance(found, Program):
                    partition.give_up(group, *found)
                    break
                programs.append((group, found))
            else:
                return programs
        partition.reasons.update({n: "too many attempts" for n in partition.graph.nodes if n.op == "call_function"})
        partition.run()
        return []

    def _lowered(self, partition: Partition, group: Group) -> Program | tuple[str, str | None]:
        """Or the reason why there is none, and the name of the operator to blame."""
        if group.key not in self._known:
            lowering = Lowering(partition, group, program_name(group.nodes))
            try:
                self._known[group.key] = lowering.run()
            except Unsupported as reason:
                self._known[group.key] = str(reason), lowering.culprit
            except SundogError as error:
                label = error.message.split(":")[0]
                self._known[group.key] = error.message.removeprefix(label + ":").strip() or error.message, label
        return self._known[group.key]


def copier(graph: torch.fx.Graph, env: dict[Any, Any]) -> Callable[[Any], Any]:
    """Of a node of another graph: its value in `graph`, copied there with its operands unless `env` has it."""

    def copied(node: Any) -> Any:
        if node not in env:
            for operand in node.all_input_nodes:
                copied(operand)
            env[node] = graph.node_copy(node, lambda n: env[n])
        return env[node]

    return copied


def eager_module(partition: Partition, group: Group, declared: bool = True) -> torch.fx.GraphModule:
    """The group as PyTorch would run it, its outputs in the memory order that was foretold if `declared`."""
    graph = torch.fx.Graph()
    env = {node: graph.placeholder(node.name) for node in group.inputs}

    copied = copier(graph, env)
    for node in group.nodes:
        copied(node)
    outputs = [_as_declared(graph, env[n], n.meta["val"]) if declared else env[n] for n in group.outputs]
    graph.output(outputs[0] if len(outputs) == 1 else tuple(outputs))
    return torch.fx.GraphModule(torch.nn.Module(), graph)


def _as_declared(graph: torch.fx.Graph, node: Any, value: torch.Tensor) -> Any:
    return graph.call_function(measure.with_strides, (node, tuple(value.stride())))


def operators_of(partition: Partition, group: Group) -> list[str]:
    """The names of a group's operators."""
    return [n.name for n in group.nodes if not partition.is_part(n)]
