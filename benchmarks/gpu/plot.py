"""Draws the JSON of torch_bench.py as bars: time of each block under eager, max-autotune and sundog, relative
to the fastest of the other two.

    plot.py torch_bench.json FILE.svg        (needs matplotlib, from PyPI)
"""

import json
import pathlib
import sys

import matplotlib

matplotlib.use("svg")
import matplotlib.pyplot as plt  # noqa: E402

WAYS = {"eager": "#9aa5b1", "max-autotune": "#5b7db1", "sundog": "#e07b39"}


def main():
    if len(sys.argv) != 3:
        sys.exit(__doc__)
    found = json.loads(pathlib.Path(sys.argv[1]).read_text())
    rows = [r for r in found["rows"] if all(w in r["us"] for w in WAYS)]
    names = [f"{r['family']}\n{r['shape']}" for r in rows]
    figure, axes = plt.subplots(figsize=(max(6, 1.1 * len(rows)), 4))
    for place, (way, color) in enumerate(WAYS.items()):
        bars = [r["us"][way] / min(r["us"]["eager"], r["us"]["max-autotune"]) for r in rows]
        at = [i + (place - 1) * 0.27 for i in range(len(rows))]
        axes.bar(at, bars, 0.25, label=way, color=color)
        for x, bar, row in zip(at, bars, rows):
            axes.annotate(f"{row['us'][way]:.0f}", (x, bar), ha="center", va="bottom", fontsize=6)
    axes.axhline(1, color="black", linewidth=0.6)
    axes.set_xticks(range(len(rows)), names, fontsize=7)
    axes.set_ylabel("time / best of eager and max-autotune")
    axes.set_title(f"{found['gpu']}, PyTorch {found['torch']}: us a block, less is better", fontsize=9)
    axes.legend(frameon=False, fontsize=8)
    figure.tight_layout()
    figure.savefig(sys.argv[2], metadata={"Date": None})


if __name__ == "__main__":
    main()
