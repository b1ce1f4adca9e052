"""A compiled subgraph as a callable on torch tensors.

On a GPU a call checks what it is given, allocates the outputs with PyTorch's allocator, and enqueues the
launches into the current stream: it never waits, so a CUDA graph may capture it. On the CPU it runs in the
emulator, or leaves the work to PyTorch.
"""

from __future__ import annotations

import ctypes
import functools
import hashlib
import itertools
import logging
import threading
from typing import Any, Callable, Sequence

import torch
from torch import empty_strided
from torch.compiler import is_compiling

from sundog import _library
from sundog._library import SundogError
from sundog.kernel import Kernel, SavedKernel
from sundog.torch import direct_call

log = logging.getLogger("sundog")

# Multiplications that the emulator does in about a second.
EMULATED_WORK = 2e6
ALIGNMENT = 16

_lock = threading.Lock()
_numbers = itertools.count()


@functools.lru_cache(maxsize=None)
def _operators() -> torch.library.Library:
    """Where kernels are registered; what is in it lives as long as it does."""
    return torch.library.Library("sundog", "FRAGMENT")


class Expected:
    """What a tensor must be: shape, strides, type, device."""

    def __init__(self, name: str, tensor: torch.Tensor, align: int = ALIGNMENT) -> None:
        self.name = name
        self.shape, self.stride = tuple(tensor.shape), tuple(tensor.stride())
        self.dtype, self.device = tensor.dtype, tensor.device
        self.align = align

    def complaint(self, value: Any) -> str | None:
        if not isinstance(value, torch.Tensor):
            return f"{self.name} is {type(value).__name__}, not a tensor"
        if value.dtype != self.dtype:
            return f"{self.name} has the type {value.dtype}; this kernel was compiled for {self.dtype}"
        if tuple(value.shape) != self.shape:
            return f"{self.name} has the shape {tuple(value.shape)}; this kernel was compiled for {self.shape}"
        if value.device != self.device:
            return f"{self.name} is on {value.device}; this kernel was compiled for {self.device}"
        return None


def _same_memory_order(shape: tuple[int, ...], a: Sequence[int], b: Sequence[int]) -> bool:
    return all(x == y for e, x, y in zip(shape, a, b) if e > 1)


