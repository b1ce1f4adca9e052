"""The call of a kernel on a GPU, as a function that is written for it.

A launch takes the driver about four microseconds, so what surrounds it must be little: no loop over arguments, no
lookup by name, one call into libsundog with one argument. The text below is made for each kernel with its number of
tensors; what it compares and passes stands in its globals. Everything out of the ordinary (an input that is elsewhere,
in another memory order, of another type) is left to `otherwise`, which copies or complains.

    def call(*tensors):
        try:
            x0, x1 = tensors
            if x0.dtype is dtype0 and x0.shape == shape0 and x0.get_device() == device and x0.stride() == stride0 and ...:
                a0 = x0.data_ptr()
                a1 = x1.data_ptr()
                if not (a0 & mask0 or a1 & mask1):
                    y0 = empty(out_shape0, out_stride0, out_dtype0)
                    if launch(pack(kernel, 0, stream_of(device), errors.address, a0, a1, y0.data_ptr())):
                        errors.throw()
                    return y0
        except (AttributeError, ValueError):
            pass
        return otherwise(*tensors)
"""

from __future__ import annotations

import struct
from typing import Any, Callable

import torch

from sundog import _library


def _empty(device: int) -> Callable[..., torch.Tensor]:
    """What allocates a tensor of given shape, strides and type: where PyTorch has it the shorter way that its own
    compiled code takes, which goes to the current GPU."""
    short = getattr(torch._C._dynamo.guards, "_empty_strided_cpu" if device < 0 else "_empty_strided_cuda", None)
    place = torch.device("cpu") if device < 0 else torch.device("cuda", device)

    def long(shape: Any, stride: Any, dtype: Any) -> torch.Tensor:
        return torch.empty_strided(shape, stride, dtype=dtype, device=place)

    if short is None:
        return long
    if device < 0 or torch.cuda.device_count() == 1:
        return short
    current = torch._C._cuda_getDevice
    return lambda shape, stride, dtype: (short if current() == device else long)(shape, stride, dtype)


def source(inputs: int, outputs: int, workspace: bool, where: str) -> str:
    """The text of a call with so many tensors; `where` is how a tensor is asked for its device."""
    xs, ys = [f"x{i}" for i in range(inputs)], [f"y{i}" for i in range(outputs)]
    checks = [
        f"x{i}.dtype is dtype{i} and x{i}.shape == shape{i} and x{i}.{where} == device and x{i}.stride() == stride{i}"
        for i in range(inputs)
    ]
    masks = [f"a{i} & mask{i}" for i in range(inputs)]
    addresses = [f"a{i}" for i in range(inputs)] + [f"{y}.data_ptr()" for y in ys]
    lines = ["def call(*tensors):", "    try:"]
    lines.append(f"        [{', '.join(xs)}] = tensors")
    lines.append(f"        if {' and '.join(checks) or 'True'}:")
    lines += [f"            a{i} = x{i}.data_ptr()" for i in range(inputs)]
    lines.append(f"            if not ({' or '.join(masks) or 'False'}):")
    inner = ["stream = stream_of(device)"]
    if workspace:
        inner.append("scratch = workspace(stream)")
    inner += [f"y{i} = empty(out_shape{i}, out_stride{i}, out_dtype{i})" for i in range(outputs)]
    scratch = "scratch.data_ptr()" if workspace else "0"
    inner.append(f"if launch(pack(kernel, {scratch}, stream, errors.address, {', '.join(addresses)})):")
    inner += ["    errors.throw()", "return " + (ys[0] if outputs == 1 else f"({', '.join(ys)})")]
    lines += ["                " + line for line in inner]
    lines += ["    except (AttributeError, ValueError):  # no tensors, or another number of them", "        pass"]
    lines.append("    return otherwise(*tensors)")
    return "\n".join(lines) + "\n"


def made(
    inputs: list[Any], outputs: list[Any], loaded: Any, *, otherwise: Callable[..., Any],
    workspace: Callable[[int], Any] | None, device: int,
) -> Callable[..., Any]:  # fmt: skip
    """The call of a loaded kernel. `inputs` and `outputs` are runtime.Expected; `workspace(stream)` gives a tensor;
    `device` is -1 for the emulator."""
    names: dict[str, Any] = {
        "otherwise": otherwise, "device": device if device >= 0 else torch.device("cpu"), "workspace": workspace, "kernel": loaded.address,
        "launch": loaded.launch_packed,
        "errors": _library.launch_errors, "pack": struct.Struct(f"{4 + len(inputs) + len(outputs)}P").pack,
        "empty": _empty(device), "stream_of": (lambda _: 0) if device < 0 else torch._C._cuda_getCurrentRawStream,
    }  # fmt: skip
    for i, e in enumerate(inputs):
        names.update({f"dtype{i}": e.dtype, f"shape{i}": e.shape, f"stride{i}": e.stride, f"mask{i}": e.align - 1})
    for i, e in enumerate(outputs):
        names.update({f"out_dtype{i}": e.dtype, f"out_shape{i}": e.shape, f"out_stride{i}": e.stride})
    # get_device() is the quicker one, but -1 is what tensors without memory answer too.
    where = "get_device()" if device >= 0 else "device"
    text = source(len(inputs), len(outputs), workspace is not None, where)
    exec(compile(text, "<sundog call>", "exec"), names)
    return names["call"]
