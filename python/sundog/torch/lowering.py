"""From aten operators to the few operators of a TensorGraph (frontend/graph.h).

Each function of OPERATORS says one aten operator in those terms; an operator that is not in the table stays
eager. VIEWS are those whose result shares memory with an operand: they cost nothing, and are never computed
by a kernel for their own sake.
"""

from __future__ import annotations

import math
import operator
from typing import Any, Callable, NamedTuple, Sequence

import torch

from sundog import _wire

aten = torch.ops.aten

DTYPES = {
    torch.float16: "f16",
    torch.bfloat16: "bf16",
    torch.float32: "f32",
    torch.float64: "f64",
    torch.int8: "i8",
    torch.bool: "i8",
}
for _name, _short in (("float8_e4m3fn", "f8e4m3"), ("float8_e5m2", "f8e5m2")):
    if hasattr(torch, _name):
        DTYPES[getattr(torch, _name)] = _short

FLOATS = {d for d in DTYPES if d.is_floating_point}


class Unsupported(Exception):
    """Why an operator cannot become part of a program."""


class Ref(NamedTuple):
    """A value of the graph being built."""

    name: str
    shape: tuple[int, ...]
    condition: bool = False


class Builder:
    """A TensorGraph under construction."""

    def __init__(self, name: str) -> None:
        self.message = _wire.message("TensorGraph", name=name)
        self.label = ""
        self._constants: dict[str, Ref] = {}

    def emit(
        self, op: str, inputs: Sequence[Ref], shape: Sequence[int], integers: Sequence[int] = (), numbers: Sequence[str] = (),
        text: str = "", condition: bool = False,
    ) -> Ref:  # fmt: skip
        name = f"n{len(self.message.nodes)}"
        self.message.nodes.append(
            _wire.message(
                "TensorGraph.Node", name=name, op=op, inputs=[r.name for r in inputs], integers=list(integers),
                numbers=list(numbers), text=text, label=self.label,
            )  # fmt: skip
        )
        return Ref(name, tuple(shape), condition)

    def constant(self, value: Any) -> Ref:
        if isinstance(value, bool):
            value = int(value)
        if not isinstance(value, (int, float)):
            raise Unsupported(f"the constant {value!r}")
        if isinstance(value, float) and math.isnan(value):
            raise Unsupported("the constant NaN")
        if isinstance(value, float) and value == int(value if math.isfinite(value) else 0) and abs(value) < 2**53:
            value = int(value)
        text = repr(value) if math.isfinite(value) else ("inf" if value > 0 else "-inf")
        if text not in self._constants:
            self._constants[text] = self.emit("constant", [], (), numbers=[text])
        return self._constants[text]

    def elementwise(self, op: str, *operands: Any, numbers: Sequence[str] = (), text: str = "", condition: bool = False) -> Ref:
        refs = [r if isinstance(r, Ref) else self.constant(r) for r in operands]
        if not condition and op != "where":
            refs = [self.number(r) for r in refs]
        return self.emit(op, refs, torch.broadcast_shapes(*[r.shape for r in refs]), (), numbers, text, condition)

    def number(self, value: Ref) -> Ref:
        """A condition as 1 or 0."""
        return self.elementwise("where", value, 1, 0) if value.condition else value

    def truth(self, value: Ref) -> Ref:
        return value if value.condition else self.elementwise("not_equal", value, 0, condition=True)

    def reshape(self, value: Ref, shape: Sequence[int]) -> Ref:
        if tuple(shape) == value.shape:
            return value
        return self.emit("reshape", [value], shape, shape, condition=False) if not value.condition else self.reshape(self.number(value), shape)

    def permute(self, value: Ref, dims: Sequence[int]) -> Ref:
        value = self.number(value)
        return self.emit("permute", [value], [value.shape[d] for d in dims], dims)

    def expand(self, value: Ref, shape: Sequence[int]) -> Ref:
        value = self.number(value)
        return value if tuple(shape) == value.shape else self.emit("expand", [value], shape, shape)

    def reduce(self, op: str, value: Ref, dims: Sequence[int], keep: bool) -> Ref:
        value = self.number(value)
        shape = [1 if d in dims else e for d, e in enumerate(value.shape)]
        result = self.emit(op, [value], shape, dims)
        return result if keep else self.reshape(result, [e for d, e in enumerate(shape) if d not in dims])

    def contract(self, letters: str, *operands: Ref) -> Ref:
        extents: dict[str, int] = {}
        for part, ref in zip(letters.split("->")[0].split(","), operands):
            extents.update(zip(part, ref.shape))
        return self.emit("contract", operands, [extents[c] for c in letters.split("->")[1]], text=letters)

    def slice(self, value: Ref, dim: int, first: int, count: int, step: int = 1) -> Ref:
        value = self.number(value)
        shape = list(value.shape)
        shape[dim] = count
        return self.emit("slice", [value], shape, [dim, first, count, step])


