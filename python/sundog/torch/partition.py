"""Which operators of an aten graph are fused with which.

A kernel that is worth searching for is one step of a network: what leads up to a matrix product or a
reduction (a norm, a mask), the product itself (or several that share what leads up to them, like queries, keys
and values), and the elementwise tail (bias, activation, gate, residual). So each operator gets a level: that of
its operands, plus one for a matrix product or a reduction whose operands come out of a matrix product of the
same level. Connected operators of one level are a group. Levels only grow along edges, so groups never depend
on one another in a circle.

That is where it begins; the fastest partition of a graph is found by comparing alternatives (cuts.py), each a
Partition with one cut more.

Views belong to nobody: each group reads through the views of its inputs, and a view that an eager operator or
the caller wants is a view as ever. So it is with constants (a mask of indices, a scalar), which every group makes for
itself.
"""

from __future__ import annotations

import operator
from typing import Any, Iterable, Iterator

import torch

from sundog.torch import lowering

MAX_HEAVY = 4  # matrix products in one group
MAX_NODES = 60
SKINNY = 64  # a matrix product that sums over so few is a step like any other (a low-rank correction)


class Group:
    """Operators that become one program."""

    def __init__(self, level: int) -> None:
        self.level = level
        self.nodes: list[Any] = []
        self.inputs: list[Any] = []  # values from outside, views looked through
        self.outputs: list[Any] = []

    @property
    def key(self) -> Any:
        """Equal for equal groups of different partitions of one graph."""
        return frozenset(self.nodes), tuple(self.inputs), tuple(self.outputs)

    def heavy(self) -> int:
        return sum(n.target in lowering.HEAVY for n in self.nodes)


