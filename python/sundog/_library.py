"""libsundog through ctypes: loading it, its handles as objects, its errors as exceptions."""

from __future__ import annotations

import ctypes
import functools
import os
import pathlib
import threading
from ctypes import POINTER, addressof, byref, c_char_p, c_double, c_int, c_int64, c_size_t, c_void_p
from typing import Any, Callable, Sequence

ABI_VERSION = 1
EMULATOR = -1
CUDA, MUGRAPH, PROGRAM, SVG, DOT, EXPLAIN = range(6)

Progress = ctypes.CFUNCTYPE(None, c_char_p, c_void_p)
_CODES = ("ok", "bad input", "unsupported", "io", "limit", "tool missing", "failed", "internal")

_RESULT = c_int
_FUNCTIONS: dict[str, tuple[Any, list[Any]]] = {
    "abi_version": (c_int, []),
    "version": (c_char_p, []),
    "error_code": (c_int, [c_void_p]),
    "error_message": (c_char_p, [c_void_p]),
    "error_hint": (c_char_p, [c_void_p]),
    "error_file": (c_char_p, [c_void_p]),
    "error_line": (c_int, [c_void_p]),
    "error_column": (c_int, [c_void_p]),
    "error_free": (None, [c_void_p]),
    "bytes_data": (c_void_p, [c_void_p]),
    "bytes_size": (c_size_t, [c_void_p]),
    "bytes_free": (None, [c_void_p]),
    "program_parse": (_RESULT, [c_char_p, c_size_t, c_char_p, POINTER(c_char_p), POINTER(c_int64), c_size_t, c_void_p, c_void_p]),
    "program_from_message": (_RESULT, [c_char_p, c_size_t, c_void_p, c_void_p]),
    "program_from_graph": (_RESULT, [c_char_p, c_size_t, c_void_p, c_void_p]),
    "program_from_onnx": (_RESULT, [c_char_p, c_size_t, POINTER(c_char_p), POINTER(c_int64), c_size_t, c_void_p, c_void_p]),
    "program_load_onnx": (_RESULT, [c_char_p, POINTER(c_char_p), POINTER(c_int64), c_size_t, c_void_p, c_void_p]),
    "program_message": (_RESULT, [c_void_p, c_void_p, c_void_p]),
    "program_text": (_RESULT, [c_void_p, c_void_p, c_void_p]),
    "program_work": (c_double, [c_void_p]),
    "program_bound": (_RESULT, [c_void_p, c_char_p, POINTER(c_double), c_void_p]),
    "program_evaluate": (_RESULT, [c_void_p, c_void_p, c_void_p, c_int, c_void_p]),
    "program_free": (None, [c_void_p]),
    "optimize": (_RESULT, [c_void_p, c_char_p, c_size_t, Progress, c_void_p, c_void_p, c_void_p, c_void_p]),
    "verify": (_RESULT, [c_void_p, c_char_p, c_size_t, c_char_p, c_size_t, c_void_p, c_void_p]),
    "result_from_message": (_RESULT, [c_char_p, c_size_t, c_void_p, c_void_p]),
    "result_message": (_RESULT, [c_void_p, c_void_p, c_void_p]),
    "result_text": (_RESULT, [c_void_p, c_int, c_void_p, c_void_p]),
    "result_free": (None, [c_void_p]),
    "result_save": (_RESULT, [c_void_p, c_char_p, POINTER(c_char_p), c_size_t, c_void_p]),
    "kernel_new": (_RESULT, [c_void_p, c_int, c_void_p, c_void_p]),
    "kernel_workspace_bytes": (c_int64, [c_void_p]),
    "kernel_zeroed_bytes": (c_int64, [c_void_p]),
    "kernel_launch": (_RESULT, [c_void_p, c_void_p, c_void_p, c_void_p, c_void_p, c_void_p]),
    "kernel_launch_packed": (_RESULT, [c_char_p]),
    "kernel_free": (None, [c_void_p]),
    "stop_new": (c_void_p, []),
    "stop_set": (None, [c_void_p]),
    "stop_free": (None, [c_void_p]),
    "machine": (_RESULT, [c_void_p, c_void_p]),
}  # fmt: skip


