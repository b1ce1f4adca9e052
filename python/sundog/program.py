"""Tensor programs: read from text, files or Python, evaluated in float64, optimized."""

from __future__ import annotations

import os
import pathlib
from typing import TYPE_CHECKING, Any, Mapping, NamedTuple

from sundog import _library, _wire
from sundog._library import SundogError, checked, library, made, taken

if TYPE_CHECKING:
    from sundog.kernel import Kernel


class TensorSpec(NamedTuple):
    """An input or output as a program declares it; strides and offset count elements."""

    name: str
    dtype: str
    shape: tuple[int, ...]
    strides: tuple[int, ...]
    offset: int = 0

    @property
    def span(self) -> int:
        """Elements that must exist from the pointer on."""
        if 0 in self.shape:
            return 0
        return 1 + self.offset + sum((e - 1) * s for e, s in zip(self.shape, self.strides))


def row_major(shape: tuple[int, ...]) -> tuple[int, ...]:
    strides, step = [], 1
    for extent in reversed(shape):
        strides.append(step)
        step *= max(extent, 1)
    return tuple(reversed(strides))


def spec_of(tensor: Any) -> TensorSpec:
    """Of a message `Tensor`."""
    shape = tuple(tensor.extents)
    strides = tuple(tensor.strides) or row_major(shape)
    return TensorSpec(tensor.name, tensor.dtype, shape, strides, tensor.offset)


class Program:
    """A tensor program. `Program.parse(text)`, `sundog.load("a.sd")` and `sundog.program(y)` make one."""

    def __init__(self, handle: _library.Handle) -> None:
        self._handle = handle
        self._message = _wire.decode("Program", taken(library().program_message, handle.pointer))
        self.name: str = self._message.name
        self.inputs = [spec_of(t) for t in self._message.inputs]
        self.outputs = [spec_of(o.tensor) for o in self._message.outputs]
        self.axes: dict[str, int] = {a.name: a.extent for a in self._message.axes}

    @classmethod
    def parse(cls, text: str, file: str = "program", **parameters: int) -> Program:
        """Reads program text; keywords replace the values of its parameters."""
        data = text.encode()
        return cls(
            made("program", library().program_parse, data, len(data), file.encode(), *_library.defines(parameters))
        )

    @classmethod
    def from_bytes(cls, data: bytes) -> Program:
        """Reads the stored form, a message `Program`."""
        return cls(made("program", library().program_from_message, data, len(data)))

    @classmethod
    def from_onnx(cls, data: bytes, **dimensions: int) -> Program:
        """Reads an ONNX model; keywords give its named dimensions their values. One with weights in files beside it
        is read by its path: `sundog.load("model.onnx")`."""
        return cls(made("program", library().program_from_onnx, data, len(data), *_library.defines(dimensions)))

    @classmethod
    def load_onnx(cls, path: str | os.PathLike[str], **dimensions: int) -> Program:
        """The same from a file."""
        return cls(made("program", library().program_load_onnx, os.fsencode(path), *_library.defines(dimensions)))

    def to_bytes(self) -> bytes:
        return taken(library().program_message, self._handle.pointer)

    @property
    def text(self) -> str:
        return taken(library().program_text, self._handle.pointer).decode()

    @property
    def work(self) -> float:
        """Multiplications, more or less."""
        return library().program_work(self._handle.pointer)

    def bound_us(self, target: str = "h200") -> float:
        """Microseconds below which no kernel of it is predicted: a launch, and what has to pass through memory."""
        us = _library.c_double()
        checked(library().program_bound, self._handle.pointer, target.encode(), _library.byref(us))
        return us.value

    def __str__(self) -> str:
        return self.text

    def __repr__(self) -> str:
        sizes = ", ".join(f"{name}={extent}" for name, extent in self.axes.items())
        return f"<sundog.Program {self.name}({sizes})>"

    def arguments(self, arrays: tuple[Any, ...], named: Mapping[str, Any]) -> list[Any]:
        """The inputs in order, from positions and names."""
        names = [spec.name for spec in self.inputs]
        if len(arrays) > len(names):
            raise SundogError(f"{self.name} has {len(names)} inputs and got {len(arrays)}")
        given = dict(zip(names, arrays))
        for name, array in named.items():
            if name not in names:
                raise SundogError(f"{self.name} has no input {name}", f"its inputs are {', '.join(names)}")
            if name in given:
                raise SundogError(f"{self.name} got two values for {name}")
            given[name] = array
        missing = [name for name in names if name not in given]
        if missing:
            raise SundogError(f"{self.name} lacks {', '.join(missing)}")
        return [given[name] for name in names]

    def evaluate(self, *arrays: Any, eager_rounding: bool = False, **named: Any) -> Any:
        """The program itself in float64, on numpy arrays: what kernels are compared with. One array, or a
        tuple where there are several outputs."""
        import numpy as np

        inputs = []
        for spec, array in zip(self.inputs, self.arguments(arrays, named)):
            array = np.ascontiguousarray(array, dtype=np.float64)
            if array.shape != spec.shape:
                raise SundogError(f"{spec.name} has the shape {array.shape}, not {spec.shape}")
            inputs.append(array)
        outputs = [np.empty(spec.shape, np.float64) for spec in self.outputs]
        addresses = [_library.pointers([a.ctypes.data for a in group]) for group in (inputs, outputs)]
        checked(library().program_evaluate, self._handle.pointer, *addresses, int(eager_rounding))
        return outputs[0] if len(outputs) == 1 else tuple(outputs)

    def verify(self, mugraph: str, **options: Any) -> Any:
        """Whether a µGraph, as text, computes the same: a message `Verdict`."""
        data, settings = mugraph.encode(), _wire.message("OptimizeOptions", **options).to_bytes()
        answer = taken(library().verify, self._handle.pointer, data, len(data), settings, len(settings))
        return _wire.decode("Verdict", answer)

    def optimize(self, **options: Any) -> Kernel:
        """See sundog.optimize."""
        from sundog.optimizer import optimize

        return optimize(self, **options)


