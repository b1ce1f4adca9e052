"""Sundog: a superoptimizer for tensor programs.

    import sundog as sd

    x = sd.input("x", n=16, h=1024, dtype="f16")
    w = sd.input("w", h=1024, d=256, dtype="f16")
    y = sd.sum(x * sd.rsqrt(sd.mean(x * x, "h") + 1e-6) * w, "h")
    kernel = sd.optimize(y, target="h200", budget="10s")
    print(kernel.explain())
    print(kernel.cuda_source)

`sundog.torch` takes PyTorch functions and modules, and is the backend "sundog" of torch.compile.
"""

from __future__ import annotations

import os
import pathlib
from typing import Any

from sundog._library import SundogError, machine, version
from sundog.expr import (
    Condition, Index, Tensor, abs, apply, clamp, constant, cos, erf, exp, gelu, gelu_tanh, index, input, log,
    logsumexp, matmul, max, maximum, mean, min, minimum, position, program_text, relu, rsqrt, sigmoid, silu, sin, softmax,
    softplus, sqrt, square, sum, tanh, var, where,
)  # fmt: skip
from sundog.kernel import Kernel, SavedKernel
from sundog.optimizer import cache_folder, optimize
from sundog.program import Program, TensorSpec, load_program

__version__ = "0.1.0"


def program(*outputs: Tensor, name: str = "tensor_program", **named: Tensor) -> Program:
    """The program with these outputs."""
    return Program.parse(program_text(*outputs, name=name, **named))


def load(path: str | os.PathLike[str], **parameters: Any) -> Program | Kernel | SavedKernel:
    """What a file holds: a Program (`.sd`, `.onnx`), a Kernel (a folder or `result.pb` that `sundog optimize`
    wrote; a `.mu` beside its program), or a saved kernel (`.so`). Keywords replace parameters of a program."""
    place = pathlib.Path(path)
    if place.is_dir():
        place = place / "result.pb"
    try:
        if place.suffix == ".sd":
            return load_program(place, parameters)
        if place.suffix == ".so":
            return SavedKernel(place)
        if place.suffix == ".pb":
            return Kernel.from_bytes(place.read_bytes())
        if place.suffix == ".onnx":
            return Program.load_onnx(place, **parameters)
        if place.suffix == ".mu":
            return _load_mugraph(place, parameters)
    except OSError as error:
        raise SundogError(f"{path} cannot be read: {error.strerror or error}", code="io") from None
    raise SundogError(f"{path} is no file that Sundog reads", "it reads .sd, .mu, .onnx, .pb, .so and folders of results")


def _load_mugraph(place: pathlib.Path, parameters: dict[str, Any]) -> Kernel:
    """A µGraph text, verified and emitted for its program: the file its first line names, or program.sd or
    NAME.sd beside it."""
    text = place.read_text(encoding="utf-8")
    target = parameters.pop("target", "h200")
    first = text.split("\n", 1)[0]
    candidates = [place.with_name("program.sd")]
    if first.startswith("# program:"):
        named, *values = first.removeprefix("# program:").split()
        candidates.insert(0, place.parent / named)
        for name, value in (pair.split("=") for pair in values):
            parameters.setdefault(name, int(value))
    words = text[text.index("ugraph") :].split() if "ugraph" in text else []
    if len(words) > 3:
        candidates.insert(1, place.with_name(words[3].rstrip("{") + ".sd"))
    for candidate in candidates:
        if candidate.is_file():
            found = load_program(candidate, parameters)
            return found.optimize(mugraph=text, no_search=True, no_gpu=True, target=target)
    raise SundogError(f"the program of {place} was not found", "its first line may name it: # program: FILE.sd")