class FusedKernel:
    """Callable: tensors in the order of the program's inputs, to one tensor or a tuple of them.

    `fallback` computes the same by PyTorch; it is what runs on the CPU where the emulator would be slow."""

    def __init__(
        self, kernel: Kernel | SavedKernel, inputs: Sequence[Expected], outputs: Sequence[Expected],
        fallback: Callable[..., Any] | None = None, on: str = "auto",
    ) -> None:  # fmt: skip
        self.kernel = kernel
        self.__name__ = self.__qualname__ = f"fused_{kernel.name}"  # what graphs print
        self.inputs, self.outputs = list(inputs), list(outputs)
        self.fallback = fallback
        self.device = self.outputs[0].device
        self.workspace_bytes = self.zeroed_bytes = 0
        self._workspaces: dict[int, torch.Tensor] = {}  # by stream, where launches leave something in them
        self.on = self._where(on)
        self._op: Any = None
        self._single = len(self.outputs) == 1
        self._input_array = ctypes.c_void_p * max(len(self.inputs), 1)
        self._output_array = ctypes.c_void_p * len(self.outputs)
        self.run: Callable[..., Any] = self._in_general
        if self.on in ("gpu", "emulator"):
            self._prepare()

    def _where(self, on: str) -> str:
        if self.device.type == "cuda":
            return "gpu"
        if self.device.type != "cpu":
            return "eager"
        if on == "auto":
            small = isinstance(self.kernel, Kernel) and self.kernel.program.work <= EMULATED_WORK
            return "emulator" if small or self.fallback is None else "eager"
        return on

    def _prepare(self) -> None:
        if self.on == "gpu":
            torch.cuda.init()
            self._index = self.device.index if self.device.index is not None else torch.cuda.current_device()
        if isinstance(self.kernel, SavedKernel):
            self._loaded: Any = self.kernel
        elif self.on == "emulator":
            self._loaded = self.kernel.load(_library.EMULATOR)
        else:
            self._loaded = self.kernel.load(self._index)
        self.workspace_bytes = self._loaded.workspace_bytes
        self.zeroed_bytes = self._loaded.zeroed_bytes
        if isinstance(self.kernel, Kernel):
            workspace = self._workspace if self.workspace_bytes and self.on == "gpu" else None
            self.run = direct_call.made(
                self.inputs, self.outputs, self._loaded, otherwise=self._in_general, workspace=workspace,
                device=self._index if self.on == "gpu" else -1,
            )  # fmt: skip

    # Calling --------------------------------------------------------------------------------------

    def __call__(self, *tensors: torch.Tensor) -> Any:
        if is_compiling():
            return self.op(*tensors)
        return self.run(*tensors)

    def _in_general(self, *tensors: torch.Tensor) -> Any:
        """A call whatever it is given: what is in another memory order is copied, what does not fit is refused."""
        if len(tensors) != len(self.inputs):
            raise SundogError(f"{self.name} takes {len(self.inputs)} tensors and got {len(tensors)}")
        for expected, value in zip(self.inputs, tensors):
            if complaint := expected.complaint(value):
                raise SundogError(complaint)
        if self.on == "eager":
            assert self.fallback is not None
            return self.fallback(*tensors)
        # Copies live until the launches are enqueued.
        ordered = [self._in_order(e, value) for e, value in zip(self.inputs, tensors)]
        results = self._empty()
        inputs = self._input_array(*[value.data_ptr() for value in ordered])
        outputs = self._output_array(*[r.data_ptr() for r in results])
        if self.on == "emulator":
            self._loaded.launch(inputs, outputs)
        else:
            stream = torch._C._cuda_getCurrentRawStream(self._index)
            scratch = self._workspace(stream) if self.workspace_bytes else None
            with torch.cuda.device(self._index):  # a saved kernel is launched on the current one
                self._loaded.launch(inputs, outputs, 0 if scratch is None else scratch.data_ptr(), stream)
        return results[0] if self._single else tuple(results)

    def _in_order(self, expected: Expected, value: torch.Tensor) -> torch.Tensor:
        """The tensor as the kernel reads it: itself where its strides differ in extents of one alone."""
        same = _same_memory_order(expected.shape, value.stride(), expected.stride)
        return value if same and value.data_ptr() % expected.align == 0 else self._copied(expected, value)

    def _workspace(self, stream: int) -> torch.Tensor:
        """Memory between the kernels. Where some of it has to be 0, a stream keeps its own: launches leave it so."""
        if not self.zeroed_bytes:
            return torch.empty(self.workspace_bytes, dtype=torch.uint8, device=self.device)
        if torch._C._cuda_getDevice() != self._index:
            with torch.cuda.device(self._index):  # where the stream is that may be capturing
                return self._workspace(stream)
        if torch.cuda.is_current_stream_capturing():  # memory of the graph, cleared whenever it runs
            return torch.zeros(self.workspace_bytes, dtype=torch.uint8, device=self.device)
        if stream not in self._workspaces:
            self._workspaces[stream] = torch.zeros(self.workspace_bytes, dtype=torch.uint8, device=self.device)
        return self._workspaces[stream]

    def _copied(self, expected: Expected, value: torch.Tensor) -> torch.Tensor:
        """The same values in the memory order that the kernel reads."""
        copy = torch.empty_strided(expected.shape, expected.stride, dtype=expected.dtype, device=expected.device)
        if any(s == 0 and e > 1 for s, e in zip(expected.stride, expected.shape)):
            raise SundogError(
                f"{expected.name} has the strides {tuple(value.stride())}; this kernel was compiled for {expected.stride}"
            )
        copy.copy_(value)
        log.info("%s: %s is copied into the memory order that the kernel was compiled for", self.name, expected.name)
        return copy

    # As an operator of PyTorch --------------------------------------------------------------------

    @property
    def name(self) -> str:
        return self.kernel.name

    def _empty(self) -> list[torch.Tensor]:
        return [empty_strided(e.shape, e.stride, dtype=e.dtype, device=e.device) for e in self.outputs]

    @property
    def op(self) -> Any:
        """The kernel as a custom operator `sundog::...`, with a fake kernel, for torch.compile and
        torch.export. It mutates nothing."""
        if self._op is None:
            self.register()
        return self._op

    def register(self) -> None:
        """Makes the operator now; tracing cannot."""
        with _lock:
            if self._op is None:
                self._op = self._register()

    def _register(self) -> Any:
        source = self.kernel.cuda_source.encode()
        digest = hashlib.sha256(source).hexdigest()[:10]
        name = f"{self.name}_{digest}_{next(_numbers)}"
        arguments = ", ".join(f"Tensor x{i}" for i in range(len(self.inputs)))
        result = "Tensor" if self._single else "(" + ", ".join(["Tensor"] * len(self.outputs)) + ")"
        # Not by torch.library.custom_op, which wraps each call in Python that takes longer than the launch.
        library = _operators()
        library.define(f"{name}({arguments}) -> {result}", tags=(torch.Tag.pt2_compliant_tag,))
        for key in ("CPU", "CUDA"):
            library.impl(name, self.run, key)

        def fake(*tensors: Any) -> Any:
            for expected, value in zip(self.inputs, tensors):
                if tuple(value.shape) != expected.shape or value.dtype != expected.dtype:
                    raise SundogError(expected.complaint(value) or "another shape")
            made = [
                tensors[0].new_empty_strided(e.shape, e.stride, dtype=e.dtype, device=e.device)
                if tensors
                else torch.empty_strided(e.shape, e.stride, dtype=e.dtype, device=e.device)
                for e in self.outputs
            ]
            return made[0] if self._single else tuple(made)

        torch.library.register_fake(f"sundog::{name}", fake, lib=library)
        return getattr(torch.ops.sundog, name).default

    def __repr__(self) -> str:
        return f"<sundog.torch.FusedKernel {self.name} on {self.on}: {self.kernel!r}>"
