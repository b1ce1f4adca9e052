"""Norms and normalizations as aten has them, in the operators of a TensorGraph (sundog.torch.lowering)."""

from __future__ import annotations

import math
from typing import Any, Sequence

from sundog.torch import lowering
from sundog.torch.lowering import REDUCTIONS, Builder, Ref, Unsupported, dims_of, lowers


@lowers("native_layer_norm", into=REDUCTIONS)
def layer_norm(b: Builder, x: Ref, shape: Sequence[int], weight: Any, bias: Any, eps: float) -> tuple[Ref, ...]:
    dims = list(range(len(x.shape) - len(shape), len(x.shape)))
    mean = lowering.mean(b, x, dims, True)
    centred = b.elementwise("sub", x, mean)
    variance = lowering.mean(b, b.elementwise("mul", centred, centred), dims, True)
    scale = b.elementwise("rsqrt", b.elementwise("add", variance, eps))
    result = b.elementwise("mul", centred, scale)
    result = result if weight is None else b.elementwise("mul", result, weight)
    return (result if bias is None else b.elementwise("add", result, bias), mean, scale)


@lowers("native_group_norm", into=REDUCTIONS)
def group_norm(b: Builder, x: Ref, weight: Any, bias: Any, n: int, c: int, rest: int, groups: int, eps: float) -> tuple[Ref, ...]:
    parts = b.reshape(x, [n, groups, c // groups, rest])
    mean = lowering.mean(b, parts, [2, 3], True)
    centred = b.elementwise("sub", parts, mean)
    variance = lowering.mean(b, b.elementwise("mul", centred, centred), [2, 3], True)
    scale = b.elementwise("rsqrt", b.elementwise("add", variance, eps))
    result = b.reshape(b.elementwise("mul", centred, scale), x.shape)
    column = [c] + [1] * (len(x.shape) - 2)
    result = result if weight is None else b.elementwise("mul", result, b.reshape(weight, column))
    result = result if bias is None else b.elementwise("add", result, b.reshape(bias, column))
    return (result, b.reshape(mean, [n, groups]), b.reshape(scale, [n, groups]))


@lowers("linalg_vector_norm", into=REDUCTIONS)
def vector_norm(b: Builder, x: Ref, order: Any = 2, dims: Any = None, keepdim: bool = False, dtype: Any = None) -> Ref:
    chosen = dims_of(dims, len(x.shape))
    if order == 2:
        return b.elementwise("sqrt", b.reduce("sum", b.elementwise("mul", x, x), chosen, keepdim))
    size = b.elementwise("abs", x)
    if order == 1:
        return b.reduce("sum", size, chosen, keepdim)
    if order == math.inf:
        return b.reduce("reduce_max", size, chosen, keepdim)
    raise Unsupported(f"the norm of order {order}")


@lowers("_fused_rms_norm", into=REDUCTIONS)
def rms_norm(b: Builder, x: Ref, shape: Sequence[int], weight: Any, eps: float | None = None) -> tuple[Ref, ...]:
    dims = list(range(len(x.shape) - len(shape), len(x.shape)))
    if eps is None:
        raise Unsupported("rms_norm with the eps of its type")
    scale = b.elementwise("rsqrt", b.elementwise("add", lowering.mean(b, b.elementwise("mul", x, x), dims, True), eps))
    result = b.elementwise("mul", x, scale)
    return (result if weight is None else b.elementwise("mul", result, weight), scale)
