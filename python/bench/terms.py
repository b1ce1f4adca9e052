"""A tensor program as `sundog bench` hands it over, as JSON: terms in topological order, axes by number.

What is said here about terms says nothing about PyTorch: products as lists of factors, and the patterns that have
names in every library (softmax, the two norms, attention scores).
"""

from __future__ import annotations

import dataclasses
import json
import math
from typing import Any, Optional

HALF = ("f16", "bf16")
RELATIONS = {"less": "<", "less_equal": "<=", "equal": "==", "not_equal": "!="}


@dataclasses.dataclass(frozen=True)
class Norm:
    """x / rms(x), or (x - mean(x)) / std(x), along one axis, perhaps with a weight of that axis."""

    kind: str  # "rms" or "layer"
    term: int  # that is normalised
    axis: int
    epsilon: float
    weight: Optional[int]


@dataclasses.dataclass(frozen=True)
class Softmax:
    scores: int
    axis: int


class Program:
    def __init__(self, text: str | dict[str, Any]) -> None:
        data = json.loads(text) if isinstance(text, str) else text
        self.name: str = data["name"]
        self.extents: list[int] = [a["extent"] for a in data["axes"]]
        self.axis_names: list[str] = [a["name"] for a in data["axes"]]
        self.inputs: list[dict[str, Any]] = data["inputs"]
        self.outputs: list[dict[str, Any]] = data["outputs"]
        self.terms: list[dict[str, Any]] = data["terms"]
        self._free: dict[int, frozenset[int]] = {}

    # --- axes ---

    def free_axes(self, term: int) -> frozenset[int]:
        """The axes that the value of a term varies along."""
        if term not in self._free:
            for t in range(len(self._free), term + 1):  # operands stand in front of their users
                self._free[t] = self._free_of(self.terms[t])
        return self._free[term]

    def _free_of(self, term: dict[str, Any]) -> frozenset[int]:
        found = frozenset(axis for i in self.indices(term) for axis, _ in i["axes"])
        for operand in self.operands(term):
            found |= self._free[operand]
        return found - frozenset(term["axes"]) if term["kind"] in ("sum", "max") else found

    @staticmethod
    def indices(term: dict[str, Any]) -> list[dict[str, Any]]:
        return term["index"] if term["kind"] in ("input", "index", "select") else []

    @staticmethod
    def operands(term: dict[str, Any]) -> list[int]:
        return term.get("operands", [])

    # --- shapes of terms ---

    def is_op(self, term: int, name: str) -> bool:
        t = self.terms[term]
        return t["kind"] == "apply" and t["op"] == name

    def number(self, term: int) -> Optional[float]:
        """The value of a term of constants and sizes alone."""
        t = self.terms[term]
        if t["kind"] == "constant":
            return float(t["value"])
        if t["kind"] != "apply":
            return None
        values = [self.number(o) for o in t["operands"]]
        if any(v is None for v in values):
            return None
        return _fold(t["op"], values)

    def factors(self, term: int) -> list[int]:
        """Those of a product, from left to right; a term that is none is its own factor."""
        if not self.is_op(term, "mul"):
            return [term]
        left, right = self.terms[term]["operands"]
        return self.factors(left) + self.factors(right)

    def squared(self, term: int) -> Optional[int]:
        if self.is_op(term, "square"):
            return self.terms[term]["operands"][0]
        if self.is_op(term, "mul"):
            left, right = self.terms[term]["operands"]
            return left if left == right else None
        return None

    def _mean(self, term: int) -> Optional[tuple[int, int]]:
        """(what, along which axis) for a mean along one axis."""
        if not self.is_op(term, "div"):
            return None
        total, count = self.terms[term]["operands"]
        t = self.terms[total]
        if t["kind"] != "sum" or len(t["axes"]) != 1 or self.number(count) != self.extents[t["axes"][0]]:
            return None
        return t["operands"][0], t["axes"][0]

    def _inverse_deviation(self, term: int) -> Optional[tuple[int, int, float]]:
        """(x, axis, epsilon) for rsqrt(mean[axis](x * x) + epsilon)."""
        if not self.is_op(term, "rsqrt"):
            return None
        inside, epsilon = self.terms[term]["operands"][0], 0.0
        if self.is_op(inside, "add"):
            left, right = self.terms[inside]["operands"]
            constant = self.number(right)
            if constant is None:
                left, constant = right, self.number(left)
            if constant is None:
                return None
            inside, epsilon = left, constant
        mean = self._mean(inside)
        squared = None if mean is None else self.squared(mean[0])
        return None if mean is None or squared is None else (squared, mean[1], epsilon)

    def take_norm(self, factors: list[int]) -> Optional[tuple[Norm, list[int]]]:
        """A norm among the factors of a product, and the factors that are left."""
        for factor in factors:
            found = self._inverse_deviation(factor)
            if found is None:
                continue
            x, axis, epsilon = found
            left = _without(factors, [factor, *self.factors(x)])
            if left is None:
                continue
            kind, inner = "rms", x
            if self.is_op(x, "sub"):
                whole, mean = self.terms[x]["operands"]
                if self._mean(mean) == (whole, axis):
                    kind, inner = "layer", whole
            weight = next((f for f in left if self.free_axes(f) == {axis} and self.number(f) is None), None)
            if weight is not None:
                left.remove(weight)
            return Norm(kind, inner, axis, epsilon, weight), left
        return None

    def softmax_of(self, weights: int, total: int) -> Optional[Softmax]:
        """weights / total, if it is a softmax along one axis, with its maximum or without."""
        t = self.terms[total]
        if t["kind"] != "sum" or t["operands"][0] != weights or len(t["axes"]) != 1 or not self.is_op(weights, "exp"):
            return None
        axis, inside = t["axes"][0], self.terms[weights]["operands"][0]
        if axis not in self.free_axes(inside):
            return None
        if self.is_op(inside, "sub"):
            scores, maximum = self.terms[inside]["operands"]
            m = self.terms[maximum]
            if m["kind"] == "max" and m["axes"] == [axis] and m["operands"] == [scores]:
                return Softmax(scores, axis)
        return Softmax(inside, axis)

    def quotient_softmax(self, term: int) -> Optional[Softmax]:
        if not self.is_op(term, "div"):
            return None
        return self.softmax_of(*self.terms[term]["operands"])


def _without(factors: list[int], some: list[int]) -> Optional[list[int]]:
    """The factors but for some of them, each as often as it is named; nothing if they are not all there."""
    left = list(factors)
    for factor in some:
        if factor not in left:
            return None
        left.remove(factor)
    return left


def _fold(op: str, values: list[float]) -> Optional[float]:
    unary = {
        "neg": lambda x: -x, "exp": math.exp, "log": math.log, "sqrt": math.sqrt, "square": lambda x: x * x,
        "rsqrt": lambda x: 1 / math.sqrt(x), "abs": abs,
    }  # fmt: skip
    binary = {
        "add": lambda x, y: x + y, "sub": lambda x, y: x - y, "mul": lambda x, y: x * y,
        "div": lambda x, y: x / y, "max": max, "min": min,
    }  # fmt: skip
    try:
        return (unary if len(values) == 1 else binary)[op](*values)
    except (KeyError, ValueError, ZeroDivisionError, OverflowError):
        return None
