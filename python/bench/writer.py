"""Writes a tensor program as a PyTorch function, the way a careful user would.

    text = torch_text(program)                   # library operators where there are any: matmul, softmax, norms
    text = torch_text(program, attention=True)   # attention as scaled_dot_product_attention, if there is one
    text = torch_text(program, exact=True)       # every term by itself in float64: the reference

The text defines compute(...) over the inputs in order, and gives a tuple of the outputs. 16-bit tensors stay 16-bit
between operators; sums that are no products accumulate, and stay, in float32.
"""

from __future__ import annotations

import dataclasses
import math
from typing import Optional, Sequence

from terms import HALF, RELATIONS, Norm, Program, Softmax

TYPES = {
    "f16": "torch.float16", "bf16": "torch.bfloat16", "f32": "torch.float32", "f64": "torch.float64",
    "f8e4m3": "torch.float8_e4m3fn", "f8e5m2": "torch.float8_e5m2", "i8": "torch.int8",
}  # fmt: skip
UNARY = {
    "exp": "torch.exp({})", "log": "torch.log({})", "sqrt": "torch.sqrt({})", "rsqrt": "torch.rsqrt({})",
    "square": "torch.square({})", "abs": "torch.abs({})", "relu": "F.relu({})", "sigmoid": "torch.sigmoid({})",
    "silu": "F.silu({})", "softplus": "F.softplus({})", "tanh": "torch.tanh({})", "erf": "torch.erf({})",
    "sin": "torch.sin({})", "cos": "torch.cos({})", "gelu": "F.gelu({})", "neg": "-{}",
    "gelu_tanh": "F.gelu({}, approximate='tanh')",
}  # fmt: skip
BINARY = {"add": "{} + {}", "sub": "{} - {}", "mul": "{} * {}", "div": "{} / {}"}


@dataclasses.dataclass(frozen=True)
class Value:
    """A tensor of the text: its name, the axis of each dimension, its type; or a number, without axes or type."""

    name: str
    axes: tuple[int, ...] = ()
    dtype: Optional[str] = None

    @property
    def is_number(self) -> bool:
        return self.dtype is None


def literal(number: float) -> str:
    if math.isinf(number):
        return "-math.inf" if number < 0 else "math.inf"
    return repr(number)


def wider(types: Sequence[Optional[str]]) -> str:
    """What PyTorch promotes to."""
    found = [t for t in types if t is not None]
    for wide in ("f64", "f32"):
        if wide in found:
            return wide
    return found[0] if len(set(found)) == 1 else "f32"


