"""What an optimization gives back: kernels with their evidence, to run, to look at and to ship."""

from __future__ import annotations

import functools
import html
import os
import pathlib
import tempfile
from typing import Any, Sequence

from sundog import _library, _wire
from sundog._library import SundogError, checked, library, made, taken
from sundog.program import AnyArray, Program, TensorSpec


class Loaded:
    """Kernels ready to run on one GPU, or in the emulator."""

    def __init__(self, result: _library.Handle, device: int) -> None:
        self._handle = made("kernel", library().kernel_new, result.pointer, device)
        self.device = device
        self.workspace_bytes: int = library().kernel_workspace_bytes(self._handle.pointer)
        self.zeroed_bytes: int = library().kernel_zeroed_bytes(self._handle.pointer)
        self._launch = library().kernel_launch
        self._pointer = self._handle.pointer
        # For calls that are written out for one kernel (sundog.torch.direct_call).
        self.address: int = self._handle.pointer.value or 0
        self.launch_packed = library().kernel_launch_packed

    def launch(self, inputs: Any, outputs: Any, workspace: int = 0, stream: int = 0) -> None:
        """Addresses, as ctypes arrays of void pointers, in the order of the program.

        The first `zeroed_bytes` of a workspace have to be 0 before its first use; every launch leaves them so."""
        error = _library.launch_errors
        if self._launch(self._pointer, inputs, outputs, workspace, stream, error.reference):
            error.throw()


class Kernel:
    """The best kernels found for a program.

    Called with numpy arrays it runs in the emulator on the CPU, which takes its time; with torch tensors
    see sundog.torch. `kernel.cuda_source` is the text to read, `kernel.save("k.so")` the file to ship,
    `kernel.explain()` the reasons."""

    def __init__(self, handle: _library.Handle) -> None:
        self._handle = handle
        self.result = _wire.decode("Result", taken(library().result_message, handle.pointer))
        self.program = Program.from_bytes(self.result.program.to_bytes())
        self._loaded: dict[int, Loaded] = {}

    @classmethod
    def from_bytes(cls, data: bytes) -> Kernel:
        """Reads the stored form, a message `Result` (result.pb)."""
        return cls(made("result", library().result_from_message, data, len(data)))

    def to_bytes(self) -> bytes:
        return taken(library().result_message, self._handle.pointer)

    # What it is -----------------------------------------------------------------------------------

    @property
    def name(self) -> str:
        return self.program.name

    @property
    def target(self) -> str:
        return self.result.target

    @property
    def inputs(self) -> list[TensorSpec]:
        return self.program.inputs

    @property
    def outputs(self) -> list[TensorSpec]:
        return self.program.outputs

    @property
    def launches(self) -> int:
        """Kernels that one call launches."""
        return len(self.result.plan.kernels)

    @property
    def best(self) -> Any:
        return self.result.report.candidates[0]

    @property
    def predicted_us(self) -> float:
        return self.best.predicted_us

    @property
    def measured_us(self) -> float | None:
        """By a GPU with cold caches, or None where none was there."""
        return self.best.measured_us or None

    @property
    def verdict(self) -> Any:
        """The evidence that it computes the program: a message `Verdict`."""
        return self.best.verdict

    def _text(self, view: int) -> str:
        return taken(library().result_text, self._handle.pointer, view).decode()

    @functools.cached_property
    def cuda_source(self) -> str:
        """One self-contained CUDA file with a launcher."""
        return self._text(_library.CUDA)

    @functools.cached_property
    def mugraph(self) -> str:
        """The µGraph as text: kernels, splits, loops and places."""
        return self._text(_library.MUGRAPH)

    @functools.cached_property
    def svg(self) -> str:
        """A picture of the µGraph."""
        return self._text(_library.SVG)

    def explain(self) -> str:
        """What was chosen, what it is worth, why it is right, and what else there was."""
        return self._text(_library.EXPLAIN)

    def repro(self) -> str:
        """A Python script that makes this kernel again, for reports of faults: it needs nothing beside it."""
        machine = "".join(f"# {key}: {value}\n" for key, value in _library.machine().items())
        return (
            f"{machine}import sundog\n\n"
            f'program = sundog.Program.parse(r"""{self.program.text}""")\n'
            f'mugraph = r"""{self.mugraph}"""\n'
            f"kernel = program.optimize(target={self.target!r}, mugraph=mugraph, no_search=True, no_gpu=True, "
            f"eager_rounding={self.result.eager_rounding})\n"
            "print(kernel.explain())\n"
        )

    # Running --------------------------------------------------------------------------------------

    def load(self, device: int = _library.EMULATOR) -> Loaded:
        """Compiles for a GPU, or for the emulator; once a device."""
        if device not in self._loaded:
            self._loaded[device] = Loaded(self._handle, device)
        return self._loaded[device]

    def __call__(self, *arrays: Any, **named: Any) -> Any:
        """Runs on numpy arrays, in the emulator. One array, or a tuple where there are several outputs."""
        given = self.program.arguments(arrays, named)
        memories = [AnyArray.to_memory(spec, array) for spec, array in zip(self.inputs, given)]
        results = [AnyArray.empty(spec) for spec in self.outputs]
        addresses = [_library.pointers([m.ctypes.data for m in group]) for group in (memories, results)]
        self.load().launch(*addresses)
        outputs = [AnyArray.from_memory(spec, memory) for spec, memory in zip(self.outputs, results)]
        return outputs[0] if len(outputs) == 1 else tuple(outputs)

    # Keeping --------------------------------------------------------------------------------------

    def save(self, path: str | os.PathLike[str], archs: Sequence[str] = ()) -> None:
        """Writes `k.so`, a shared library with the machine code for each architecture ("sm_90a"; by default
        that of the target) and a C entry, which needs the CUDA driver and nothing of Sundog; `k.cu`, the
        text; or `k.pb`, the result itself."""
        target = pathlib.Path(path)
        if target.suffix == ".so":
            names = (_library.c_char_p * len(archs))(*[arch.encode() for arch in archs])
            checked(library().result_save, self._handle.pointer, os.fsencode(target), names, len(archs))
        elif target.suffix == ".cu":
            write_whole(target, self.cuda_source.encode())
        elif target.suffix == ".pb":
            write_whole(target, self.to_bytes())
        else:
            raise SundogError(f"{path} is no kind of file that a kernel is saved as", "save as .so, .cu or .pb")

    # Looking --------------------------------------------------------------------------------------

    def __repr__(self) -> str:
        time = f"measured {self.measured_us:.2f} us" if self.measured_us else f"predicted {self.predicted_us:.2f} us"
        return f"<sundog.Kernel {self.name} for {self.target}: {self.best.structure}, {time}>"

    def table(self) -> list[tuple[str, str, str, str]]:
        """Candidates with their times: structure, predicted, measured, percent of the best."""
        report = self.result.report
        rows = [(c, c.structure) for c in report.candidates]
        if report.unfused is not None:
            rows.append((report.unfused, "unfused: " + report.unfused.structure))
        time = lambda c: c.measured_us or c.predicted_us  # noqa: E731
        best = time(report.candidates[0])
        return [
            (text, f"{c.predicted_us:.2f}", f"{c.measured_us:.2f}" if c.measured_us else "-", f"{100 * best / time(c):.0f} %")
            for c, text in rows
        ]

    def _repr_html_(self) -> str:
        cells = "".join(
            "<tr>" + "".join(f"<td>{html.escape(cell)}</td>" for cell in row) + "</tr>" for row in self.table()
        )
        head = "".join(f"<th>{title}</th>" for title in ("structure", "predicted us", "measured us", "of the best"))
        return f"<div>{self.svg}<table><tr>{head}</tr>{cells}</table></div>"


