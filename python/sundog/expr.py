"""Programs written in Python: tensors with named axes, combined by operators.

    x = sd.input("x", b=16, h=4096, dtype="f16")
    g = sd.input("g", h=4096, dtype="f16")
    y = x * sd.rsqrt(sd.mean(x * x, "h") + 1e-6) * g
    print(sd.program_text(y))

Elementwise operators broadcast by the names of axes; a reduction removes the axes that it names; a matrix
product is `sd.sum(x * w, "h")`. What comes of it is program text (docs/language.md), which is what the
library reads: nothing is computed here.
"""

from __future__ import annotations

import math
from typing import Iterable, Mapping, Union

from sundog._library import SundogError

DTYPES = ("f16", "bf16", "f32", "f64", "f8e4m3", "f8e5m2", "i8")
Number = Union[int, float]


def _number(value: Number) -> str:
    if isinstance(value, float) and math.isinf(value):
        return "inf" if value > 0 else "-inf"
    if isinstance(value, float) and math.isnan(value):
        raise SundogError("NaN is no constant of a program")
    return repr(float(value)) if isinstance(value, float) else str(int(value))


def _merged(*axes: Mapping[str, int]) -> dict[str, int]:
    result: dict[str, int] = {}
    for each in axes:
        for name, extent in each.items():
            if result.setdefault(name, extent) != extent:
                raise SundogError(
                    f"axis {name} is {result[name]} long in one operand and {extent} in another",
                    "give axes of different lengths different names, or rename one with .at()",
                )
    return result


class Index:
    """A position along axes, for conditions and accesses: `sd.index("q", 64) >= sd.index("k", 64)`."""

    def __init__(self, text: str, axes: Mapping[str, int]) -> None:
        self.text, self.axes = text, dict(axes)

    def _with(self, symbol: str, other: Index | int) -> Index:
        other = other if isinstance(other, Index) else Index(str(int(other)), {})
        return Index(f"({self.text} {symbol} {other.text})", _merged(self.axes, other.axes))

    def __add__(self, other: Index | int) -> Index:
        return self._with("+", other)

    def __sub__(self, other: Index | int) -> Index:
        return self._with("-", other)

    def __mul__(self, factor: int) -> Index:
        return self._with("*", factor)

    def _compare(self, relation: str, other: Index | int) -> Condition:
        other = other if isinstance(other, Index) else Index(str(int(other)), {})
        return Condition(f"{self.text} {relation} {other.text}", _merged(self.axes, other.axes), ())

    def __lt__(self, other: Index | int) -> Condition:
        return self._compare("<", other)

    def __le__(self, other: Index | int) -> Condition:
        return self._compare("<=", other)

    def __gt__(self, other: Index | int) -> Condition:
        return self._compare(">", other)

    def __ge__(self, other: Index | int) -> Condition:
        return self._compare(">=", other)


class Condition:
    """What `where` asks. It is no number and no truth of Python's."""

    def __init__(self, text: str, axes: Mapping[str, int], operands: tuple[Tensor, ...]) -> None:
        self.text, self.axes, self.operands = text, dict(axes), operands

    def __bool__(self) -> bool:
        raise TypeError("a condition of a program has no truth value in Python; use sd.where")