class Partition:
    def __init__(self, graph: torch.fx.Graph, max_rows: int) -> None:
        self.graph = graph
        self.max_rows = max_rows
        self.reasons: dict[Any, str] = {}  # of nodes that stay eager
        self.cut: set[Any] = set()  # matrix products whose tails are groups of their own
        self.fronts: set[Any] = set()  # and those before which what leads up to them ends
        self.joined: set[Any] = set()  # tensors put side by side for what reads them, and not for their own sake
        self.alone: set[Any] = set()  # values computed by a group of their own, with all that leads up to them
        self.groups: list[Group] = []
        self.group_of: dict[Any, Group] = {}
        self.level: dict[Any, int] = {}
        self._position = {node: i for i, node in enumerate(graph.nodes)}

    # What a node is -------------------------------------------------------------------------------

    def is_view(self, node: Any) -> bool:
        if node.op != "call_function":
            return False
        if node.target is operator.getitem:
            return self.is_view(node.args[0])
        return node.target in lowering.VIEWS

    def is_constant(self, node: Any) -> bool:
        """Whether it is made from nothing: a part of every program that reads it, on whatever device it was made."""
        made = node.op == "call_function" and node.target in lowering.CONSTANTS and node not in self.reasons
        return made and _why_result(node) is None

    def belongs_to_nobody(self, node: Any) -> bool:
        return self.is_view(node) or self.is_constant(node)

    def is_part(self, node: Any) -> bool:
        """Whether it is one result of an operator that has several."""
        return node.op == "call_function" and node.target is operator.getitem and not self.is_view(node)

    def base(self, node: Any) -> Any:
        """The value that a chain of views looks at."""
        while self.is_view(node):
            node = node.args[0]
        return node

    def why_eager(self, node: Any) -> str | None:
        """Why an operator cannot be part of a program, or None."""
        if node in self.reasons:
            return self.reasons[node]
        if node.target is operator.getitem:
            return self.why_eager(node.args[0])
        if node.target not in lowering.OPERATORS:
            return "it has no form in a program"
        return _why_result(node) or self._why_operands(node)

    def _why_operands(self, node: Any) -> str | None:
        found = node.meta.get("val")
        devices = {v.device for v in (found if isinstance(found, (tuple, list)) else [found]) if isinstance(v, torch.Tensor)}
        for operand in node.all_input_nodes:
            value = operand.meta.get("val")
            if isinstance(value, torch.Tensor) and value.is_complex():
                return "an operand is complex"
            if isinstance(value, torch.Tensor) and not self.is_constant(self.base(operand)):
                devices.add(value.device)
        if len(devices) > 1:
            return f"it reads and writes on several devices ({', '.join(sorted(map(str, devices)))})"
        if node.target in lowering.HEAVY and (rows := _rows(node)) > self.max_rows:
            return f"a matrix product of {rows} rows, for which the library's kernel is faster"
        return None

    # Alternatives ---------------------------------------------------------------------------------

    def alternatives(self, group: Group) -> Iterator[tuple[str, Partition]]:
        """Partitions that have this group in smaller pieces, or with what it reads; each with words for it, yet to run."""
        heavy = {n for n in group.nodes if n.target in lowering.HEAVY}
        members = set(group.nodes)
        if tails := {n for n in heavy - self.cut if any(u in members for u in self._users(n))}:
            yield "cut behind its products", self._with(cut=tails)
        if fronts := {n for n in heavy - self.fronts if any(self.base(o) in members for o in n.all_input_nodes)}:
            yield "cut in front of its products", self._with(fronts=fronts)
        if alone := self._separable(group):
            yield "cut between its products", self._with(alone=alone)
        if joined := {n for n in group.inputs if heavy and _is_uneven(n) and n in self.group_of}:
            yield "joined with the concatenation of its operands", self._with(joined=joined)

    def _with(self, **more: set[Any]) -> Partition:
        other = Partition(self.graph, self.max_rows)
        other.reasons = dict(self.reasons)
        for name in ("cut", "fronts", "alone", "joined"):
            setattr(other, name, getattr(self, name) | more.get(name, set()))
        return other

    def _separable(self, group: Group) -> set[Any]:
        """Outputs which could have groups of their own so that no matrix product is computed twice."""
        products = []
        for output in group.outputs:
            heavy = {n for n in self._ancestors(group, [output]).nodes if n.target in lowering.HEAVY}
            if heavy:
                products.append((output, heavy))
        once = sum(len(heavy) for _, heavy in products) == len(set().union(*(heavy for _, heavy in products)))
        # The first stays with the outputs that no product leads up to.
        return {output for output, _ in products[1:]} - self.alone if once else set()

    # Levels and groups ----------------------------------------------------------------------------

    def run(self) -> None:
        self.groups, self.group_of, self.level = [], {}, {}
        levels: dict[Any, tuple[int, bool]] = {}  # and whether there is a matrix product in it
        last_random = 0
        for node in self.graph.nodes:
            if node.op != "call_function":
                levels[node] = (0, False)
                continue
            above = [levels[n] for n in node.all_input_nodes]
            level = max((lv for lv, _ in above), default=0)
            full = any(f for lv, f in above if lv == level)
            if self.belongs_to_nobody(node) or self.is_part(node):
                levels[node] = (level, full)
            elif (reason := self.why_eager(node)) is not None:
                self.reasons.setdefault(node, reason)
                level += 1
                if node.is_impure() or torch.Tag.nondeterministic_seeded in getattr(node.target, "tags", ()):
                    level = last_random = max(level, last_random + 1)  # random numbers come in order
                levels[node] = (level, True)
            elif node.target in lowering.HEAVY:
                begins = node in self.fronts or (full and not _skinny(node))
                levels[node] = (level + 1, True) if begins else (level, True)
            elif node.target in lowering.REDUCTIONS:
                levels[node] = (level + 1, False) if full else (level, False)
            elif _is_uneven(node):
                levels[node] = (level + 1 if full else level, node not in self.joined)
            elif any(self.base(n) in self.cut and levels[n] == (level, True) for n in node.all_input_nodes):
                levels[node] = (level + 1, False)
            else:
                levels[node] = (level, full)
        self.level = {node: level for node, (level, _) in levels.items()}
        self._sink()
        self._collect()

    def _computed(self, node: Any) -> bool:
        """Whether a node can be part of a group."""
        return node.op == "call_function" and not self.belongs_to_nobody(node) and node not in self.reasons and not (
            self.is_part(node) and node.args[0] in self.reasons
        )

    def _users(self, node: Any) -> Iterable[Any]:
        """Who reads a value, views looked through."""
        for user in node.users:
            if self.is_view(user):
                yield from self._users(user)
            else:
                yield user

    def _sink(self) -> None:
        """A cheap step that one later group alone reads (the square before a mean) belongs to that group."""
        for node in reversed(list(self.graph.nodes)):
            if not self._computed(node) or node.target in lowering.HEAVY or node.target in lowering.REDUCTIONS:
                continue
            tensors = {self.base(n) for n in node.all_input_nodes}
            users = list(self._users(node))
            later = {self.level.get(u, 0) for u in users}
            if self.fronts.intersection(users):
                continue
            if len(tensors) == 1 and len(later) == 1 and users and all(self._computed(u) for u in users):
                self.level[node] = max(self.level[node], later.pop())

    def _collect(self) -> None:
        leader: dict[Any, Any] = {}

        def find(node: Any) -> Any:
            while leader[node] is not node:
                node = leader[node]
            return node

        nodes = [n for n in self.graph.nodes if self._computed(n)]
        for node in nodes:
            leader[node] = node
            for operand in node.all_input_nodes:
                source = self.base(operand)
                if source in leader and self.level[source] == self.level[node]:
                    leader[find(node)] = find(source)
        # Products cut off from what leads up to them stay together where that is the same for all.
        first: dict[Any, Any] = {}
        for node in nodes:
            for operand in node.all_input_nodes if node in self.fronts else ():
                other = first.setdefault((self.base(operand), self.level[node]), node)
                leader[find(node)] = find(other)
        gathered: dict[Any, Group] = {}
        for node in nodes:
            group = gathered.setdefault(find(node), Group(self.level[node]))
            group.nodes.append(node)
        for group in gathered.values():
            self._keep(group)

    def _keep(self, group: Group) -> None:
        members = set(group.nodes)
        outputs = [
            node for node in group.nodes
            if isinstance(node.meta.get("val"), torch.Tensor) and any(u not in members for u in self._users(node))
        ]  # fmt: skip
        worth = [n for n in group.nodes if not self.is_part(n)]
        if not outputs:
            return self._leave(group.nodes, "nothing reads its result")
        alone = lowering.REDUCTIONS | lowering.JOINS
        if len(worth) < 2 and not group.heavy() and worth[0].target not in alone:
            return self._leave(group.nodes, "a single elementwise operator has nothing to be fused with")
        rest = [n for n in outputs if n not in self.alone] or outputs[:1]
        for output in outputs:
            if output not in rest:
                self._keep_parts(group, [output])
        group = group if len(rest) == len(outputs) else self._ancestors(group, rest)
        if _fits(group):
            self._add(group, rest)
            return None
        return self._keep_parts(group, rest)

    def _keep_parts(self, group: Group, outputs: list[Any]) -> None:
        """A group that is too large, as one group for each few of its outputs: what they share (a norm) is
        computed in each."""
        part, wanted = Group(group.level), []
        for output in outputs:
            alone = self._ancestors(group, [output])
            both = self._ancestors(group, [*wanted, output])
            if wanted and not _fits(both):
                self._add(part, wanted)
                part, wanted = alone, [output]
            else:
                part, wanted = both, [*wanted, output]
            if not _fits(alone):
                self._leave(
                    [n for n in alone.nodes if n not in self.group_of],
                    f"a group of {len(alone.nodes)} operators with {alone.heavy()} matrix products is too large to search",
                )
                part, wanted = Group(group.level), []
        if wanted:
            self._add(part, wanted)

    def _ancestors(self, group: Group, outputs: list[Any]) -> Group:
        members, wanted, todo = set(group.nodes), set(), list(outputs)
        while todo:
            node = self.base(todo.pop())
            if node in members and node not in wanted:
                wanted.add(node)
                todo += node.all_input_nodes
        part = Group(group.level)
        part.nodes = [n for n in group.nodes if n in wanted]
        return part

    def _leave(self, nodes: Iterable[Any], reason: str) -> None:
        for node in nodes:
            self.reasons.setdefault(node, reason)

    def _add(self, group: Group, outputs: list[Any]) -> None:
        self.groups.append(group)
        for node in group.nodes:
            self.group_of[node] = group
        group.inputs, group.outputs = self._inputs(group.nodes), list(outputs)

    def _inputs(self, nodes: list[Any]) -> list[Any]:
        """What they read from outside."""
        read = {self.base(operand) for node in nodes if not self.is_part(node) for operand in node.all_input_nodes}
        return sorted((v for v in read - set(nodes) if not self.is_constant(v)), key=self._position.__getitem__)

    def by_itself(self, node: Any) -> Group:
        """An operator with its results, as a group that is not of the partition."""
        group = Group(self.level[node])
        group.nodes = [node, *(user for user in node.users if self.is_part(user))]
        group.inputs = self._inputs(group.nodes)
        group.outputs = group.nodes[1:] or [node]
        return group

    def give_up(self, group: Group, reason: str, culprit: str | None) -> None:
        """Leaves a group to PyTorch, or only the operator that is to blame; what other groups compute too stays theirs."""
        blamed = [n for n in self.graph.nodes if n.name == culprit and (n in group.nodes or self.is_constant(n))]
        shared = {n for other in self.groups if other is not group for n in other.nodes}
        for node in blamed or [n for n in group.nodes if n not in shared] or group.nodes:
            self.reasons[node] = reason


