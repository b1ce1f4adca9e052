"""Turns the runs of run_all.sh into one table: OUT/results.json and OUT/results.md.

usage: results.py OUT

Times are medians of graph replays in microseconds.  cold: inputs not in the L2 cache; warm: one copy of the
inputs.  error: largest |x - reference| over the largest |reference| of the row, before and after timing.
"""

import json
import pathlib
import sys


def read(path):
    """The JSON object of a run, or nothing if it printed none."""
    try:
        return json.loads(path.read_text())
    except (OSError, ValueError):
        return None


def word(path):
    return path.read_text().strip() if path.is_file() else None


def part(run, name):
    return (run or {}).get(name) or {}


def row_of(folder, name):
    run = read(folder / "runs" / f"{name}.json")
    best, unfused = part(run, "best"), part(run, "unfused")
    kernels = best.get("kernels", [])
    return {
        "name": name,
        "exit_code": int(word(folder / "runs" / f"{name}.code") or -1),
        "passed": bool(run and run.get("passed")),
        "failure": (run or {}).get("failure") or (None if run else "no answer; see logs"),
        "sizes": (run or {}).get("sizes"),
        "reduced": (run or {}).get("reduced"),
        "error": (run or {}).get("max_rel_error"),
        "kernels": (run or {}).get("kernels"),
        "cold_us": best.get("cold_us"),
        "warm_us": best.get("warm_us"),
        "spread": best.get("cold_spread"),
        "unfused_cold_us": unfused.get("cold_us"),
        "unfused_warm_us": unfused.get("warm_us"),
        "unfused_failure": unfused.get("failure") or None,
        "registers": max((k["registers"] for k in kernels), default=None),
        "spill_bytes": sum(k["spill_bytes"] for k in kernels) if kernels else None,
        "memcheck": word(folder / "runs" / f"{name}.memcheck"),
        "racecheck": word(folder / "runs" / f"{name}.racecheck"),
    }


def shown(value, form="{}"):
    return "-" if value is None else form.format(value)


def ratio(row):
    if not row["cold_us"] or not row["unfused_cold_us"]:
        return None
    return row["unfused_cold_us"] / row["cold_us"]


def table(rows):
    lines = [
        "| program | right | error | kernels | cold us | warm us | spread | unfused cold us | times | registers "
        "| spill bytes | memcheck | racecheck |",
        "|---|---|---|---|---|---|---|---|---|---|---|---|---|",
    ]
    for row in rows:
        cells = [
            row["name"],
            "yes" if row["passed"] else "NO",
            shown(row["error"], "{:.1e}"),
            shown(row["kernels"]),
            shown(row["cold_us"], "{:.2f}"),
            shown(row["warm_us"], "{:.2f}"),
            shown(row["spread"] and 100 * row["spread"], "{:.1f} %"),
            shown(row["unfused_cold_us"], "{:.2f}"),
            shown(ratio(row), "{:.2f}"),
            shown(row["registers"]),
            shown(row["spill_bytes"]),
            shown(row["memcheck"]),
            shown(row["racecheck"]),
        ]
        lines.append("| " + " | ".join(cells) + " |")
    return "\n".join(lines) + "\n"


def main():
    if len(sys.argv) != 2:
        sys.exit(__doc__)
    folder = pathlib.Path(sys.argv[1])
    names = sorted(path.stem for path in (folder / "runs").glob("*.code"))
    rows = [row_of(folder, name) for name in names]
    machine = (folder / "machine.txt").read_text() if (folder / "machine.txt").is_file() else ""
    (folder / "results.json").write_text(json.dumps({"machine": machine, "rows": rows}, indent=1) + "\n")
    text = table(rows)
    failures = [f"- {row['name']}: {row['failure']}" for row in rows if row["failure"]]
    if failures:
        text += "\nWrong or failed:\n\n" + "\n".join(failures) + "\n"
    (folder / "results.md").write_text(text)
    print(text)
    sys.exit(0 if rows and all(row["passed"] for row in rows) else 1)


if __name__ == "__main__":
    main()