class Tensor:
    """A term of a program: its axes are known, its value is not."""

    def __init__(
        self, axes: Mapping[str, int], form: str, operands: Iterable[Tensor] = (), name: str = "", dtype: str = ""
    ) -> None:
        self.axes = dict(axes)  # name to extent, in order
        self.form = form  # text with {0}, {1} for the operands
        self.operands = tuple(operands)
        self.name = name  # of an input, or as the text shall call it
        self.dtype = dtype  # of an input, or of a cast
        self.declaration = ""  # of an input

    def named(self, name: str) -> Tensor:
        """The same value under a name that the text, pictures and messages show."""
        return Tensor(self.axes, "{0}", [self], name)

    def to(self, dtype: str) -> Tensor:
        """Rounded to a type. As the last step of an output it is the type of the output."""
        _check_dtype(dtype)
        return Tensor(self.axes, "cast({0}, %s)" % dtype, [self], dtype=dtype)

    def at(self, **indices: str | Index) -> Tensor:
        """The value read at other indices: an axis renamed (`k="h"` reads it along h) or moved
        (`i=sd.index("i", 63) + 1`). Axes that are not named stay."""
        axes: dict[str, int] = {}
        texts = []
        for name, extent in self.axes.items():
            index = indices.pop(name, name)
            if isinstance(index, str):
                index = Index(index, {index: extent})
            axes = _merged(axes, index.axes)
            texts.append(index.text)
        if indices:
            raise SundogError(f"there is no axis {', '.join(indices)} to be indexed", f"the axes are {', '.join(self.axes)}")
        source = self if self.declaration else self.named(self.name)
        return Tensor(axes, "{0}[%s]" % ", ".join(texts), [source])

    def __add__(self, other: Tensor | Number) -> Tensor:
        return apply("({0} + {1})", self, other)

    def __radd__(self, other: Number) -> Tensor:
        return apply("({0} + {1})", other, self)

    def __sub__(self, other: Tensor | Number) -> Tensor:
        return apply("({0} - {1})", self, other)

    def __rsub__(self, other: Number) -> Tensor:
        return apply("({0} - {1})", other, self)

    def __mul__(self, other: Tensor | Number) -> Tensor:
        return apply("({0} * {1})", self, other)

    def __rmul__(self, other: Number) -> Tensor:
        return apply("({0} * {1})", other, self)

    def __truediv__(self, other: Tensor | Number) -> Tensor:
        return apply("({0} / {1})", self, other)

    def __rtruediv__(self, other: Number) -> Tensor:
        return apply("({0} / {1})", other, self)

    def __pow__(self, exponent: Number) -> Tensor:
        return apply("pow({0}, %s)" % _number(exponent), self)

    def __neg__(self) -> Tensor:
        return apply("(-{0})", self)

    def _compare(self, relation: str, other: Tensor | Number) -> Condition:
        other = other if isinstance(other, Tensor) else constant(other)
        return Condition("{0} %s {1}" % relation, _merged(self.axes, other.axes), (self, other))

    def __lt__(self, other: Tensor | Number) -> Condition:
        return self._compare("<", other)

    def __le__(self, other: Tensor | Number) -> Condition:
        return self._compare("<=", other)

    def __gt__(self, other: Tensor | Number) -> Condition:
        return self._compare(">", other)

    def __ge__(self, other: Tensor | Number) -> Condition:
        return self._compare(">=", other)

    def __repr__(self) -> str:
        shape = ", ".join(f"{name}={extent}" for name, extent in self.axes.items())
        return f"<sundog.Tensor {self.name or 'term'}[{shape}]{' ' + self.dtype if self.dtype else ''}>"


def _check_dtype(dtype: str) -> None:
    if dtype not in DTYPES:
        raise SundogError(f"there is no type {dtype}", f"types are {', '.join(DTYPES)}")


def input(
    name: str,
    dtype: str = "f16",
    strides: Iterable[int] | None = None,
    low: Number | None = None,
    high: Number | None = None,
    **axes: int,
) -> Tensor:
    """An input in device memory: `sd.input("x", b=16, h=4096, dtype="f16")`, row-major in that order unless
    strides (in elements) are given. `low` and `high` declare the range of the values."""
    _check_dtype(dtype)
    for axis, extent in axes.items():
        if not isinstance(extent, int) or extent < 0:
            raise SundogError(f"axis {axis} of {name} has the extent {extent!r}", "an extent is an integer, 0 or more")
    tensor = Tensor(axes, name, (), name, dtype)
    tensor.declaration = f"{dtype}[{', '.join(axes)}]"
    if strides is not None:
        strides = list(strides)
        if len(strides) != len(axes):
            raise SundogError(f"{name} has {len(axes)} axes and {len(strides)} strides")
        tensor.declaration += f" stride({', '.join(map(str, strides))})"
    if low is not None or high is not None:
        bounds = (-math.inf if low is None else float(low), math.inf if high is None else float(high))
        tensor.declaration += f" in [{_number(bounds[0])}, {_number(bounds[1])}]"
    return tensor


