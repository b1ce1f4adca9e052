"""The ways to compute a program that are measured side by side.

    sundog         the kernels of a result, as a library that codegen/shared_object.h made
    triton         compute(*inputs) of the file that the job names
    eager          the program as PyTorch operators (writer.py)
    sdpa           the same with scaled_dot_product_attention, where there is attention
    compile, autotune            torch.compile of eager, by default and with mode max-autotune
    compile_sdpa, autotune_sdpa  the same of sdpa
    cublas         the matrix products of eager alone, on operands that are there already: a part of the work
"""

from __future__ import annotations

import ctypes
import math
import runpy
from typing import Any, Callable, Optional

import torch

import writer
from terms import Program

PARTS = ("cublas",)
TYPES = {name: eval(text) for name, text in writer.TYPES.items()}


class NotRun(Exception):
    """Why a method does not apply."""


class Tensors:
    """Copies of the inputs: buffers as kernels get them, and the tensors in them."""

    def __init__(self, program: Program, device: str, seed: int) -> None:
        self.program, self.device = program, device
        generator = torch.Generator(device=device).manual_seed(seed)
        self.buffers = [[self._drawn(i, generator) for i in program.inputs]]

    def _drawn(self, tensor: dict[str, Any], generator: torch.Generator) -> torch.Tensor:
        """Uniform in the declared range where there is one, else in [-1, 1]."""
        low, high = tensor["low"], tensor["high"]
        low = -1.0 if low is None and high is None else low if low is not None else high - 2
        high = 1.0 if high is None and tensor["low"] is None else high if high is not None else low + 2
        low, high = (max(-1e4, min(1e4, x)) for x in (low, high))
        values = torch.rand(max(tensor["elements"], 1), generator=generator, device=self.device) * (high - low) + low
        return (values.round() if tensor["dtype"] == "i8" else values).to(TYPES[tensor["dtype"]])

    def bytes(self) -> int:
        return sum(b.numel() * b.element_size() for b in self.buffers[0])

    def multiply(self, copies: int) -> None:
        while len(self.buffers) < copies:
            self.buffers.append([b.clone() for b in self.buffers[0]])

    def views(self, copy: int) -> list[torch.Tensor]:
        return [
            torch.as_strided(b, t["extents"], t["strides"], t["offset"])
            for b, t in zip(self.buffers[copy], self.program.inputs)
        ]


class Kernel:
    """A saved kernel on buffers of PyTorch, in its current stream."""

    def __init__(self, path: str, program: Program, tensors: Tensors) -> None:
        self.library = ctypes.CDLL(path)
        self.library.sundog_saved_workspace_bytes.restype = ctypes.c_int64
        self.library.sundog_saved_launch.argtypes = [ctypes.c_void_p] * 4
        size = self.library.sundog_saved_workspace_bytes()
        self.workspace = torch.zeros(max(size, 1), dtype=torch.uint8, device=tensors.device)
        self.program, self.tensors = program, tensors
        self.outputs = [self._poisoned(o) for o in program.outputs]
        self.output_array = self._array(self.outputs)
        self.input_arrays: dict[int, Any] = {}

    def _poisoned(self, output: dict[str, Any]) -> torch.Tensor:
        count, device = max(output["elements"], 1), self.tensors.device
        if output["dtype"] == "i8":
            return torch.full((count,), -1, dtype=torch.int8, device=device)
        return torch.full((count,), math.nan, device=device).to(TYPES[output["dtype"]])

    @staticmethod
    def _array(buffers: list[torch.Tensor]) -> Any:
        return (ctypes.c_void_p * max(len(buffers), 1))(*(b.data_ptr() for b in buffers))

    def __call__(self, copy: int) -> list[torch.Tensor]:
        if copy not in self.input_arrays:
            self.input_arrays[copy] = self._array(self.tensors.buffers[copy])
        stream, workspace = torch.cuda.current_stream().cuda_stream, self.workspace.data_ptr()
        code = self.library.sundog_saved_launch(self.input_arrays[copy], self.output_array, workspace, stream)
        if code != 0:
            raise RuntimeError(f"the launch failed with code {code} of the CUDA driver")
        return [
            torch.as_strided(b, o["extents"], o["strides"], o["offset"])
            for b, o in zip(self.outputs, self.program.outputs)
        ]


