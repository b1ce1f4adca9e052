"""Sundog for PyTorch.

    fused = sundog.torch.optimize(f, example_inputs)     # a callable for tensors of those shapes
    model = torch.compile(model, backend="sundog", options={"budget": "30s"})
"""

from __future__ import annotations

import logging
from typing import Any, Callable, Sequence

import torch
import torch._dynamo
from torch.compiler import is_compiling

from sundog._library import SundogError
from sundog.kernel import Kernel, SavedKernel
from sundog.torch import norms as _norms  # noqa: F401  what it lowers is known from here on
from sundog.torch.backend import decompositions, sundog_backend
from sundog.torch.compiler import Compiler, Report
from sundog.torch.operators import KeepAttention
from sundog.torch.programs import alignment
from sundog.torch.runtime import Expected, FusedKernel

log = logging.getLogger("sundog")

if "sundog" not in torch._dynamo.list_backends(exclude_tags=()):  # installed, it is found by its entry point
    torch._dynamo.register_backend(name="sundog")(sundog_backend)


class Optimized:
    """A function compiled for the shapes, strides, types and devices of its examples.

    `kernels` are its fused subgraphs, `report` says what was fused and what not and why. What does not fit
    raises one error that says how."""

    def __init__(self, module: torch.fx.GraphModule, report: Report, examples: Sequence[Any], spec: Any) -> None:
        self._module, self._spec = module, spec
        self.report = report
        self._expected = [Expected(f"argument {i}", t) if isinstance(t, torch.Tensor) else t for i, t in enumerate(examples)]
        self._direct = self._single_kernel()
        for kernel in self.kernels:
            kernel.register()

    @property
    def kernels(self) -> list[FusedKernel]:
        return [each.kernel for each in self.report.fused]

    @property
    def kernel(self) -> Kernel | SavedKernel:
        """The kernel of a function that is a single one."""
        if len(self.kernels) != 1:
            raise SundogError(f"the function became {len(self.kernels)} kernels", "look at .report and .kernels")
        return self.kernels[0].kernel

    def _single_kernel(self) -> FusedKernel | None:
        """Where the whole function is one kernel with its arguments in order, calls go to it directly: it
        checks them itself."""
        nodes = list(self._module.graph.nodes)
        calls = [n for n in nodes if n.op == "call_function"]
        inputs = [n for n in nodes if n.op == "placeholder"]
        output = nodes[-1].args[0]
        if len(calls) != 1 or not isinstance(calls[0].target, FusedKernel) or list(calls[0].args) != inputs:
            return None
        alone = output if not isinstance(output, (tuple, list)) else (output[0] if len(output) == 1 else None)
        return calls[0].target if alone is calls[0] and self._spec is None else None

    def __call__(self, *args: Any) -> Any:
        direct = self._direct
        if direct is not None:
            return direct.op(*args) if is_compiling() else direct.run(*args)
        flat, _ = torch.utils._pytree.tree_flatten(args)
        if len(flat) != len(self._expected):
            raise SundogError(f"this function takes {len(self._expected)} arguments and got {len(flat)}")
        for expected, value in zip(self._expected, flat):
            if isinstance(expected, Expected):
                if complaint := expected.complaint(value):
                    raise SundogError(complaint)
            elif value != expected:
                raise SundogError(f"an argument is {value!r}; this function was compiled for {expected!r}")
        results = self._module(*[v for v in flat if isinstance(v, torch.Tensor)])
        return results if self._spec is None else torch.utils._pytree.tree_unflatten(list(results), self._spec)

    def __repr__(self) -> str:
        return f"<sundog.torch.Optimized: {self.report}>"


def optimize(function: Callable[..., Any], example_inputs: Sequence[Any], **options: Any) -> Optimized:
    """Fuses a function or module for tensors like the examples; options as those of the backend, but that kernels
    are what was asked for: they are timed against PyTorch's (`against="eager"`), and cut where that is faster, only if
    that is asked for too.

    Parameters of a module are those that it has now. Inference only: nothing is differentiated. A function
    that changes its arguments in place is refused by name."""
    module, spec, flat = _traced(function, tuple(example_inputs))
    against = options.get("against")
    compiler = Compiler(module, {"cuts": against is not None, **options, "against": against})
    return Optimized(compiler.run(), compiler.report, flat, spec)


def _traced(function: Callable[..., Any], examples: tuple[Any, ...]) -> tuple[torch.fx.GraphModule, Any, list[Any]]:
    """The function as a graph of aten operators on the tensors among its flat arguments."""
    from torch.fx.experimental.proxy_tensor import make_fx
    from torch.func import functionalize

    flat, in_spec = torch.utils._pytree.tree_flatten(examples)
    tensors = [v for v in flat if isinstance(v, torch.Tensor)]
    out_spec: list[Any] = []

    def flattened(*values: torch.Tensor) -> Any:
        supply = iter(values)
        full = [next(supply) if isinstance(v, torch.Tensor) else v for v in flat]
        result = function(*torch.utils._pytree.tree_unflatten(full, in_spec))
        if isinstance(result, torch.Tensor):
            out_spec[:] = [None]
            return result
        results, spec = torch.utils._pytree.tree_flatten(result)
        out_spec[:] = [spec]
        return results

    with torch.no_grad(), KeepAttention():
        module = make_fx(
            functionalize(flattened, remove="mutations"), decomposition_table=decompositions(), tracing_mode="fake",
            _allow_non_fake_inputs=True,
        )(*tensors)  # fmt: skip
    module.graph.eliminate_dead_code()
    _refuse_mutation(module)
    placeholders = [n for n in module.graph.nodes if n.op == "placeholder"]
    for node, value in zip(placeholders, tensors):
        node.meta["sundog_align"] = alignment(value)
    for node in module.graph.nodes:
        if node.op == "get_attr":
            value = getattr(module, node.target)
            node.meta["val"] = value.detach() if isinstance(value, torch.Tensor) else value
            if isinstance(value, torch.nn.Parameter):
                delattr(module, node.target)
                module.register_buffer(node.target, value.detach())
    return module, out_spec[0], flat


def _refuse_mutation(module: torch.fx.GraphModule) -> None:
    for node in module.graph.nodes:
        if node.op == "call_function" and node.target is torch.ops.aten.copy_.default:
            target = node.args[0]
            raise SundogError(
                f"the function changes {target.name.removesuffix('_1')} in place, by {node.args[1].name}",
                "return the new value instead, or use torch.compile(backend=\"sundog\"), which puts it back",
                "unsupported",
            )


__all__ = ["FusedKernel", "Optimized", "Report", "optimize", "sundog_backend"]
