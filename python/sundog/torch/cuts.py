"""The fastest partition of a graph.

One kernel for all that could be one is not always the fastest: a product whose result is needed in two places at once
may be cheaper behind memory. What is, the cost model and the clock tell. From the largest groups on, each is compared
with its alternatives: cut behind its products, in front of them, between them, or joined with the concatenation that it
reads; every piece as the kernel that is found for it, or as PyTorch runs it, whichever is faster. The fastest is kept,
and its pieces are compared in turn. An alternative is a whole partition, since a cut changes what its neighbours are
fused with: compared is the sum over what differs. Three steps keep that short:

    bound      pieces that cannot beat what is there, each a launch and its tensors through memory, are not looked at;
    forecast   pieces are searched for, and dropped if even the prediction is no better;
    clock      what is left is tuned and timed, where there is a GPU.

Within 2 % what there was stays.
"""

from __future__ import annotations

import math
from typing import Any, Sequence

from sundog.program import Program
from sundog.torch.measure import TIE
from sundog.torch.partition import Group, Partition
from sundog.torch.pricing import Priced, Pricer
from sundog.torch.programs import Programs, operators_of


class Compared:
    """An alternative that was looked at, for the report: microseconds of what there was and of each of its pieces."""

    def __init__(self, where: str, operators: list[str], whole_us: float, pieces_us: Sequence[float], timed: bool) -> None:
        self.where, self.operators = where, operators
        self.whole_us, self.pieces_us, self.timed = whole_us, list(pieces_us), timed
        self.taken = False

    def __str__(self) -> str:
        pieces = " + ".join(f"{us:.2f}" for us in self.pieces_us)
        whole = f"{self.whole_us:.2f} us" if math.isfinite(self.whole_us) else "no kernel"
        return (
            f"{self.where}: {', '.join(self.operators)}: {pieces} us {'measured' if self.timed else 'predicted'}, "
            f"{whole} before: {'taken' if self.taken else 'not taken'}"
        )


class Explorer:
    """Finds it. With `always` unset only groups without a kernel that is worth it are taken to pieces."""

    def __init__(self, pricer: Pricer, programs: Programs, always: bool) -> None:
        self.pricer, self.programs, self.always = pricer, programs, always
        self.compared: dict[Any, Compared] = {}  # by place and operators
        self.priced: dict[Any, Priced] = {}

    def best(self, partition: Partition) -> Partition:
        """The fastest that cuts lead to; `priced` has its groups afterwards, by key."""
        units = self._units(partition)
        todo = list(partition.groups)
        while todo:
            better = self._better(partition, units, todo.pop(0))
            if better is None:
                continue
            known, waiting = set(units), {group.key for group in todo}
            partition, units = better
            todo = [g for g in partition.groups if g.key in waiting or g.key not in known]
        self.priced = {g.key: self.pricer.price(partition, g, p) for g, p in units.values() if p is not None}
        return partition

    def _units(self, partition: Partition) -> dict[Any, Any]:
        """What a partition is made of, with the program of each group, and None for operators outside of groups."""
        units: dict[Any, Any] = {group.key: (group, program) for group, program in self.programs.of(partition)}
        for node in partition.reasons:
            if node.op == "call_function" and node not in partition.group_of and not partition.is_part(node):
                units[node] = node, None
        return units

    def _better(self, partition: Partition, units: dict[Any, Any], group: Group) -> tuple[Partition, dict[Any, Any]] | None:
        priced = self.pricer.price(partition, group, units[group.key][1])
        if priced.call is not None and not self.always:
            return None
        found: tuple[Any, Compared, Partition, dict[Any, Any]] | None = None
        for where, other in partition.alternatives(group):
            others = self._units(other)
            removed = [unit for key, unit in units.items() if key not in others]
            added = [unit for key, unit in others.items() if key not in units]
            compared = self._compared(where, partition, removed, other, added)
            if compared is None:
                continue
            rank = _rank(compared.pieces_us)
            works = any(p is not None and math.isfinite(us) for (_, p), us in zip(added, compared.pieces_us))
            good = works if math.isinf(compared.whole_us) else rank < (0, compared.whole_us * (1 - TIE))
            if good and (found is None or rank < found[0]):
                found = rank, compared, other, others
        if found is None:
            return None
        found[1].taken = True
        return found[2:]

    def _compared(
        self, where: str, partition: Partition, removed: list[Any], other: Partition, added: list[Any]
    ) -> Compared | None:
        """Or None where it need not be looked at, or there is nothing to compare by."""
        timed = any(p is not None and self.pricer.times_groups(u) for u, p in removed)
        before = [self._us(partition, unit, timed) for unit in removed]
        if not added or None in before:
            return None
        whole = sum(before)
        forecast = [self._forecast(other, unit, bound=True) for unit in added]
        if sum(forecast) >= whole * (1 - TIE) and math.isfinite(whole):
            return None
        forecast = [self._forecast(other, unit, bound=False) for unit in added]
        names = [name for u, p in removed for name in (operators_of(partition, u) if p is not None else [u.name])]
        compared = Compared(where, names, whole, forecast, False)
        if timed and (sum(forecast) < whole * (1 - TIE) or math.isinf(whole)):
            after = [self._us(other, unit, timed) for unit in added]
            if None in after:
                return None
            compared = Compared(where, names, whole, after, True)
        return self.compared.setdefault((where, *names), compared)

    def _us(self, partition: Partition, unit: tuple[Any, Program | None], timed: bool) -> float | None:
        """Microseconds of a unit, infinite where nothing is found that runs, None where the clock does not tell."""
        what, program = unit
        if program is None:
            return self.pricer.alone(partition, what, timed)
        priced = self.pricer.price(partition, what, program)
        if priced.kernel is None:
            return math.inf
        return priced.us if timed else priced.predicted

    def _forecast(self, partition: Partition, unit: tuple[Any, Program | None], bound: bool) -> float:
        what, program = unit
        if program is None:
            return self.pricer.alone(partition, what, False)
        return self.pricer.bound(program) if bound else self.pricer.forecast(what, program)


def _rank(pieces_us: Sequence[float]) -> tuple[int, float]:
    """The number of pieces without a kernel, and what the others take."""
    finite = [us for us in pieces_us if math.isfinite(us)]
    return len(pieces_us) - len(finite), sum(finite)
