"""softmax[k](scale * sum[e](Q * K) + bias) * V as one call of PyTorch's scaled_dot_product_attention.

Axes of Q that K lacks are rows of queries, axes that both have are a batch; so queries of several heads on one head
of keys become more rows, and no key is copied. What is added to the scores, and what masks them, is its mask.
"""

from __future__ import annotations

import dataclasses
from typing import TYPE_CHECKING, Optional

from terms import RELATIONS, Softmax

if TYPE_CHECKING:
    from writer import Value, Writer


@dataclasses.dataclass
class Scores:
    """scale * sum[inner](product of factors) + biases, minus infinity where a condition does not hold."""

    factors: list[int]
    inner: int
    scale: float = 1.0
    biases: list[int] = dataclasses.field(default_factory=list)
    select: Optional[dict] = None


def scores_of(program, term: int) -> Optional[Scores]:
    t = program.terms[term]
    if t["kind"] == "sum" and len(t["axes"]) == 1:
        return Scores(program.factors(t["operands"][0]), inner=t["axes"][0])
    if t["kind"] == "select":
        then, otherwise = t["operands"]
        found = scores_of(program, then) if program.number(otherwise) == float("-inf") else None
        if found is None or found.select is not None or found.biases:
            return None
        found.select = t
        return found
    if t["kind"] != "apply" or t["op"] not in ("mul", "div", "add"):
        return None
    sides = [tuple(t["operands"])]
    if t["op"] != "div":
        sides.append(sides[0][::-1])
    for inside, other in sides:
        found = scores_of(program, inside)
        if found is None:
            continue
        number = program.number(other)
        if t["op"] == "add":
            found.biases.append(other)
            return found
        if number is None or found.biases or found.select is not None:
            continue
        found.scale *= number if t["op"] == "mul" else 1 / number
        return found
    return None


def scaled_dot_product(writer: "Writer", softmax: Softmax, values: list[int]) -> Optional["Value"]:
    """The call, or nothing where the scores are not of this form."""
    program = writer.program
    scores = scores_of(program, softmax.scores)
    if scores is None:
        return None
    key = softmax.axis
    of_keys = [f for f in scores.factors if key in program.free_axes(f)]
    of_queries = [f for f in scores.factors if f not in of_keys]
    sides = [side for side in map(writer.joined, (of_queries, of_keys, values)) if side is not None]
    if len(sides) != 3:
        return None
    q_axes, k_axes, v_axes = (frozenset(side.axes) for side in sides)
    batch = sorted(q_axes & k_axes - {scores.inner})
    rows = sorted(q_axes - k_axes)
    outer = v_axes - {key} - set(batch)
    if key in q_axes or k_axes != {key, scores.inner, *batch} or len(outer) != 1 or not rows:
        return None
    if len(batch) > 2 or v_axes != {key, *batch, *outer}:
        return None
    if not program.free_axes(softmax.scores) <= {key, *batch, *rows}:
        return None
    q, k, v = writer.operands(sides)
    # Always four dimensions: some back ends take no others.
    lead = "1, " if len(batch) < 2 else ""
    head = writer.dims(batch) if batch else "1, "

    def shaped(value: "Value", axes: list[int], last: str) -> str:
        return f"{writer.permuted(value, axes)}.reshape({lead}{head}{last})"

    width = program.extents[scores.inner]
    arguments = [
        shaped(q, [*batch, *rows, scores.inner], f"{writer.extent(rows)}, {width}"),
        shaped(k, [*batch, key, scores.inner], f"{program.extents[key]}, {width}"),
        shaped(v, [*batch, key, *outer], f"{program.extents[key]}, {writer.extent(list(outer))}"),
        *mask(writer, scores, batch, rows, key, lead + head),
        f"scale={scores.scale!r}",
    ]
    axes = [*batch, *rows, *outer]
    text = f"F.scaled_dot_product_attention({', '.join(arguments)}).reshape({writer.dims(axes)})"
    return writer.define(text, axes, str(q.dtype))


def mask(writer: "Writer", scores: Scores, batch: list[int], rows: list[int], key: int, head: str) -> list[str]:
    """The arguments that stand for biases and a select."""
    program = writer.program
    if scores.select is not None and len(rows) == 1 and program.extents[rows[0]] == program.extents[key]:
        index, relation = scores.select["index"][0], scores.select["relation"]
        earlier = sorted(index["axes"]) == sorted([[key, 1], [rows[0], -1]]) and not index["constant"]
        if relation == "less_equal" and earlier:
            return ["is_causal=True"]
    if scores.select is not None:
        axes = sorted(a for a, _ in scores.select["index"][0]["axes"])
        text = f"({writer.index(scores.select['index'][0], axes)}) {RELATIONS[scores.select['relation']]} 0"
        held = writer.define(text, axes, "i8")
    elif scores.biases:
        held = writer.value(scores.biases[0])
        for bias in scores.biases[1:]:
            held = writer.elementwise("{} + {}", [held, writer.value(bias)])
        if held.is_number:
            return []
        held = writer.operand(held)
    else:
        return []
    axes = [*batch, *rows, key]
    shown = ", ".join(":" if a in held.axes else "None" for a in axes)
    text = f"{writer.permuted(held, [a for a in axes if a in held.axes])}[{shown}].expand({writer.dims(axes)})"
    return [f"attn_mask={text}.reshape({head}{writer.extent(rows)}, {program.extents[key]})"]