def _why_result(node: Any) -> str | None:
    """Why a program cannot have such a result, or None."""
    found = node.meta.get("val")
    for value in [v for v in found if v is not None] if isinstance(found, (tuple, list)) else [found]:
        if not isinstance(value, torch.Tensor):
            return "its result is no tensor"
        if any(not isinstance(e, int) for e in value.shape):
            return "its shape is symbolic"
        if any(e == 0 for e in value.shape):
            return "its result is empty"
    return None


def _fits(group: Group) -> bool:
    return group.heavy() <= MAX_HEAVY and len(group.nodes) <= MAX_NODES


def _is_uneven(node: Any) -> bool:
    """Whether tensors of different lengths are put side by side: a step of its own, where nothing is gained by having
    what reads it in one with it (the cache of keys of an attention). The boundary is a literal of the program."""
    if node.target is not torch.ops.aten.cat.default or len(node.args[0]) < 2:  # a stack's are all alike
        return False
    dim = node.args[1] if len(node.args) > 1 else 0
    return len({n.meta["val"].shape[dim] for n in node.args[0] if n.meta["val"].dim() > 0}) > 1


def _skinny(node: Any) -> bool:
    """Whether a matrix product sums over few elements: it adds nothing to what must be read."""
    shapes = [n.meta["val"].shape for n in node.all_input_nodes if isinstance(n.meta.get("val"), torch.Tensor)]
    if node.target in (torch.ops.aten.mm.default, torch.ops.aten.bmm.default):
        return int(shapes[0][-1]) <= SKINNY
    return False


def _rows(node: Any) -> int:
    """Rows of a matrix product: what a batch or a prompt is long; of attention, the queries of one head."""
    shapes = [n.meta["val"].shape for n in node.all_input_nodes if isinstance(n.meta.get("val"), torch.Tensor)]
    if node.target is torch.ops.aten.addmm.default:
        shapes = shapes[1:]
    if node.target is torch.ops.aten.linear.default:
        rows = 1
        for extent in shapes[0][:-1]:
            rows *= extent
        return rows
    return int(shapes[0][-2]) if len(shapes[0]) > 1 else 1