def constant(value: Number) -> Tensor:
    return Tensor({}, f"({_number(value)})" if value < 0 else _number(value))


def index(axis: str, extent: int) -> Index:
    """The position along an axis."""
    return Index(axis, {axis: extent})


def position(axis: str, extent: int) -> Tensor:
    """The position along an axis, as a number."""
    return Tensor({axis: extent}, f"index({axis})")


def apply(form: str, *operands: Tensor | Number) -> Tensor:
    """A term by its text: `apply("gelu({0})", x)`."""
    tensors = [t if isinstance(t, Tensor) else constant(t) for t in operands]
    return Tensor(_merged(*[t.axes for t in tensors]), form, tensors)


def _reduce(kind: str, value: Tensor, axes: tuple[str, ...]) -> Tensor:
    for axis in axes:
        if axis not in value.axes:
            raise SundogError(f"{kind} over {axis}, which is no axis of its operand", f"its axes are {', '.join(value.axes) or 'none'}")
    left = {name: extent for name, extent in value.axes.items() if name not in axes}
    return Tensor(left, "%s[%s]({0})" % (kind, ", ".join(axes)), [value])


def sum(value: Tensor, *axes: str) -> Tensor:
    return _reduce("sum", value, axes)


def max(value: Tensor, *axes: str) -> Tensor:
    return _reduce("max", value, axes)


def min(value: Tensor, *axes: str) -> Tensor:
    return _reduce("min", value, axes)


def mean(value: Tensor, *axes: str) -> Tensor:
    return _reduce("mean", value, axes)


def var(value: Tensor, *axes: str) -> Tensor:
    """The mean square distance from the mean."""
    return _reduce("var", value, axes)


def softmax(value: Tensor, axis: str) -> Tensor:
    """exp(x - max x) over its sum along the axis."""
    result = _reduce("softmax", value, (axis,))
    return Tensor(value.axes, result.form, result.operands)


def logsumexp(value: Tensor, axis: str) -> Tensor:
    """The logarithm of the sum of exp x along the axis, without overflow; NaN where all is -inf."""
    return _reduce("logsumexp", value, (axis,))


def matmul(a: Tensor, b: Tensor, axis: str) -> Tensor:
    """The product summed over an axis that both have."""
    return sum(a * b, axis)


def where(condition: Condition, then: Tensor | Number, otherwise: Tensor | Number) -> Tensor:
    """The first value where the condition holds, else the second; the other is not evaluated."""
    values = [t if isinstance(t, Tensor) else constant(t) for t in (then, otherwise)]
    count = len(condition.operands)
    form = "select(%s, {%d}, {%d})" % (condition.text, count, count + 1)
    return Tensor(_merged(*[v.axes for v in values], condition.axes), form, [*condition.operands, *values])


def _unary(name: str):
    def operator(value: Tensor) -> Tensor:
        return apply(name + "({0})", value)

    operator.__name__ = operator.__qualname__ = name
    operator.__doc__ = f"{name} of each element."
    return operator


exp, log, sqrt, rsqrt, square, abs = (_unary(n) for n in ("exp", "log", "sqrt", "rsqrt", "square", "abs"))
relu, sigmoid, silu, softplus, tanh, erf = (_unary(n) for n in ("relu", "sigmoid", "silu", "softplus", "tanh", "erf"))
sin, cos, gelu, gelu_tanh = (_unary(n) for n in ("sin", "cos", "gelu", "gelu_tanh"))


def maximum(a: Tensor | Number, b: Tensor | Number) -> Tensor:
    return apply("max({0}, {1})", a, b)


