"""What PyTorch rounds between two operators.

Every operator leaves its result in memory in the result's type. A cast in the program says so: it licenses the
rounding, of an operand of a product in 16 bits for example, which tensor cores take, and costs nothing where
programs are not run with `rounding="eager"`.
"""

from __future__ import annotations

import operator
from typing import Any

import torch

from sundog.torch.lowering import COPIES, DTYPES, JOINS, VIEWS, Builder, Ref

NARROW = {torch.float16, torch.bfloat16}


def as_stored(b: Builder, node: Any, value: Any) -> Any:
    """The value of a node as it lies in memory behind the operator; itself where nothing is rounded."""
    source = node.args[0] if node.target is operator.getitem else node
    stored = node.meta.get("val")
    if source.target in VIEWS | COPIES | JOINS or not isinstance(value, Ref) or value.condition:
        return value
    if not isinstance(stored, torch.Tensor) or stored.dtype not in NARROW:
        return value
    return b.elementwise("cast", value, text=DTYPES[stored.dtype])