def dims_of(dims: Any, rank: int) -> list[int]:
    """Dimensions as aten takes them (None, one, several, negative) as a sorted list."""
    if dims is None or (isinstance(dims, (list, tuple)) and not dims):
        return list(range(rank))
    if isinstance(dims, int):
        dims = [dims]
    return sorted(d % max(rank, 1) for d in dims) if rank else []


Lower = Callable[..., Any]
OPERATORS: dict[Any, Lower] = {}
VIEWS: set[Any] = set()
HEAVY: set[Any] = set()  # matrix products
COPIES: set[Any] = set()  # results are numbers of an operand
REDUCTIONS: set[Any] = set()
JOINS: set[Any] = set()  # tensors put side by side
CONSTANTS: set[Any] = set()  # made from nothing


def lowers(*targets: str, into: set[Any] | None = None) -> Callable[[Lower], Lower]:
    def register(function: Lower) -> Lower:
        for target in targets:
            packet, _, overload = target.partition(".")
            found = getattr(getattr(aten, packet, None), overload or "default", None)
            if found is None:
                continue  # of another version of PyTorch
            OPERATORS[found] = function
            if into is not None:
                into.add(found)
        return function

    return register


# Elementwise ------------------------------------------------------------------------------------------


def _simple(name: str, *targets: str) -> None:
    lowers(*targets)(lambda b, x: b.elementwise(name, x))


for _op in ("exp", "log", "sqrt", "rsqrt", "abs", "relu", "sigmoid", "silu", "tanh", "erf", "sin", "cos", "neg", "square"):
    _simple(_op, _op)
for _op, _target in (("max", "maximum"), ("min", "minimum")):
    lowers(_target)(lambda b, x, y, op=_op: b.elementwise(op, x, y))


@lowers("add.Tensor", "add.Scalar")
def _add(b: Builder, x: Any, y: Any, alpha: Any = 1) -> Ref:
    return b.elementwise("add", x, y if alpha == 1 else b.elementwise("mul", y, alpha))


@lowers("sub.Tensor", "sub.Scalar")
def _sub(b: Builder, x: Any, y: Any, alpha: Any = 1) -> Ref:
    return b.elementwise("sub", x, y if alpha == 1 else b.elementwise("mul", y, alpha))


@lowers("rsub.Scalar", "rsub.Tensor")
def _rsub(b: Builder, x: Any, y: Any, alpha: Any = 1) -> Ref:
    return _sub(b, y, x, alpha)


@lowers("mul.Tensor", "mul.Scalar")
def _mul(b: Builder, x: Any, y: Any) -> Ref:
    return b.elementwise("mul", x, y)


@lowers("div.Tensor", "div.Scalar")
def _div(b: Builder, x: Any, y: Any) -> Ref:
    return b.elementwise("div", x, y)


@lowers("reciprocal")
def _reciprocal(b: Builder, x: Ref) -> Ref:
    return b.elementwise("div", 1, x)


@lowers("pow.Tensor_Scalar")
def _pow(b: Builder, x: Ref, exponent: Any) -> Ref:
    if exponent == 2:
        return b.elementwise("mul", x, x)
    return b.elementwise("pow", x, numbers=[repr(exponent)])


@lowers("gelu")
def _gelu(b: Builder, x: Ref, approximate: str = "none") -> Ref:
    return b.elementwise("gelu_tanh" if approximate == "tanh" else "gelu", x)


