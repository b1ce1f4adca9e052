"""The baselines of `sundog bench`: a child process that measures programs in PyTorch beside Sundog's kernels.

    python3 bench JOB.json

A line of JSON on standard output a row, as soon as it is done; everything else goes to standard error. The job:
device ("cuda" or "cpu"), methods, replays, flush_bytes, seed, seconds (a row, after which no method is begun), rows
[{name, program, kernel, kernel_note, triton}].
"""

from __future__ import annotations

import dataclasses
import gc
import json
import os
import sys
import time
from typing import Any

import torch

import clock
import methods

RIGHT = 0.05  # beyond this a method does not compute the program, whatever its time


def version_of(name: str) -> str:
    try:
        return __import__(name).__version__
    except Exception:  # noqa: BLE001  it may be missing or broken: then it has no version
        return "none"


def machine(device: str) -> dict[str, Any]:
    found = {"torch": torch.__version__, "triton": version_of("triton"), "device": device}
    if device == "cuda":
        found["gpu"] = torch.cuda.get_device_name()
        found["cuda"] = torch.version.cuda
        found["clocks"] = clock.clocks()
    return found


def measure(row: dict[str, Any], job: dict[str, Any], timer: Any) -> dict[str, Any]:
    until = time.monotonic() + job["seconds"]
    made = methods.Methods(row, job["device"], job["seed"])
    copies, reuse = (1, True) if job["device"] == "cpu" else clock.copies_for(made.tensors.bytes())
    made.tensors.multiply(copies)
    expected = made.reference()
    calls: dict[str, clock.Call] = {}
    notes: dict[str, str] = {}
    errors: dict[str, float] = {}
    prepared: dict[str, float] = {}
    for name in job["methods"]:
        start = time.monotonic()
        if start > until:
            notes[name] = "not run: the time was up"
            continue
        try:
            call = made.make(name)
            outputs = call(0)
            if name not in methods.PARTS:
                errors[name] = methods.relative_error(list(outputs), expected)
            calls[name] = call
        except methods.NotRun as why:
            notes[name] = f"not run: {why}"
        except Exception as error:  # noqa: BLE001  one method that fails leaves the others
            notes[name] = clock.described(error)
        prepared[name] = time.monotonic() - start
        print(f"{row['name']} {name}: {notes.get(name, '')} {prepared[name]:.1f} s", file=sys.stderr, flush=True)
    del expected
    right = {n: c for n, c in calls.items() if errors.get(n, 0.0) <= RIGHT}
    timings = timer.time(right, copies, reuse, notes)
    found = []
    for name in job["methods"]:
        error = errors.get(name)
        if name in calls and name not in right:
            notes[name] = "wrong"
        found.append({
            "method": name, "part": name in methods.PARTS, "right": name in right and name in timings,
            "error": error if error is None or error < float("inf") else None, "note": notes.get(name, ""),
            "prepare_s": prepared.get(name), **dataclasses.asdict(timings.get(name, clock.Timing())),
        })  # fmt: skip
    clocks = clock.clocks() if job["device"] == "cuda" else None
    return {"row": row["name"], "methods": found, "texts": made.texts, "clocks": clocks}


def main() -> int:
    with open(sys.argv[1], encoding="utf-8") as file:
        job = json.load(file)
    # Libraries print what they like; what the parent reads must be ours alone.
    answers = os.fdopen(os.dup(1), "w", encoding="utf-8")
    os.dup2(2, 1)

    def answer(found: dict[str, Any]) -> None:
        answers.write(json.dumps(found) + "\n")
        answers.flush()

    device = job["device"]
    answer({"machine": machine(device)})
    timer = clock.CpuClock() if device == "cpu" else clock.GpuClock(job["replays"], job["flush_bytes"])
    for row in job["rows"]:
        answer({"begin": row["name"]})
        try:
            with torch.no_grad():
                answer(measure(row, job, timer))
        except Exception as error:  # noqa: BLE001  the other rows go on
            answer({"row": row["name"], "failure": clock.described(error)})
        gc.collect()
        if device == "cuda":
            torch.cuda.empty_cache()
    return 0


if __name__ == "__main__":
    sys.exit(main())