def load_program(path: pathlib.Path, parameters: dict[str, int]) -> Program:
    try:
        text = path.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise SundogError(f"{path} cannot be read: {error}", code="io") from None
    return Program.parse(text, str(path), **parameters)


class AnyArray:
    """How arrays of the types that numpy lacks are kept: as bits in an unsigned integer."""

    @staticmethod
    def to_memory(spec: TensorSpec, array: Any) -> Any:
        """The memory that a kernel reads for an array of the logical shape: strides, offset and all."""
        import numpy as np

        array = np.asarray(array)
        if array.shape != spec.shape:
            raise SundogError(f"{spec.name} has the shape {tuple(array.shape)}, not {spec.shape}")
        encoded = _encode(spec.dtype, array, spec.name)
        if spec.offset == 0 and spec.strides == row_major(spec.shape):
            return np.ascontiguousarray(encoded)
        memory = np.zeros(spec.span, encoded.dtype)
        view = np.lib.stride_tricks.as_strided(
            memory[spec.offset :], spec.shape, [s * encoded.itemsize for s in spec.strides]
        )
        view[...] = encoded
        return memory

    @staticmethod
    def empty(spec: TensorSpec) -> Any:
        import numpy as np

        return np.zeros(spec.span, _storage(spec.dtype))

    @staticmethod
    def from_memory(spec: TensorSpec, memory: Any) -> Any:
        import numpy as np

        view = np.lib.stride_tricks.as_strided(
            memory[spec.offset :], spec.shape, [s * memory.itemsize for s in spec.strides]
        )
        return _decode(spec.dtype, np.array(view))


def _storage(dtype: str) -> str:
    return {"f16": "f2", "f32": "f4", "f64": "f8", "bf16": "u2", "i8": "i1", "f8e4m3": "u1", "f8e5m2": "u1"}[dtype]


def _encode(dtype: str, array: Any, name: str) -> Any:
    import numpy as np

    if dtype in ("f16", "f32", "f64", "i8"):
        return array.astype(_storage(dtype), copy=False)
    if dtype == "bf16":
        if array.dtype == np.uint16:
            return array  # bits already
        bits = np.ascontiguousarray(array, np.float32).view(np.uint32)
        rounded = (bits + 0x7FFF + (bits >> 16 & 1)) >> 16
        return np.where(np.isnan(array), 0x7FC0, rounded).astype(np.uint16)
    if array.dtype == np.uint8:
        return array
    raise SundogError(f"{name} is {dtype}, which numpy lacks", "pass its bits as uint8, or torch tensors")


def _decode(dtype: str, array: Any) -> Any:
    import numpy as np

    if dtype == "bf16":
        return (array.astype(np.uint32) << 16).view(np.float32)
    return array