@lowers("softplus")
def _softplus(b: Builder, x: Ref, beta: Any = 1, threshold: Any = 20) -> Ref:
    if beta != 1:
        raise Unsupported(f"softplus with beta {beta}")
    return b.elementwise("softplus", x)


@lowers("clamp", "hardtanh")
def _clamp(b: Builder, x: Ref, low: Any = None, high: Any = None) -> Ref:
    if low is not None:
        x = b.elementwise("max", x, low)
    return x if high is None else b.elementwise("min", x, high)


@lowers("clamp_min", "clamp_min.Tensor")
def _clamp_min(b: Builder, x: Ref, low: Any) -> Ref:
    return b.elementwise("max", x, low)


@lowers("clamp_max", "clamp_max.Tensor")
def _clamp_max(b: Builder, x: Ref, high: Any) -> Ref:
    return b.elementwise("min", x, high)


@lowers("_to_copy", "to.dtype", into=COPIES)
def _to_copy(b: Builder, x: Ref, dtype: Any = None, **_: Any) -> Ref:
    x = b.number(x)
    if dtype in FLOATS and torch.finfo(dtype).bits < 64:
        return b.elementwise("cast", x, text=DTYPES[dtype])
    if dtype is None or dtype in FLOATS:
        return x
    raise Unsupported(f"a conversion to {dtype}")


@lowers("clone", "contiguous", "lift_fresh_copy", "alias_copy", "copy", into=COPIES)
def _clone(b: Builder, x: Ref, *source: Any, **_: Any) -> Ref:
    return b.elementwise("add", source[0], 0) if source and isinstance(source[0], Ref) else x


@lowers("where.self", "where.ScalarOther", "where.ScalarSelf", "where.Scalar")
def _where(b: Builder, condition: Ref, x: Any, y: Any) -> Ref:
    values = [b.number(v) if isinstance(v, Ref) else b.constant(v) for v in (x, y)]
    return b.elementwise("where", b.truth(condition), *values)


@lowers("masked_fill.Scalar", "masked_fill.Tensor")
def _masked_fill(b: Builder, x: Ref, mask: Ref, value: Any) -> Ref:
    return _where(b, mask, value, x)


def _relation(name: str, swapped: bool, *targets: str) -> None:
    def lower(b: Builder, x: Any, y: Any) -> Ref:
        x, y = (b.number(v) if isinstance(v, Ref) else b.constant(v) for v in (x, y))
        return b.elementwise(name, *((y, x) if swapped else (x, y)), condition=True)

    lowers(*targets)(lower)


_relation("less", False, "lt.Tensor", "lt.Scalar")
_relation("less", True, "gt.Tensor", "gt.Scalar")
_relation("less_equal", False, "le.Tensor", "le.Scalar")
_relation("less_equal", True, "ge.Tensor", "ge.Scalar")
_relation("equal", False, "eq.Tensor", "eq.Scalar")
_relation("not_equal", False, "ne.Tensor", "ne.Scalar")


@lowers("logical_and", "bitwise_and.Tensor")
def _and(b: Builder, x: Ref, y: Ref) -> Ref:
    return b.elementwise("and", b.truth(x), b.truth(y), condition=True)


@lowers("logical_or", "bitwise_or.Tensor")
def _or(b: Builder, x: Ref, y: Ref) -> Ref:
    return b.elementwise("or", b.truth(x), b.truth(y), condition=True)


@lowers("logical_not", "bitwise_not")
def _not(b: Builder, x: Ref) -> Ref:
    return b.elementwise("not", b.truth(x), condition=True)


# Made from nothing ------------------------------------------------------------------------------------