class SavedKernel:
    """A kernel loaded from the library that `Kernel.save` wrote. It needs a CUDA driver, and nothing of
    libsundog."""

    def __init__(self, path: str | os.PathLike[str]) -> None:
        import ctypes

        try:
            self._library = ctypes.CDLL(os.fspath(pathlib.Path(path).resolve()))
            result = self._library.sundog_saved_result
        except (OSError, AttributeError) as error:
            raise SundogError(f"{path} is no saved kernel: {error}", code="io") from None
        result.restype = ctypes.c_void_p
        size = ctypes.c_size_t()
        data = ctypes.string_at(result(ctypes.byref(size)), size.value)
        self.result = _wire.decode("Result", data)
        self.name: str = self.result.program.name
        from sundog.program import spec_of

        self.inputs = [spec_of(t) for t in self.result.program.inputs]
        self.outputs = [spec_of(o.tensor) for o in self.result.program.outputs]
        self.workspace_bytes: int = self.result.plan.workspace_bytes
        self.zeroed_bytes: int = self.result.plan.zeroed_bytes
        self._launch = self._library.sundog_saved_launch
        self._launch.argtypes = [ctypes.c_void_p] * 4

    @property
    def cuda_source(self) -> str:
        return self.result.cuda

    def launch(self, inputs: Any, outputs: Any, workspace: int = 0, stream: int = 0) -> None:
        """As Loaded.launch, on the current device."""
        code = self._launch(inputs, outputs, workspace, stream)
        if code:
            reasons = {35: "there is no CUDA driver", 201: "CUDA is not initialised", 209: "no code for this GPU"}
            raise SundogError(f"{self.name} did not launch: {reasons.get(code, f'CUresult {code}')}", code="failed")

    def __repr__(self) -> str:
        return f"<sundog.SavedKernel {self.name} for {self.result.target}>"


def write_whole(path: pathlib.Path, data: bytes) -> None:
    """A file that is there as a whole or not at all."""
    path.parent.mkdir(parents=True, exist_ok=True)
    handle, fresh = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name}.")
    try:
        with os.fdopen(handle, "wb") as file:
            file.write(data)
        os.chmod(fresh, 0o644)
        os.replace(fresh, path)
    except BaseException:
        os.unlink(fresh)
        raise
