"""`torch.compile(model, backend="sundog", options={...})`, by the official contract of backends.

The graph that Dynamo has captured goes through AOTAutograd, which makes it functional (in-place operators,
views and aliases are its business), and comes here as aten operators. Options are those of sundog.optimize, and

    against     what a fused subgraph has to beat on a GPU: "eager", "max-autotune" or None (measure.py)
    cuts        whether to look for the fastest cuts of what has a kernel (True; cuts.py)
    on          where kernels run without a GPU: "auto", "emulator", "eager"
    max_rows    matrix products of more rows are left to the library (64)
    fullgraph   refuse what cannot be fused entirely
    keep_unfused  keep kernels for which no fusion was found, instead of PyTorch's
    report      a sundog.torch.Report to write into
"""

from __future__ import annotations

import logging
from typing import Any, Callable, Sequence

import torch
from torch._decomp import core_aten_decompositions
from torch._dynamo.backends.common import aot_autograd

from sundog.torch.compiler import Compiler, contains_symbols
from sundog.torch.lowering import OPERATORS
from sundog.torch.operators import replace_in

log = logging.getLogger("sundog")

MAX_SIZES = 8  # of symbolic dimensions, each compiled apart


def decompositions() -> dict[Any, Callable[..., Any]]:
    """What is taken apart: everything that PyTorch can, except what has a form of its own here."""
    table = dict(core_aten_decompositions())
    for target in OPERATORS:
        table.pop(target, None)
    return table


def _boxed(module: torch.fx.GraphModule) -> Any:
    from functorch.compile import make_boxed_func

    return make_boxed_func(module.forward)


def _compiled(module: torch.fx.GraphModule, example_inputs: Sequence[Any], options: dict[str, Any]) -> Any:
    """Through AOTAutograd; the backward pass, if there is one, stays PyTorch's."""

    def forward(graph: torch.fx.GraphModule, _: Any) -> Any:
        return _boxed(Compiler(graph, options).run())

    def backward(graph: torch.fx.GraphModule, _: Any) -> Any:
        return _boxed(graph)

    compiler = aot_autograd(fw_compiler=forward, bw_compiler=backward, decompositions=decompositions())
    return compiler(module, example_inputs)


class BySize:
    """A graph with symbolic sizes: compiled for each size that comes, up to MAX_SIZES, and run by PyTorch
    beyond."""

    def __init__(self, module: torch.fx.GraphModule, options: dict[str, Any]) -> None:
        self.module, self.options = module, options
        self.compiled: dict[Any, Any] = {}
        self.warned = False

    def __call__(self, *args: Any) -> Any:
        key = tuple(tuple(a.shape) if isinstance(a, torch.Tensor) else a for a in args)
        if key not in self.compiled:
            if len(self.compiled) >= MAX_SIZES:
                if not self.warned:
                    log.warning("sundog: more than %d sizes of a symbolic dimension; others run by PyTorch", MAX_SIZES)
                    self.warned = True
                return self.module(*args)
            self.compiled[key] = self._for(args)
        return self.compiled[key](*args)

    def _for(self, args: Sequence[Any]) -> Any:
        # Traced anew with numbers in place of the symbols.
        with torch._guards.tracing(None), torch._dynamo.config.patch(assume_static_by_default=True):
            return _compiled(_with_numbers(self.module, args), args, self.options)


def _with_numbers(module: torch.fx.GraphModule, args: Sequence[Any]) -> torch.fx.GraphModule:
    """A copy whose symbolic inputs are the numbers given; what was computed of them is of no use any more."""
    graph = torch.fx.Graph()
    env: dict[Any, Any] = {}
    placeholders = iter(args)
    for node in module.graph.nodes:
        if node.op == "placeholder":
            value = next(placeholders)
            made = graph.placeholder(node.name)
            env[node] = value if isinstance(value, int) else made
            continue
        copy = graph.node_copy(node, lambda n: env[n]) if node.op != "output" else None
        if copy is None:
            graph.output(torch.fx.map_arg(node.args[0], lambda n: env[n]))
        else:
            copy.meta = {}
            env[node] = copy
    return torch.fx.GraphModule(module, graph)


def sundog_backend(
    module: torch.fx.GraphModule, example_inputs: Sequence[Any], options: dict[str, Any] | None = None, **more: Any
) -> Callable[..., Any]:
    settings = {**(options or {}), **more}
    module = replace_in(module)
    if contains_symbols(example_inputs):
        log.warning("sundog: symbolic sizes are compiled for each size that comes, up to %d", MAX_SIZES)
        return BySize(module, settings)
    return _compiled(module, example_inputs, settings)