@lowers("arange.start_step", "arange.start", "arange.default", into=CONSTANTS)
def _arange(b: Builder, *limits: Any, **_: Any) -> Ref:
    start, end, step = (0, limits[0], 1) if len(limits) == 1 else (*limits, 1)[:3]
    if not all(isinstance(v, int) for v in (start, end, step)):
        raise Unsupported("an arange of fractions")
    count = max(0, -(-(end - start) // step))
    value = b.emit("iota", [], [count], [0, count])
    value = value if step == 1 else b.elementwise("mul", value, step)
    return value if start == 0 else b.elementwise("add", value, start)


@lowers("full", into=CONSTANTS)
def _full(b: Builder, shape: Sequence[int], value: Any, **_: Any) -> Ref:
    return b.expand(b.constant(value), shape)


@lowers("full_like")
def _full_like(b: Builder, x: Ref, value: Any, **_: Any) -> Ref:
    return b.expand(b.constant(value), x.shape)


@lowers("zeros_like")
def _zeros_like(b: Builder, x: Ref, **_: Any) -> Ref:
    return _full_like(b, x, 0)


@lowers("ones_like")
def _ones_like(b: Builder, x: Ref, **_: Any) -> Ref:
    return _full_like(b, x, 1)


@lowers("scalar_tensor", into=CONSTANTS)
def _scalar_tensor(b: Builder, value: Any, **_: Any) -> Ref:
    return b.constant(value)


# Reductions -------------------------------------------------------------------------------------------


@lowers("sum.dim_IntList", "sum.default", into=REDUCTIONS)
def _sum(b: Builder, x: Ref, dims: Any = None, keepdim: bool = False, dtype: Any = None) -> Ref:
    return b.reduce("sum", x, dims_of(dims, len(x.shape)), keepdim)


@lowers("mean.dim", "mean.default", into=REDUCTIONS)
def mean(b: Builder, x: Ref, dims: Any = None, keepdim: bool = False, dtype: Any = None) -> Ref:
    chosen = dims_of(dims, len(x.shape))
    count = math.prod(x.shape[d] for d in chosen)
    return b.elementwise("div", b.reduce("sum", x, chosen, keepdim), count)


@lowers("amax", into=REDUCTIONS)
def _amax(b: Builder, x: Ref, dims: Any = None, keepdim: bool = False) -> Ref:
    return b.reduce("reduce_max", x, dims_of(dims, len(x.shape)), keepdim)


@lowers("amin", into=REDUCTIONS)
def _amin(b: Builder, x: Ref, dims: Any = None, keepdim: bool = False) -> Ref:
    return b.elementwise("neg", _amax(b, b.elementwise("neg", x), dims, keepdim))


@lowers("var.correction", into=REDUCTIONS)
def _var(b: Builder, x: Ref, dims: Any = None, *, correction: Any = 1, keepdim: bool = False) -> Ref:
    chosen = dims_of(dims, len(x.shape))
    count = math.prod(x.shape[d] for d in chosen)
    centred = b.elementwise("sub", x, mean(b, x, chosen, True))
    squares = b.reduce("sum", b.elementwise("mul", centred, centred), chosen, keepdim)
    return b.elementwise("div", squares, count - (1 if correction is None else correction))


@lowers("_softmax", "softmax.int", into=REDUCTIONS)
def softmax(b: Builder, x: Ref, dim: int, *_: Any) -> Ref:
    dims = dims_of(dim, len(x.shape))
    powers = b.elementwise("exp", b.elementwise("sub", x, b.reduce("reduce_max", x, dims, True)))
    return b.elementwise("div", powers, b.reduce("sum", powers, dims, True))


@lowers("_log_softmax", "log_softmax.int", into=REDUCTIONS)
def _log_softmax(b: Builder, x: Ref, dim: int, *_: Any) -> Ref:
    dims = dims_of(dim, len(x.shape))
    centred = b.elementwise("sub", x, b.reduce("reduce_max", x, dims, True))
    total = b.reduce("sum", b.elementwise("exp", centred), dims, True)
    return b.elementwise("sub", centred, b.elementwise("log", total))


# Products ---------------------------------------------------------------------------------------------


@lowers("mm", into=HEAVY)
def _mm(b: Builder, x: Ref, y: Ref) -> Ref:
    return b.contract("ij,jk->ik", x, y)


@lowers("bmm", into=HEAVY)
def _bmm(b: Builder, x: Ref, y: Ref) -> Ref:
    return b.contract("bij,bjk->bik", x, y)


@lowers("mv", into=HEAVY)
def _mv(b: Builder, x: Ref, y: Ref) -> Ref:
    return b.contract("ij,j->i", x, y)


@lowers("dot", into=HEAVY)
def _dot(b: Builder, x: Ref, y: Ref) -> Ref:
    return b.contract("i,i->", x, y)


@lowers("linear", into=HEAVY)
def _linear(b: Builder, x: Ref, weight: Ref, bias: Any = None) -> Ref:
    rows = "abcdefgh"[: len(x.shape) - 1]
    result = b.contract(f"{rows}y,zy->{rows}z", x, weight)
    return result if bias is None else b.elementwise("add", result, bias)


def _scaled(b: Builder, value: Any, factor: Any) -> Any:
    return value if factor == 1 else b.elementwise("mul", value, factor)


@lowers("addmm", into=HEAVY)
def _addmm(b: Builder, bias: Ref, x: Ref, y: Ref, *, beta: Any = 1, alpha: Any = 1) -> Ref:
    return b.elementwise("add", _scaled(b, bias, beta), _scaled(b, _mm(b, x, y), alpha))


@lowers("baddbmm", into=HEAVY)
def _baddbmm(b: Builder, bias: Ref, x: Ref, y: Ref, *, beta: Any = 1, alpha: Any = 1) -> Ref:
    return b.elementwise("add", _scaled(b, bias, beta), _scaled(b, _bmm(b, x, y), alpha))


def attention(b: Builder, q: Ref, k: Ref, v: Ref, mask: Any, causal: bool, scale: float | None, gqa: bool) -> Ref:
    """softmax(q k / sqrt e, masked) v over the last two dimensions, as scaled_dot_product_attention says it."""
    *batch, rows, width = q.shape
    columns = k.shape[-2]
    if len(batch) > 6:
        raise Unsupported("attention over more than six batch dimensions")
    heads = q.shape[-3] if batch else 1
    group = heads // k.shape[-3] if batch and gqa else 1
    if group > 1:
        q = b.reshape(q, [*batch[:-1], k.shape[-3], group, rows, width])
    outer = "abcdef"[: len(batch)]
    if k.shape[:-2] != q.shape[: len(batch)] and group == 1:
        k, v = (b.expand(t, [*batch, *t.shape[-2:]]) for t in (k, v))
    g = "g" if group > 1 else ""
    scores = b.contract(f"{outer}{g}qe,{outer}ke->{outer}{g}qk", q, k)
    scores = b.elementwise("mul", scores, 1 / math.sqrt(width) if scale is None else scale)
    if causal:
        ones = [1] * (len(scores.shape) - 2)
        row = b.emit("iota", [], [*ones, rows, 1], [len(ones), *ones, rows, 1])
        column = b.emit("iota", [], [*ones, 1, columns], [len(ones) + 1, *ones, 1, columns])
        scores = _where(b, b.elementwise("less_equal", column, row, condition=True), scores, -math.inf)
    if mask is not None:
        if group > 1:
            raise Unsupported("grouped attention with a mask")
        scores = _where(b, mask, scores, -math.inf) if mask.condition else b.elementwise("add", scores, mask)
    weights = softmax(b, scores, -1)
    result = b.contract(f"{outer}{g}qk,{outer}kf->{outer}{g}qf", weights, v)
    return b.reshape(result, [*batch, rows, v.shape[-1]])


# Views and moves --------------------------------------------------------------------------------------


@lowers("view", "_unsafe_view", "reshape", into=VIEWS)
def _view(b: Builder, x: Ref, shape: Sequence[int]) -> Ref:
    shape = list(shape)
    if -1 in shape:
        rest = math.prod(e for e in shape if e != -1)
        shape[shape.index(-1)] = math.prod(x.shape) // max(rest, 1)
    return b.reshape(x, shape)


@lowers("permute", into=VIEWS)
def _permute(b: Builder, x: Ref, dims: Sequence[int]) -> Ref:
    return b.permute(x, [d % len(x.shape) for d in dims])


@lowers("transpose.int", into=VIEWS)
def _transpose(b: Builder, x: Ref, first: int, second: int) -> Ref:
    dims = list(range(len(x.shape)))
    dims[first], dims[second] = dims[second], dims[first]
    return b.permute(x, dims)


@lowers("t", into=VIEWS)
def _t(b: Builder, x: Ref) -> Ref:
    return b.permute(x, range(len(x.shape))[::-1])


@lowers("unsqueeze", into=VIEWS)
def _unsqueeze(b: Builder, x: Ref, dim: int) -> Ref:
    shape = list(x.shape)
    shape.insert(dim % (len(shape) + 1), 1)
    return b.reshape(x, shape)


@lowers("squeeze.dim", "squeeze.dims", "squeeze.default", into=VIEWS)
def _squeeze(b: Builder, x: Ref, dims: Any = None) -> Ref:
    chosen = dims_of(dims, len(x.shape))
    return b.reshape(x, [e for d, e in enumerate(x.shape) if d not in chosen or e != 1])


@lowers("expand", into=VIEWS)
def _expand(b: Builder, x: Ref, shape: Sequence[int], implicit: bool = False) -> Ref:
    skipped = len(shape) - len(x.shape)
    return b.expand(x, [x.shape[d - skipped] if e == -1 else e for d, e in enumerate(shape)])


@lowers("slice.Tensor", into=VIEWS)
def _slice(b: Builder, x: Ref, dim: int = 0, start: Any = None, end: Any = None, step: int = 1) -> Ref:
    dim %= len(x.shape)
    first, last, step = slice(start, end, step).indices(x.shape[dim])
    return b.slice(x, dim, first, max(0, -(-(last - first) // step)), step)


@lowers("select.int", into=VIEWS)
def _select(b: Builder, x: Ref, dim: int, index: int) -> Ref:
    dim %= len(x.shape)
    taken = b.slice(x, dim, index % x.shape[dim], 1)
    return b.reshape(taken, [e for d, e in enumerate(taken.shape) if d != dim])


@lowers("split.Tensor", "split_with_sizes", into=VIEWS)
def _split(b: Builder, x: Ref, sizes: Any, dim: int = 0) -> tuple[Ref, ...]:
    dim %= len(x.shape)
    if isinstance(sizes, int):
        whole, size = x.shape[dim], sizes
        sizes = [min(size, whole - at) for at in range(0, whole, size)]
    parts, first = [], 0
    for size in sizes:
        parts.append((first, size))
        first += size
    return Lazy(lambda i: b.slice(x, dim, *parts[i]))  # type: ignore[return-value]


@lowers("unbind.int", into=VIEWS)
def _unbind(b: Builder, x: Ref, dim: int = 0) -> tuple[Ref, ...]:
    return Lazy(lambda i: _select(b, x, dim, i))  # type: ignore[return-value]


@lowers("alias", "detach", into=VIEWS)
def _alias(b: Builder, x: Ref) -> Ref:
    return x


@lowers("cat", into=JOINS)
def _cat(b: Builder, parts: Sequence[Ref], dim: int = 0) -> Ref:
    parts = [b.number(p) for p in parts]
    dim %= len(parts[0].shape)
    shape = list(parts[0].shape)
    shape[dim] = sum(p.shape[dim] for p in parts)
    return b.emit("concat", parts, shape, [dim])


@lowers("stack", into=JOINS)
def _stack(b: Builder, parts: Sequence[Ref], dim: int = 0) -> Ref:
    return _cat(b, [_unsqueeze(b, p, dim) for p in parts], dim % (len(parts[0].shape) + 1))


class Lazy:
    """Several results, of which only those that are asked for are made."""

    def __init__(self, make: Callable[[int], Ref]) -> None:
        self._make = make

    def __getitem__(self, index: int) -> Ref:
        return self._make(index)


def lower_node(b: Builder, node: Any, value_of: Callable[[Any], Any]) -> Any:
    """The value of one fx node, given those of its arguments."""
    args, kwargs = torch.fx.map_arg((node.args, node.kwargs), value_of)
    b.label = node.name
    if node.target is operator.getitem:
        return args[0][args[1]]
    if node.target not in OPERATORS:
        raise Unsupported(f"{node.target} has no form in a program")
    return OPERATORS[node.target](b, *args, **kwargs)