class SundogError(Exception):
    """What the library reports: a message, what to do about it, and the place in a program's text.

    `code` is one word or two: "bad input", "unsupported", "io", "limit", "tool missing", "failed",
    "internal"."""

    def __init__(
        self, message: str, hint: str = "", code: str = "bad input", file: str = "", line: int = 0, column: int = 0
    ) -> None:
        place = f"{file}:{line}:{column}: " if line else ""
        super().__init__(place + message + (f"\n  hint: {hint}" if hint else ""))
        self.message, self.hint, self.code = message, hint, code
        self.file, self.line, self.column = file, line, column


def _library_path() -> str:
    if named := os.environ.get("SUNDOG_LIBRARY"):
        return named
    beside = pathlib.Path(__file__).resolve().parent / "libsundog.so"
    if beside.is_file():
        return str(beside)
    raise SundogError(
        f"libsundog.so is not beside {beside.parent}",
        "pip install the package, or name the library of a build in SUNDOG_LIBRARY",
        "tool missing",
    )


@functools.lru_cache(maxsize=None)
def library() -> Any:
    """The loaded library, with `library().optimize` for sundog_optimize and so on."""
    handle = ctypes.CDLL(_library_path())

    class Functions:
        pass

    functions = Functions()
    handle.sundog_abi_version.restype = c_int
    found = handle.sundog_abi_version()
    if found != ABI_VERSION:
        raise SundogError(
            f"libsundog.so speaks version {found} of its interface, this package version {ABI_VERSION}",
            "install both from one build",
        )
    for name, (result, arguments) in _FUNCTIONS.items():
        function = getattr(handle, "sundog_" + name)
        function.restype, function.argtypes = result, arguments
        setattr(functions, name, function)
    return functions


def _raise(error: c_void_p) -> None:
    c = library()
    try:
        raise SundogError(
            c.error_message(error).decode(errors="replace"),
            c.error_hint(error).decode(errors="replace"),
            _CODES[c.error_code(error)],
            c.error_file(error).decode(errors="replace"),
            c.error_line(error),
            c.error_column(error),
        )
    finally:
        c.error_free(error)


def checked(function: Callable[..., int], *arguments: Any) -> None:
    """Calls a function whose last parameter is the error."""
    error = c_void_p()
    if function(*arguments, byref(error)):
        if not error:
            raise SundogError("out of memory", code="internal")
        _raise(error)


class ErrorCell(threading.local):
    """A place for the error of a call that is made so often that making a place for each would show: one a
    thread."""

    def __init__(self) -> None:
        self.pointer = c_void_p()
        self.reference = byref(self.pointer)
        self.address = addressof(self.pointer)

    def throw(self) -> None:
        error, self.pointer.value = c_void_p(self.pointer.value), None
        if not error:
            raise SundogError("out of memory", code="internal")
        _raise(error)


launch_errors = ErrorCell()


class Handle:
    """Owns an object of the library, which goes with it."""

    def __init__(self, free: Callable[[c_void_p], None]) -> None:
        self.pointer = c_void_p()
        self._free = free

    def __del__(self) -> None:
        if self.pointer:
            self._free(self.pointer)
            self.pointer = c_void_p()


def made(kind: str, function: Callable[..., int], *arguments: Any) -> Handle:
    """The object that a function hands out through its last parameter but one."""
    handle = Handle(getattr(library(), kind + "_free"))
    checked(function, *arguments, byref(handle.pointer))
    return handle


def taken(function: Callable[..., int], *arguments: Any) -> bytes:
    """The bytes that a function hands out so."""
    handle = made("bytes", function, *arguments)
    return ctypes.string_at(library().bytes_data(handle.pointer), library().bytes_size(handle.pointer))


def defines(values: dict[str, int]) -> tuple[Any, Any, int]:
    """Names, values and count, as the library takes parameters."""
    count = len(values)
    names = (c_char_p * count)(*[name.encode() for name in values])
    numbers = (c_int64 * count)(*values.values())
    return names, numbers, count


def pointers(addresses: Sequence[int]) -> Any:
    return (c_void_p * len(addresses))(*addresses)


def version() -> str:
    """The version of the library."""
    return library().version().decode()


def machine() -> dict[str, str]:
    """What the machine has (compilers, GPU), for reports of faults."""
    lines = taken(library().machine).decode().splitlines()
    return dict(line.split(": ", 1) for line in lines)