class Writer:
    def __init__(self, program: Program, attention: bool, exact: bool) -> None:
        self.program, self.attention, self.exact = program, attention, exact
        self.lines: list[str] = []
        self.values: dict[int, Value] = {}
        self.softmaxes: dict[Softmax, Value] = {}
        self.aranges: dict[int, str] = {}
        self.count = 0
        self.used_attention = False
        self.products: list[str] = []  # operands of matrix products, two each
        halves = [i["dtype"] for i in program.inputs if i["dtype"] in HALF]
        self.half = halves[0] if halves else "f32"
        self.device = f"{self.input_name(0)}.device" if program.inputs else "None"

    # --- text ---

    def input_name(self, number: int) -> str:
        return "in_" + "".join(c if c.isalnum() else "_" for c in self.program.inputs[number]["name"])

    def define(self, expression: str, axes: Sequence[int], dtype: str) -> Value:
        name = f"t{self.count}"
        self.count += 1
        self.lines.append(f"{name} = {expression}")
        return Value(name, tuple(axes), dtype)

    def extent(self, axes: Sequence[int]) -> int:
        return math.prod(self.program.extents[a] for a in axes)

    def function(self, results: list[str]) -> str:
        arguments = ", ".join(self.input_name(i) for i in range(len(self.program.inputs)))
        body = "".join(f"    {line}\n" for line in self.lines)
        return f"def compute({arguments}):\n{body}    return ({', '.join(results)},)\n"

    def whole(self) -> str:
        return self.function([self.output(o) for o in self.program.outputs])

    def output(self, output: dict) -> str:
        value, axes, shape = self.value(output["value"]), [], []
        for dim, extent in zip(output["dims"], output["extents"]):
            # Factors of one dimension, outer to inner.
            axes += [axis for axis, _ in sorted(dim["axes"], key=lambda item: -item[1])]
            shape.append(extent)
        text = self.aligned(value, axes)
        if value.is_number:
            text = f"torch.full(({self.dims(axes)}), {text}, device={self.device})"
        missing = set(axes) - set(value.axes)
        if missing and not value.is_number:
            text = f"{text}.expand({self.dims(axes)})"
        if len(axes) != len(shape):
            text = f"({text}).reshape({', '.join(map(str, shape))})"
        target = "f64" if self.exact else output["dtype"]
        return text if value.dtype == target else f"({text}).to({TYPES[target]})"

    def dims(self, axes: Sequence[int]) -> str:
        return "".join(f"{self.program.extents[a]}, " for a in axes)

    def permuted(self, value: Value, axes: Sequence[int]) -> str:
        """The tensor with its dimensions in another order."""
        if tuple(axes) == value.axes:
            return value.name
        order = [value.axes.index(a) for a in axes]
        if len(order) == 2:
            return f"{value.name}.mT"
        return f"{value.name}.permute({', '.join(map(str, order))})"

    def aligned(self, value: Value, axes: Sequence[int]) -> str:
        """The value in a form that broadcasts against a tensor of these axes."""
        if value.is_number or not value.axes:
            return value.name
        own = [a for a in axes if a in value.axes]
        text = self.permuted(value, own)
        first = list(axes).index(own[0])
        if list(axes[first:]) == own:
            return text
        return text + "[" + ", ".join(":" if a in value.axes else "None" for a in axes[first:]) + "]"

    def joined_axes(self, values: Sequence[Value]) -> list[int]:
        """Axes of an elementwise result: those of the largest operand, the others in front."""
        widest = max(values, key=lambda v: len(v.axes))
        front: list[int] = []
        for v in values:
            front += [a for a in v.axes if a not in widest.axes and a not in front]
        return front + list(widest.axes)

    def elementwise(self, form: str, values: Sequence[Value], dtype: Optional[str] = None) -> Value:
        axes = self.joined_axes(values)
        text = form.format(*(self.aligned(v, axes) for v in values))
        return self.define(text, axes, dtype or wider([v.dtype for v in values]))

    # --- indices ---

    def arange(self, axis: int) -> str:
        if axis not in self.aranges:
            text = f"torch.arange({self.program.extents[axis]}, device={self.device})"
            self.aranges[axis] = self.define(text, (axis,), "i8").name
        return self.aranges[axis]

    def index(self, expr: dict, axes: Sequence[int]) -> str:
        """An index expression as a tensor of integers that broadcasts over the axes."""
        parts = []
        for axis, coefficient in expr["axes"]:
            text = self.aligned(Value(self.arange(axis), (axis,), "i8"), axes)
            parts.append(text if coefficient == 1 else f"{coefficient} * {text}")
        if expr["constant"] or not parts:
            parts.append(str(expr["constant"]))
        return " + ".join(parts)

    def read(self, term: dict) -> Value:
        tensor = self.program.inputs[term["tensor"]]
        name, dtype, index = self.input_name(term["tensor"]), tensor["dtype"], term["index"]
        if self.exact:
            name, dtype = f"{name}.double()", "f64"
        elif dtype not in ("f16", "bf16", "f32", "f64"):
            name, dtype = f"{name}.to(torch.float16)", "f16"
        plain = [i["axes"][0][0] for i in index if len(i["axes"]) == 1 and i["axes"][0][1] == 1]
        if len(plain) == len(index) and len(set(plain)) == len(plain):
            slices = self.slices(index, tensor["extents"])
            if slices is not None:
                text = name + slices
                return Value(text, tuple(plain), dtype) if text.isidentifier() else self.define(text, plain, dtype)
        split = self.unflattened(index, tensor["extents"])
        if split is not None:
            return self.define(f"{name}.reshape({self.dims(split)})", split, dtype)
        return self.gathered(name, dtype, index, tensor["extents"])

    def slices(self, index: list[dict], extents: list[int]) -> Optional[str]:
        """Where each index is an axis and a constant: the part that is read, if it is all inside."""
        texts = []
        for i, extent in zip(index, extents):
            first, count = i["constant"], self.program.extents[i["axes"][0][0]]
            if first < 0 or first + count > extent:
                return None
            texts.append(":" if count == extent else f"{first}:{first + count}")
        return "" if all(t == ":" for t in texts) else "[" + ", ".join(texts) + "]"

    def unflattened(self, index: list[dict], extents: list[int]) -> Optional[list[int]]:
        """Where each index counts through the factors of its dimension: the factors, outer to inner."""
        found: list[int] = []
        for i, extent in zip(index, extents):
            items = sorted(i["axes"], key=lambda item: item[1])
            step = 1
            for axis, coefficient in items:
                if coefficient != step or i["constant"]:
                    return None
                step *= self.program.extents[axis]
            if step != extent:
                return None
            found += [axis for axis, _ in reversed(items)]
        return found if len(set(found)) == len(found) else None

    def gathered(self, name: str, dtype: str, index: list[dict], extents: list[int]) -> Value:
        axes = sorted({axis for i in index for axis, _ in i["axes"]})
        # An index outside belongs to the branch of a select that is not taken.
        texts = []
        for i, extent in zip(index, extents):
            text = self.index(i, axes)
            texts.append(f"({text}).clamp(0, {extent - 1})" if i["axes"] else text)
        value = self.define(f"{name}[{', '.join(texts)}]", axes, dtype)
        return value

    # --- terms ---

    def value(self, term: int) -> Value:
        if term not in self.values:
            self.values[term] = self.make(term)
        return self.values[term]

    def make(self, term: int) -> Value:
        number = self.program.number(term)
        if number is not None:
            return Value(literal(number))
        t = self.program.terms[term]
        kind = t["kind"]
        if kind == "input":
            return self.read(t)
        if kind == "apply":
            return self.apply(term, t)
        if kind == "sum":
            return self.sum(t)
        if kind == "max":
            return self.maximum(t)
        if kind == "index":
            axes = sorted(a for a, _ in t["index"][0]["axes"])
            dtype = "f64" if self.exact else "f32"
            return self.define(f"({self.index(t['index'][0], axes)}).to({TYPES[dtype]})", axes, dtype)
        return self.choice(t)

    def apply(self, term: int, t: dict) -> Value:
        op = t["op"]
        if not self.exact:
            softmax = self.program.quotient_softmax(term)
            if softmax is not None:
                return self.softmax(softmax)
            product = self.weighted_mean(term)
            if product is not None:
                return product
            if op == "mul":
                found = self.program.take_norm(self.program.factors(term))
                if found is not None:
                    return self.multiplied([self.norm(found[0]), *self.parts(found[1])])
            if op == "add":
                biased = self.biased_norm(t["operands"])
                if biased is not None:
                    return biased
        values = [self.value(o) for o in t["operands"]]
        return self.operator(op, t["attributes"], values)

    def operator(self, op: str, attributes: list[str], values: list[Value]) -> Value:
        if op == "cast":
            return self.cast(attributes[0], values[0])
        if op == "pow":
            return self.elementwise(f"torch.pow({{}}, {attributes[0]})", values)
        if op == "clamp":
            low, high = (literal(float(a)) for a in attributes)
            return self.elementwise(f"torch.clamp({{}}, {low}, {high})", values)
        if op in ("max", "min"):
            numbers = [v for v in values if v.is_number]
            if numbers:
                tensor = next(v for v in values if not v.is_number)
                side = "min" if op == "max" else "max"
                return self.elementwise(f"torch.clamp({{}}, {side}={numbers[0].name})", [tensor])
            return self.elementwise(f"torch.{op}imum({{}}, {{}})", values)
        return self.elementwise(BINARY[op] if op in BINARY else UNARY[op], values)

    def cast(self, dtype: str, value: Value) -> Value:
        if dtype == "i8":  # saturates, ties to even; the integer as a number
            return self.elementwise("torch.clamp(torch.round({}), -128, 127)", [value])
        if self.exact or value.is_number or value.dtype == dtype:
            return value
        return self.elementwise(f"{{}}.to({TYPES[dtype]})", [value], dtype)

    def choice(self, t: dict) -> Value:
        relation = RELATIONS[t["relation"]]
        if t["kind"] == "select":
            condition_axes = sorted(a for a, _ in t["index"][0]["axes"])
            text = f"({self.index(t['index'][0], condition_axes)}) {relation} 0"
            condition = self.define(text, condition_axes, "i8")
            branches = [self.value(o) for o in t["operands"]]
        else:
            left, right, *rest = (self.value(o) for o in t["operands"])
            condition = self.elementwise(f"{{}} {relation} {{}}", [left, right], "i8")
            branches = rest
        dtype = wider([b.dtype for b in branches if not b.is_number] or ["f64" if self.exact else "f32"])
        if all(b.is_number for b in branches):
            text = f"torch.full((), {branches[0].name}, dtype={TYPES[dtype]}, device={self.device})"
            branches[0] = self.define(text, (), dtype)
        return self.elementwise("torch.where({}, {}, {})", [condition, *branches], dtype)

    # --- norms and softmax ---

    def norm(self, norm: Norm) -> Value:
        value = self.value(norm.term)
        axes = [a for a in value.axes if a != norm.axis] + [norm.axis]
        weight = ""
        if norm.weight is not None:
            w = self.value(norm.weight)
            weight = f", weight={w.name if w.dtype == value.dtype else f'{w.name}.to({TYPES[str(value.dtype)]})'}"
        function = "F.rms_norm" if norm.kind == "rms" else "F.layer_norm"
        extent = self.program.extents[norm.axis]
        text = f"{function}({self.permuted(value, axes)}, ({extent},){weight}, eps={norm.epsilon!r})"
        return self.define(text, axes, str(value.dtype))

    def biased_norm(self, operands: list[int]) -> Optional[Value]:
        """layer_norm(x) * weight + bias, in one call."""
        for scaled, bias in (operands, operands[::-1]):
            found = self.program.take_norm(self.program.factors(scaled))
            if found is None or found[1] or found[0].kind != "layer" or found[0].weight is None:
                continue
            if self.program.free_axes(bias) != {found[0].axis}:
                continue
            x, b = self.value(found[0].term), self.value(bias)
            if x.dtype != b.dtype:
                continue
            value = self.norm(found[0])
            self.lines[-1] = self.lines[-1].replace(", eps=", f", bias={b.name}, eps=")
            return value
        return None

    def softmax(self, softmax: Softmax) -> Value:
        if softmax not in self.softmaxes:
            scores = self.value(softmax.scores)
            dim = scores.axes.index(softmax.axis) - len(scores.axes)
            text = f"F.softmax({scores.name}, dim={dim})"
            self.softmaxes[softmax] = self.define(text, scores.axes, str(scores.dtype))
        return self.softmaxes[softmax]

    def weighted_mean(self, term: int) -> Optional[Value]:
        """sum[k](p * v) / sum[k](p) with p an exponential: a product with the softmax."""
        if not self.program.is_op(term, "div"):
            return None
        above, below = self.program.terms[term]["operands"]
        t = self.program.terms[above]
        if t["kind"] != "sum":
            return None
        factors = self.program.factors(t["operands"][0])
        for factor in factors:
            softmax = self.program.softmax_of(factor, below)
            if softmax is not None and t["axes"] == [softmax.axis]:
                rest = list(factors)
                rest.remove(factor)
                return self.attend(softmax, rest)
        return None

    # --- sums ---

    def sum(self, t: dict) -> Value:
        reduced = list(t["axes"])
        squared = self.program.squared(t["operands"][0])
        if squared is not None:
            return self.contracted([self.elementwise("torch.square({})", [self.value(squared)])], reduced)
        factors = self.program.factors(t["operands"][0])
        if self.exact:
            return self.contracted([self.value(f) for f in factors], reduced)
        if len(reduced) == 1:
            for factor in factors:
                softmax = self.program.quotient_softmax(factor)
                if softmax is not None and softmax.axis == reduced[0]:
                    rest = list(factors)
                    rest.remove(factor)
                    return self.attend(softmax, rest)
        return self.contracted(self.parts(factors), reduced)

    def parts(self, factors: list[int]) -> list[Value]:
        """The values of factors, norms among them as such."""
        found = self.program.take_norm(factors)
        if found is None:
            return [self.value(f) for f in factors]
        return [self.norm(found[0]), *self.parts(found[1])]

    def joined(self, factors: list[int]) -> Optional[Value]:
        """Their product, if one of them has the axes of all."""
        if not factors or any(self.program.number(f) is not None for f in factors):
            return None
        merged = self.merged(self.parts(factors))
        return merged[0] if len(merged) == 1 else None

    def attend(self, softmax: Softmax, others: list[int]) -> Value:
        if self.attention:
            from attention import scaled_dot_product

            found = scaled_dot_product(self, softmax, others)
            if found is not None:
                self.used_attention = True
                return found
        return self.contracted([self.softmax(softmax), *self.parts(others)], [softmax.axis])

    def multiplied(self, values: list[Value]) -> Value:
        result = values[0]
        for value in values[1:]:
            result = self.elementwise("{} * {}", [result, value])
        return result

    def contracted(self, values: list[Value], reduced: list[int]) -> Value:
        """The sum over `reduced` of a product."""
        numbers = [v for v in values if v.is_number]
        tensors = [v for v in values if not v.is_number]
        held = {a for v in tensors for a in v.axes}
        repeats = self.extent([a for a in reduced if a not in held])  # a sum over what nothing varies along
        if repeats != 1:
            numbers.append(Value(repr(float(repeats))))
        reduced = [a for a in reduced if a in held]
        if not tensors:
            return Value(literal(math.prod(float(n.name) for n in numbers)))
        parts = self.merged(tensors)
        if not reduced:
            result = self.multiplied(parts)
        elif len(parts) == 1:
            result = self.reduce_one(parts[0], reduced)
        elif len(parts) == 2:
            result = self.product(parts[0], parts[1], reduced)
        else:
            result = self.einsum(parts, reduced)
        return self.multiplied([result, *numbers])

    def merged(self, tensors: list[Value]) -> list[Value]:
        """Multiplies each factor whose axes another has into the smallest such, where that costs least."""
        parts = list(tensors)
        while True:
            pairs = [
                (self.extent(b.axes), i, j)
                for i, a in enumerate(parts) for j, b in enumerate(parts)
                if i != j and set(a.axes) <= set(b.axes)
            ]  # fmt: skip
            if not pairs:
                return parts
            _, small, large = min(pairs)
            first, second = sorted((small, large))
            product = self.multiplied([parts[first], parts[second]])
            parts = [product if n == first else p for n, p in enumerate(parts) if n != second]

    def reduce_one(self, value: Value, reduced: list[int]) -> Value:
        dims = ", ".join(str(value.axes.index(a) - len(value.axes)) for a in reduced)
        dtype = "f64" if self.exact else "f32"
        extra = "" if value.dtype == dtype else f", dtype={TYPES[dtype]}"
        kept = [a for a in value.axes if a not in reduced]
        return self.define(f"torch.sum({value.name}, dim=({dims},){extra})", kept, dtype)

    def maximum(self, t: dict) -> Value:
        value = self.value(t["operands"][0])
        if value.is_number:
            return value
        reduced = [a for a in t["axes"] if a in value.axes]
        if not reduced:
            return value
        dims = ", ".join(str(value.axes.index(a) - len(value.axes)) for a in reduced)
        kept = [a for a in value.axes if a not in reduced]
        return self.define(f"torch.amax({value.name}, dim=({dims},))", kept, str(value.dtype))

    # --- products ---

    def operand(self, value: Value) -> Value:
        """In the type that products are computed in: 16 bits where the program has any."""
        wanted = "f64" if self.exact else value.dtype if value.dtype in HALF else self.half
        if value.dtype == wanted:
            return value
        return self.elementwise(f"{{}}.to({TYPES[str(wanted)]})", [value], wanted)

    def operands(self, values: list[Value]) -> list[Value]:
        """Of one product, all of one type."""
        values = [self.operand(v) for v in values]
        if len({v.dtype for v in values}) == 1:
            return values
        return [self.elementwise("{}.to(torch.float32)", [v], "f32") for v in values]

    def product(self, a: Value, b: Value, reduced: list[int]) -> Value:
        for one, other in ((a, b), (b, a)):
            private = [x for x in reduced if x in one.axes and x not in other.axes]
            if private:
                rest = [x for x in reduced if x not in private]
                summed = self.reduce_one(one, private)
                parts = [summed, b] if one is a else [a, summed]
                return self.contracted(parts, rest)
        a, b = self.operands([a, b])
        inner = [x for x in a.axes if x in reduced]
        batch = [x for x in a.axes if x in b.axes and x not in reduced]
        rows = [x for x in a.axes if x not in inner and x not in batch]
        columns = [x for x in b.axes if x not in inner and x not in batch]
        left = self.matrix(a, [batch, rows, inner])
        right = self.matrix(b, [batch, inner, columns])
        axes = batch + rows + columns
        self.products += [left, right]
        text = f"torch.matmul({left}, {right})"
        groups = ([batch] if batch else []) + [rows, columns]
        if any(len(g) != 1 for g in groups):
            text += f".reshape({self.dims(axes)})"
        return self.define(text, axes, str(a.dtype))

    def matrix(self, value: Value, groups: list[list[int]]) -> str:
        """The tensor as a matrix, or a batch of them: each group of axes one dimension, that of a batch if there is one."""
        groups = groups if groups[0] else groups[1:]
        text = self.permuted(value, [a for g in groups for a in g])
        if any(len(g) != 1 for g in groups):
            text += f".reshape({', '.join(str(self.extent(g)) for g in groups)})"
        return text

    def einsum(self, parts: list[Value], reduced: list[int]) -> Value:
        parts = self.operands(parts)
        letters = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ"
        axes = [a for a in self.joined_axes(parts) if a not in reduced]
        used = sorted({a for p in parts for a in p.axes})
        spell = lambda which: "".join(letters[used.index(a)] for a in which)  # noqa: E731
        form = ",".join(spell(p.axes) for p in parts) + "->" + spell(axes)
        return self.define(f"torch.einsum('{form}', {', '.join(p.name for p in parts)})", axes, str(parts[0].dtype))


def torch_text(program: Program, attention: bool = False, exact: bool = False) -> Optional[str]:
    """The text; nothing if attention is asked for and there is none."""
    writer = Writer(program, attention, exact)
    text = writer.whole()
    return None if attention and not writer.used_attention else text


def product_text(program: Program) -> Optional[str]:
    """A function that gives the operands of all matrix products, two each, as one tuple; nothing without products."""
    writer = Writer(program, attention=False, exact=False)
    writer.whole()
    return writer.function(writer.products) if writer.products else None
