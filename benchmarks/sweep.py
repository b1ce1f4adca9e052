#!/usr/bin/env python3
"""Optimizes a list of programs and says in one table whether each result keeps what is promised of it.

    benchmarks/sweep.py [--tool build/release/sundog] [--list benchmarks/sweep.txt] [--only REGEX] [--budget 20s]
                        [--full NAME,NAME] [--out build/sweep] [--markdown FILE] [-- OPTION ...]

A line of the list is NAME PROGRAM [PARAMETER=VALUE ...], PROGRAM a file of benchmarks/programs without its ending.
Each is optimized for an H200 and for an A100. Checked: exit code 0, verdict equivalent, the emulator's check, a
prediction no worse than the unfused program's, and, where nvcc is found, that best.cu compiles without a warning and
without spilling registers: that for an A100 for sm_80 and sm_90a, that for an H200 for sm_90a (it may use what sm_80
lacks). Those named by --full also run in the emulator at full size. What follows -- goes to `sundog optimize`. Exit
code 1 if any check failed.
"""

import argparse
import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
import time
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
SPILL = re.compile(r"(\d+) bytes spill stores, (\d+) bytes spill loads")


def arguments():
    """The options, and those after -- for the tool."""
    argv = sys.argv[1:]
    end = argv.index("--") if "--" in argv else len(argv)
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--tool", default="build/release/sundog")
    parser.add_argument("--list", default="benchmarks/sweep.txt")
    parser.add_argument("--only", default=".")
    parser.add_argument("--budget", default="20s")
    parser.add_argument("--full", default="")
    parser.add_argument("--out", default="build/sweep")
    parser.add_argument("--markdown")
    options = parser.parse_args(argv[:end])
    options.rest = argv[end + 1:]
    return options


def run(command):
    """(exit code, stdout, stderr, seconds, peak MB of the command and of what it waited for)."""
    start = time.monotonic()
    with tempfile.TemporaryFile("w+") as out, tempfile.TemporaryFile("w+") as err:
        process = subprocess.Popen(command, stdout=out, stderr=err, cwd=ROOT)
        _, status, usage = os.wait4(process.pid, 0)
        process.returncode = os.waitstatus_to_exitcode(status)
        seconds = time.monotonic() - start
        out.seek(0), err.seek(0)
        return process.returncode, out.read(), err.read(), seconds, usage.ru_maxrss / 1024


def nvcc():
    """The compiler, or None."""
    home = os.environ.get("CUDA_HOME", "/usr/local/cuda")
    return shutil.which("nvcc") or shutil.which(f"{home}/bin/nvcc")


def compiled(compiler, source, sm):
    """'' if it compiles silently and without spills, else what is wrong."""
    command = [compiler, "-std=c++17", f"-gencode=arch=compute_{sm},code=sm_{sm}", "-Xcompiler=-Wall,-Wextra",
               "-Xptxas=-v", "-cubin", "-o", "/dev/null", str(source)]
    code, out, err, _, _ = run(command)
    text = out + err
    if code:
        return f"sm_{sm}: nvcc failed"
    if "warning" in text:
        return f"sm_{sm}: warning"
    spilled = sum(int(a) + int(b) for a, b in SPILL.findall(text))
    return f"sm_{sm}: {spilled} bytes spilled" if spilled else ""


ARCHITECTURES = {"h200": ["90a"], "a100": ["80", "90a"]}  # what a result for a target compiles for


def swept(options, name, target, program, defines):
    """One row, and what failed."""
    name = f"{name}_{target}"
    folder = Path(options.out) / name
    command = [options.tool, "optimize", f"benchmarks/programs/{program}.sd", "--target", target, "--budget",
               options.budget, "--no-gpu", "--quiet", "--json", "--out", str(folder), *options.rest]
    for define in defines:
        command += ["-D", define]
    code, out, err, seconds, peak = run(command)
    if code:
        return [name, f"exit {code}", "", "", "", "", f"{seconds:.1f}", f"{peak:.0f}", ""], [err.strip()[-200:]]
    best = json.loads(out)["best"]
    verdict, failed = best["verdict"], []
    if verdict.get("answer", "equivalent") != "equivalent":
        failed.append(f"verdict {verdict.get('answer')}")
    if not str(verdict["kernel_check"]).startswith("passed"):
        failed.append(f"kernel check: {verdict['kernel_check']}")
    if best["predicted_us"] > best["unfused_predicted_us"]:
        failed.append("predicted slower than unfused")
    compiler, notes = nvcc(), []
    if compiler:
        source = ROOT / folder / "best.cu"
        notes = [note for note in (compiled(compiler, source, sm) for sm in ARCHITECTURES[target]) if note]
    failed += notes
    if target == "h200" and name.removesuffix("_h200") in options.full.split(","):
        full_code, _, full_err, full_seconds, _ = run([options.tool, "run", str(folder), "--on", "emulator", "--full",
                                                       "--check-time", "1h"])
        notes.append(f"full size: {'passed' if full_code == 0 else 'failed'}, {full_seconds:.0f} s")
        if full_code:
            failed.append(f"full size: {full_err.strip()[-200:]}")
    row = [name, "equivalent", verdict["kernel_check"], best["kernels"], f"{best['predicted_us']:.2f}",
           f"{best['unfused_predicted_us']:.2f}", f"{seconds:.1f}", f"{peak:.0f}", "; ".join(notes) or "-"]
    return row, failed


def main():
    options = arguments()
    head = ["program", "verdict", "emulator", "kernels", "predicted us", "unfused us", "seconds", "peak MB", "notes"]
    lines = ["| " + " | ".join(head) + " |", "|" + "---|" * len(head)]
    bad = 0
    for line in (ROOT / options.list).read_text().splitlines():
        words = line.split()
        if not words or words[0].startswith("#") or not re.search(options.only, words[0]):
            continue
        for target in ARCHITECTURES:
            row, failed = swept(options, words[0], target, words[1], words[2:])
            lines.append("| " + " | ".join(str(cell) for cell in row) + " |")
            print(lines[-1], flush=True)
            for failure in failed:
                print(f"  FAILED {row[0]}: {failure}", flush=True)
            bad += bool(failed)
    if options.markdown:
        Path(options.markdown).write_text("\n".join(lines) + "\n")
    print(f"{bad} failed")
    return 1 if bad else 0


if __name__ == "__main__":
    sys.exit(main())
