"""From a program to a kernel: in this process, or where a GPU is timed in one of its own.

Timing forks children that use CUDA, which a process that has used CUDA itself cannot do; and a fresh process
can be stopped, and its faults survived. Results are kept in a cache, keyed by everything that they depend on.
"""

from __future__ import annotations

import hashlib
import math
import os
import pathlib
import struct
import subprocess
import sys
import threading
import time
from typing import Any, Callable

from sundog import _library, _wire
from sundog._library import SundogError, library, made
from sundog.expr import Tensor, program_text
from sundog.kernel import Kernel, write_whole
from sundog.program import Program

_TIMES = ("budget", "verify_time", "check_time", "compile_time", "gpu_time")
_UNITS = {"ms": 0.001, "s": 1.0, "m": 60.0, "h": 3600.0}


def seconds(value: float | str) -> float:
    """90, "90", "90s", "1.5m", "200ms" or "1h"."""
    if not isinstance(value, str):
        return float(value)
    for unit in ("ms", "s", "m", "h"):
        if value.endswith(unit):
            return float(value[: -len(unit)]) * _UNITS[unit]
    return float(value)


def _time(name: str, value: float | str) -> float:
    try:
        return seconds(value)
    except ValueError:
        raise SundogError(f"{name}={value!r} is no time", 'times are 90, "90s", "1.5m" or "1h"') from None


def options_message(options: dict[str, Any]) -> Any:
    """The message of keywords, which are the fields of `OptimizeOptions` or times as text."""
    fields = dict(options)
    for name in _TIMES:
        if name in fields:
            fields[name.replace("_time", "") + "_s"] = _time(name, fields.pop(name))
    try:
        return _wire.message("OptimizeOptions", **fields)
    except TypeError:
        known = ["within", *_wire.schema()["OptimizeOptions"].by_name, *_TIMES]
        wrong = ", ".join(name for name in fields if name not in known)
        raise SundogError(f"there is no option {wrong}", f"options are {', '.join(known)}") from None


def cache_folder() -> pathlib.Path:
    """Where results are kept: SUNDOG_CACHE_DIR, else XDG_CACHE_HOME/sundog, else ~/.cache/sundog."""
    if named := os.environ.get("SUNDOG_CACHE_DIR"):
        return pathlib.Path(named)
    base = os.environ.get("XDG_CACHE_HOME")
    return (pathlib.Path(base) if base else pathlib.Path.home() / ".cache") / "sundog"


def _cache_file(program: Program, settings: bytes, limit: float | None, timed: bool) -> pathlib.Path:
    stat = os.stat(_library._library_path())
    key = hashlib.sha256()
    for part in (
        program.to_bytes(), settings, _library.version().encode(), repr((stat.st_size, stat.st_mtime_ns)).encode(),
        b"timed" if timed else b"not timed", repr(limit).encode(),
    ):  # fmt: skip
        key.update(struct.pack("<q", len(part)) + part)
    return cache_folder() / "results" / f"{key.hexdigest()[:40]}.pb"


def _from_cache(path: pathlib.Path) -> Kernel | None:
    try:
        return Kernel.from_bytes(path.read_bytes())
    except (OSError, SundogError, ValueError):
        return None  # a damaged entry is no entry: it is written anew


class ProgressLine:
    """A line on a terminal that is written over and over, by rich where that is installed."""

    def __init__(self, wanted: bool | None) -> None:
        self._status: Any = None
        self._shown = False
        self.enabled = sys.stderr.isatty() if wanted is None else wanted
        if self.enabled:
            try:
                import rich.console

                self._status = rich.console.Console(stderr=True).status("sundog")
                self._status.start()
            except ImportError:
                self._status = None

    def show(self, line: str) -> None:
        if self._status is not None:
            self._status.update(line)
        elif self.enabled:
            sys.stderr.write(f"\r\x1b[K{line[:150]}")
            sys.stderr.flush()
            self._shown = True

    def clear(self) -> None:
        if self._status is not None:
            self._status.stop()
        elif self._shown:
            sys.stderr.write("\r\x1b[K")


def _here(program: Program, settings: bytes, limit: float | None, progress: Callable[[str], None]) -> Kernel:
    """Optimizes in this process; Ctrl-C, and the limit in seconds, end it with the best found so far."""
    stop = _library.Handle(library().stop_free)
    stop.pointer = _library.c_void_p(library().stop_new())
    outcome: list[Any] = []
    call = _library.Progress(lambda line, _: progress(line.decode(errors="replace")))

    def work() -> None:
        try:
            outcome.append(
                made("result", library().optimize, program._handle.pointer, settings, len(settings), call, None, stop.pointer)
            )
        except SundogError as error:
            outcome.append(error)

    # In a thread, since Python sees Ctrl-C only between calls of the main one.
    thread = threading.Thread(target=work)
    end = time.monotonic() + limit if limit is not None else math.inf
    thread.start()
    while thread.is_alive():
        if time.monotonic() >= end:
            library().stop_set(stop.pointer)
        try:
            thread.join(0.2)
        except KeyboardInterrupt:
            library().stop_set(stop.pointer)
    if isinstance(outcome[0], SundogError):
        raise outcome[0]
    return Kernel(outcome[0])