def function_of(text: str, name: str = "compute") -> Callable[..., Any]:
    scope: dict[str, Any] = {"torch": torch, "F": torch.nn.functional, "math": math}
    exec(compile(text, "<program>", "exec"), scope)
    return scope[name]


class Methods:
    """Makes the calls of one program, and the float64 reference."""

    def __init__(self, row: dict[str, Any], device: str, seed: int) -> None:
        self.row, self.device = row, device
        self.program = Program(row["program"])
        self.tensors = Tensors(self.program, device, seed)
        self.texts = {
            "eager": writer.torch_text(self.program),
            "sdpa": writer.torch_text(self.program, attention=True),
        }

    def reference(self) -> list[torch.Tensor]:
        text = writer.torch_text(self.program, exact=True)
        assert text is not None
        with torch.no_grad():
            return list(function_of(text)(*self.tensors.views(0)))

    def text(self, name: str) -> str:
        text = self.texts[name]
        if text is None:
            raise NotRun("no attention in it")
        return text

    def of_function(self, function: Callable[..., Any]) -> Callable[[int], Any]:
        return lambda copy: function(*self.tensors.views(copy))

    def compiled(self, text: str, mode: Optional[str]) -> Callable[[int], Any]:
        if mode is not None and self.device == "cpu":
            raise NotRun("no GPU to tune for")
        torch._dynamo.reset()
        return self.of_function(torch.compile(function_of(text), mode=mode, dynamic=False, fullgraph=True))

    def make(self, name: str) -> Callable[[int], Any]:
        """The call of a method. Raises NotRun where it does not apply."""
        if name == "sundog":
            if not self.row.get("kernel"):
                raise NotRun(self.row.get("kernel_note") or "no kernel")
            return Kernel(self.row["kernel"], self.program, self.tensors)
        if name == "triton":
            return self.triton()
        if name in ("eager", "sdpa"):
            return self.of_function(function_of(self.text(name)))
        if name == "cublas":
            return self.products()
        mode = "max-autotune-no-cudagraphs" if name.startswith("autotune") else None
        return self.compiled(self.text("sdpa" if name.endswith("_sdpa") else "eager"), mode)

    def triton(self) -> Callable[[int], Any]:
        path = self.row.get("triton")
        if not path:
            raise NotRun("no Triton kernel beside the program")
        if self.device == "cpu":
            raise NotRun("no GPU")
        compute = runpy.run_path(path)["compute"]
        return self.of_function(lambda *inputs: _tuple(compute(*inputs)))

    def products(self) -> Callable[[int], Any]:
        text = writer.product_text(self.program)
        if text is None:
            raise NotRun("no matrix product in it")
        operands = function_of(text)
        of_copy = [operands(*self.tensors.views(copy)) for copy in range(len(self.tensors.buffers))]
        return lambda copy: [torch.matmul(a, b) for a, b in zip(of_copy[copy][::2], of_copy[copy][1::2])]


def _tuple(value: Any) -> Any:
    return tuple(value) if isinstance(value, (tuple, list)) else (value,)


def relative_error(outputs: list[torch.Tensor], expected: list[torch.Tensor]) -> float:
    """max |x - reference| over max |reference| of the row, the worst of all outputs; inf where one is no number."""
    worst = 0.0
    for got, want in zip(outputs, expected, strict=True):
        got, want = got.double().reshape(want.shape), want
        if not want.numel():
            continue
        same = got == want  # infinities that agree
        scale = torch.where(want.isfinite(), want.abs(), 0.0)
        scale = scale.amax(-1, keepdim=True) if want.dim() else scale
        error = torch.where(same, 0.0, (got - want).abs() / scale)
        worst = max(worst, torch.nan_to_num(error, nan=math.inf, posinf=math.inf).max().item())
    return worst