def minimum(a: Tensor | Number, b: Tensor | Number) -> Tensor:
    return apply("min({0}, {1})", a, b)


def clamp(value: Tensor, low: Number, high: Number) -> Tensor:
    return apply(f"clamp({{0}}, {_number(low)}, {_number(high)})", value)


class _Writer:
    """Program text of terms: one that is used more than once, or has a name, becomes a definition."""

    def __init__(self) -> None:
        self.inputs: dict[str, Tensor] = {}
        self.axes: dict[str, int] = {}
        self.uses: dict[int, int] = {}
        self.known: dict[int, str] = {}
        self.lines: list[str] = []
        self.names: set[str] = set()

    def count(self, roots: Iterable[Tensor]) -> None:
        todo = list(roots)[::-1]
        while todo:
            tensor = todo.pop()
            self.axes = _merged(self.axes, tensor.axes)
            self.uses[id(tensor)] = self.uses.get(id(tensor), 0) + 1
            if self.uses[id(tensor)] > 1:
                continue
            if tensor.declaration:
                if self.inputs.setdefault(tensor.name, tensor) is not tensor:
                    raise SundogError(f"there are two inputs named {tensor.name}")
                self.names.add(tensor.name)
            todo += tensor.operands[::-1]

    def fresh(self, wanted: str) -> str:
        name, number = wanted or "t0", 0
        while name in self.names or name in self.axes:
            number += 1
            name = f"{wanted or 't'}{number}"
        self.names.add(name)
        return name

    def text(self, root: Tensor) -> str:
        """The text of a term; what it needs is defined first. Without recursion: chains may be long."""
        todo = [(root, False)]
        while todo:
            tensor, ready = todo.pop()
            if id(tensor) in self.known:
                continue
            if not ready:
                todo.append((tensor, True))
                todo += [(operand, False) for operand in tensor.operands]
                continue
            if tensor.declaration:
                self.known[id(tensor)] = tensor.name
                continue
            text = tensor.form.format(*[self.known[id(operand)] for operand in tensor.operands])
            indexed = tensor.name != "" or tensor.form == "{0}"
            if tensor.operands and (self.uses[id(tensor)] > 1 or indexed or len(text) > 400):
                name = self.fresh(tensor.name)
                self.lines.append(f"  {name}[{', '.join(tensor.axes)}] = {text}")
                text = name
            self.known[id(tensor)] = text
        return self.known[id(root)]


def program_text(*outputs: Tensor, name: str = "tensor_program", **named: Tensor) -> str:
    """The text of the program with these outputs, called y, y1, ... or as the keywords say."""
    results: dict[str, Tensor] = {}
    for number, tensor in enumerate(outputs):
        results[tensor.name if tensor.name and not tensor.declaration else f"y{number or ''}"] = tensor
    results.update(named)
    if not results:
        raise SundogError("a program needs an output")
    writer = _Writer()
    roots: dict[str, tuple[Tensor, str]] = {}
    for key, tensor in results.items():
        while tensor.name and tensor.form == "{0}":
            tensor = tensor.operands[0]  # the name is the output's
        dtype = ""
        if tensor.dtype and not tensor.declaration:
            dtype, tensor = tensor.dtype, tensor.operands[0]
        roots[key] = (tensor, dtype)
    writer.count(t for t, _ in roots.values())
    default = next((t.dtype for t in writer.inputs.values()), "f32")
    writer.names |= set(roots)
    body = [(key, t, writer.text(t), dtype or default) for key, (t, dtype) in roots.items()]
    axes = ", ".join(f"{axis} = {extent}" for axis, extent in writer.axes.items())
    lines = [f"program {name}({axes}) {{"]
    lines += [f"  input {t.name}: {t.declaration}" for t in writer.inputs.values()]
    lines += writer.lines
    lines += [f"  output {key}: {dtype}[{', '.join(t.axes)}] = {text}" for key, t, text, dtype in body]
    return "\n".join([*lines, "}", ""])
