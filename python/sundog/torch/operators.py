"""`sundog::attention`: scaled_dot_product_attention kept in one piece while a function is traced.

Tracing would take it apart, or choose one of PyTorch's own kernels; in one piece a subgraph can take it in,
and where none does it runs as it would have.
"""

from __future__ import annotations

from typing import Any, Optional

import torch
import torch.nn.functional as F
from torch.overrides import TorchFunctionMode

from sundog.torch import lowering

_original = F.scaled_dot_product_attention


@torch.library.custom_op("sundog::attention", mutates_args=())
def attention(
    q: torch.Tensor, k: torch.Tensor, v: torch.Tensor, mask: Optional[torch.Tensor], causal: bool,
    scale: Optional[float], gqa: bool,
) -> torch.Tensor:  # fmt: skip
    result = _original(q, k, v, attn_mask=mask, is_causal=causal, scale=scale, enable_gqa=gqa)
    return result.clone() if result._is_view() else result


@attention.register_fake
def _(q: Any, k: Any, v: Any, mask: Any, causal: bool, scale: Any, gqa: bool) -> Any:
    # What the kernels of PyTorch give for their usual inputs: rows of all heads side by side.
    if q.dim() == 4:
        shape = (q.shape[0], q.shape[2], q.shape[1], v.shape[-1])
        return q.new_empty(shape).transpose(1, 2)
    return q.new_empty((*q.shape[:-1], v.shape[-1]))


def _like_fake(result: torch.Tensor, q: torch.Tensor) -> torch.Tensor:
    if q.dim() != 4:
        return result.contiguous()
    return result.transpose(1, 2).contiguous().transpose(1, 2)


@attention.register_kernel("cpu")
@attention.register_kernel("cuda")
def _run(q: Any, k: Any, v: Any, mask: Any, causal: bool, scale: Any, gqa: bool) -> Any:
    result = _original(q, k, v, attn_mask=mask, is_causal=causal, scale=scale, enable_gqa=gqa)
    return _like_fake(result, q)


TARGET = torch.ops.sundog.attention.default
lowering.OPERATORS[TARGET] = lowering.attention
lowering.HEAVY.add(TARGET)


def replacement(q: Any, k: Any, v: Any, attn_mask: Any = None, dropout_p: float = 0.0, is_causal: bool = False, *,
                scale: Any = None, enable_gqa: bool = False) -> Any:  # fmt: skip
    """scaled_dot_product_attention, in one piece where it can be."""
    differentiable = torch.is_grad_enabled() and any(
        isinstance(t, torch.Tensor) and t.requires_grad for t in (q, k, v, attn_mask)
    )
    if dropout_p != 0.0 or differentiable:
        return _original(q, k, v, attn_mask, dropout_p, is_causal, scale=scale, enable_gqa=enable_gqa)
    return torch.ops.sundog.attention(q, k, v, attn_mask, is_causal, scale, enable_gqa)


class KeepAttention(TorchFunctionMode):
    """While it is on, attention stays in one piece."""

    def __torch_function__(self, function: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        if function is _original:
            return replacement(*args, **(kwargs or {}))
        return function(*args, **(kwargs or {}))


def replace_in(module: torch.fx.GraphModule) -> torch.fx.GraphModule:
    """The same in a graph that Dynamo has captured, where nothing of it is to be differentiated."""
    copied = torch.fx.GraphModule(module, torch.fx.Graph())
    graph = copied.graph = torch.fx.Graph()
    results: dict[Any, Any] = {}
    graph.output(graph.graph_copy(module.graph, results))
    for node in list(graph.nodes):
        if node.op == "call_function" and node.target is _original:
            node.target = replacement
    copied.recompile()
    return copied
