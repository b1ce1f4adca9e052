"""How well predicted times rank and match measured ones: OUT/correlation.md from the runs of run_all.sh --tune.

usage: correlate.py OUT

A row a program: kernels timed, Spearman's rank correlation of prediction and cold time, mean absolute error of
the prediction, the predicted rank of the fastest, and how much slower than the fastest the first by prediction
and the best of the first five are. Then all kernels together.
"""

import json
import pathlib
import statistics
import sys


def ranks(values):
    """Ranks from 1, equal values sharing the mean of theirs."""
    order = sorted(range(len(values)), key=values.__getitem__)
    found = [0.0] * len(values)
    start = 0
    while start < len(order):
        end = start
        while end < len(order) and values[order[end]] == values[order[start]]:
            end += 1
        for at in order[start:end]:
            found[at] = (start + end + 1) / 2
        start = end
    return found


def spearman(pairs):
    """Nothing where one side does not vary."""
    if len(pairs) < 3:
        return None
    try:
        return statistics.correlation(*(ranks(list(side)) for side in zip(*pairs)))
    except statistics.StatisticsError:
        return None


def mean_error(pairs):
    return statistics.mean(abs(p - m) / m for p, m in pairs)


def row_of(name, pairs):
    by_prediction = sorted(pairs)
    times = [m for _, m in by_prediction]
    best = min(times)
    return {
        "program": name,
        "kernels": len(pairs),
        "spearman": spearman(pairs),
        "mean_error": mean_error(pairs),
        # Times within the noise of the fastest are as good as it.
        "rank_of_best": 1 + next(i for i, m in enumerate(times) if m <= 1.02 * best),
        "first_over_best": times[0] / best,
        "first_five_over_best": min(times[:5]) / best,
    }


def shown(row):
    rank = "-" if row["spearman"] is None else f"{row['spearman']:.2f}"
    return (
        f"| {row['program']} | {row['kernels']} | {rank} | {100 * row['mean_error']:.0f} % | {row['rank_of_best']} "
        f"| {row['first_over_best']:.2f} | {row['first_five_over_best']:.2f} |"
    )


def main():
    if len(sys.argv) != 2:
        sys.exit(__doc__)
    out = pathlib.Path(sys.argv[1])
    rows, together, listed = [], [], []
    for path in sorted((out / "runs").glob("*.tune.json")):
        try:
            run = json.loads(path.read_text())
        except ValueError:
            continue
        name = path.name.removesuffix(".tune.json")
        timed = [c for c in run["candidates"] if c.get("measured_us")]
        pairs = [(c["predicted_us"], c["measured_us"]) for c in timed if not c["unfused"]]
        listed += [{"program": name, **{k: c[k] for k in ("structure", "launches", "predicted_us", "measured_us")}} for c in timed]
        if pairs:
            rows.append(row_of(name, pairs))
            together += pairs
    if not rows:
        sys.exit(f"correlate.py: no timed candidates in {out / 'runs'}")
    lines = [
        "| program | kernels | rank correlation | mean error | rank of the best | first / best | best of five / best |",
        "|---|---|---|---|---|---|---|",
        *map(shown, rows),
        "",
        f"All {len(together)} kernels: rank correlation {spearman(together):.3f}, mean absolute error "
        f"{100 * mean_error(together):.1f} %; the best is among the first five of the prediction for "
        f"{sum(r['rank_of_best'] <= 5 for r in rows)} of {len(rows)} programs.",
    ]
    (out / "correlation.md").write_text("\n".join(lines) + "\n")
    (out / "correlation.json").write_text(json.dumps({"programs": rows, "kernels": listed}, indent=1) + "\n")
    print("\n".join(lines))


if __name__ == "__main__":
    main()