def _apart(program: Program, settings: bytes, limit: float | None, progress: Callable[[str], None]) -> Kernel:
    """Optimizes in a fresh process (sundog/_worker.py)."""
    command = [sys.executable, "-m", "sundog._worker"]
    path = os.pathsep.join([str(pathlib.Path(__file__).resolve().parents[1]), os.environ.get("PYTHONPATH", "")])
    environment = {**os.environ, "PYTHONPATH": path}
    worker = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, env=environment)
    assert worker.stdin is not None and worker.stdout is not None
    try:
        for part in (program.to_bytes(), settings, repr(limit).encode()):
            worker.stdin.write(struct.pack("<q", len(part)) + part)
        worker.stdin.close()
        while True:
            head = worker.stdout.read(9)
            if len(head) < 9:
                raise SundogError(f"the optimizing process ended with code {worker.wait()}", code="failed")
            kind, size = struct.unpack("<cq", head)
            data = worker.stdout.read(size)
            if kind == b"p":
                progress(data.decode(errors="replace"))
            elif kind == b"r":
                return Kernel.from_bytes(data)
            else:
                message, hint, code = data.decode(errors="replace").split("\0")
                raise SundogError(message, hint, code)
    finally:
        worker.kill()
        worker.wait()
        worker.stdout.close()


def _gpu_present() -> bool:
    """Whether there may be a GPU to time on, without touching CUDA."""
    return os.path.exists("/dev/nvidiactl") or os.path.exists("/dev/dxg")


def optimize(
    *source: Program | Tensor | str,
    cache: bool = True,
    results: str | os.PathLike[str] | None = None,
    progress: bool | Callable[[str], None] | None = None,
    name: str = "tensor_program",
    within: float | str | None = None,
    **options: Any,
) -> Kernel:
    """Searches for the fastest kernels that compute a program, verifies and checks them.

    `source` is a Program, program text, or the outputs as tensors of the builder. Options are those of
    `sundog optimize`: target="h200", budget="60s", states=N, top=8, threads=0, seed=1, error_log2=-60,
    eager_rounding, no_check, no_gpu, gpu=0, verify_time, check_time, compile_time, gpu_time, mugraph (text to
    start from), start (a stored result), no_search.

    `within` bounds the whole of it, timing included: when it is over the search ends, what is not yet timed stays so,
    and the answer is the best so far (within a second or two).

    `results` is a folder of results to ship: one file a program, named by program and target. What is there is
    taken as it is, on any machine; what is not is found and put there.

    Results are cached (`cache=False` neither looks nor keeps; see cache_folder()). `progress` shows a line on
    a terminal by default; a function gets each line instead."""
    if len(source) == 1 and isinstance(source[0], Program):
        program = source[0]
    elif len(source) == 1 and isinstance(source[0], str):
        program = Program.parse(source[0])
    else:
        program = Program.parse(program_text(*source, name=name))  # type: ignore[arg-type]
    message = options_message(options)
    settings = message.to_bytes()
    shipped = pathlib.Path(results) / result_name(program, message.target) if results is not None else None
    if shipped is not None and (found := _from_cache(shipped)) is not None:
        return found
    timed = not message.no_gpu and _gpu_present()
    limit = None if within is None else _time("within", within)
    kept = _cache_file(program, settings, limit, timed)
    if cache and (found := _from_cache(kept)) is not None:
        return _shipped(found, shipped)
    line = ProgressLine(False if callable(progress) else progress)
    show = progress if callable(progress) else line.show
    try:
        kernel = (_apart if timed else _here)(program, settings, limit, show)
    finally:
        line.clear()
    if cache:
        try:
            write_whole(kept, kernel.to_bytes())
        except OSError:
            pass  # a cache that cannot be written is no reason to fail
    return _shipped(kernel, shipped)


def result_name(program: Program, target: str) -> str:
    """The name of a program's result in a folder of results."""
    digest = hashlib.sha256(f"{target or 'h200'}\n{program.text}".encode()).hexdigest()
    return f"{program.name}-{digest[:16]}.pb"


def _shipped(kernel: Kernel, path: pathlib.Path | None) -> Kernel:
    if path is not None:
        write_whole(path, kernel.to_bytes())
    return kernel
