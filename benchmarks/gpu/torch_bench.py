"""PyTorch on a GPU: launch overhead, and transformer blocks against eager and torch.compile(max-autotune).

    torch_bench.py [--families llama,gpt2,qk_norm_lora] [--shapes decode1,decode8,decode16,prefill512]
                   [--results DIR] [--budget 5s or a number of states] [--prepare] [--rank] [--out FILE.json]
                   [--baselines eager,max-autotune] [--against eager|max-autotune] [--within 55s] [--seconds N]
                   [--device cuda:1]

With --prepare nothing is timed and no GPU is needed: the subgraphs of the blocks are searched for and their
results put into --results, to be taken along.

Blocks are timed end to end as CUDA graphs of their calls, median of 30 replays in two rounds, the second in
reverse order; "called" is the same without a graph, Python and all. Each output is compared with float64.
"""

import argparse
import json
import os
import pathlib
import statistics
import subprocess
import sys
import time

HERE = pathlib.Path(__file__).resolve().parent
sys.path[:0] = [str(p) for p in (HERE, HERE / "tests", HERE.parents[1] / "tests" / "python", HERE.parents[1] / "python")]

import torch  # noqa: E402

import blocks  # noqa: E402
import sundog  # noqa: E402
import sundog.torch as st  # noqa: E402

SIZES = {
    "llama": dict(width=4096, heads=32, kv_heads=8, hidden=14336),
    "gpt2": dict(width=1600, heads=25),
    "qk_norm_lora": dict(width=2048, heads=16, kv_heads=8, hidden=6144, rank=16),
}
PAST = 511
SHAPES = {
    "decode1": dict(batch=1, length=1, past=PAST),
    "decode8": dict(batch=8, length=1, past=PAST),
    "decode16": dict(batch=16, length=1, past=PAST),
    "prefill512": dict(batch=1, length=512, past=0),
}


def enqueue_us(call, calls=400, rounds=9):
    """What one call costs the CPU while the GPU follows behind."""
    times = []
    for _ in range(rounds):
        torch.cuda.synchronize()
        start = time.perf_counter()
        for _ in range(calls):
            call()
        times.append((time.perf_counter() - start) / calls * 1e6)
    torch.cuda.synchronize()
    return statistics.median(times)


def overhead(results):
    """Launch overhead from Python and C."""
    x = torch.randn(16, 256, device="cuda")
    y = torch.randn(16, 256, device="cuda")
    fused = st.optimize(lambda a, b: torch.softmax(a + b, -1), (x, y), budget="3s", results=results, no_gpu=True)
    kernel = fused.kernels[0]
    found = {
        "torch.add": enqueue_us(lambda: torch.add(x, y)),
        "torch.softmax of a sum": enqueue_us(lambda: torch.softmax(x + y, -1)),
        "fused softmax of a sum": enqueue_us(lambda: fused(x, y)),
        "the same as an operator": enqueue_us(lambda: kernel.op(x, y)),
        "the same in the general way": enqueue_us(lambda: kernel._in_general(x, y)),
        **pieces(kernel, x),
    }
    binary = HERE / "launch_overhead"
    if binary.exists():
        fused.kernel.save("overhead.pb")
        arguments = [str(binary), "overhead.pb"]
        try:
            fused.kernel.save("overhead.so")
            arguments.append(os.path.abspath("overhead.so"))
        except sundog.SundogError as error:
            print("not saved as a library:", error)
        done = subprocess.run(arguments, capture_output=True, text=True)
        print(done.stdout, done.stderr)
        for line in done.stdout.splitlines():
            _, way, value = line.split()
            found[f"C, {way}"] = float(value)
    return found


def pieces(kernel, x):
    """What a call is made of."""
    call = kernel.run.__globals__
    y = torch.empty_like(x)
    device = x.get_device()
    stream = call["stream_of"](device)
    packed = call["pack"](call["kernel"], 0, stream, 0, x.data_ptr(), x.data_ptr(), y.data_ptr())
    shape, stride = tuple(x.shape), tuple(x.stride())
    checks = lambda: x.dtype is torch.float32 and x.shape == shape and x.get_device() == device and x.stride() == stride  # noqa: E731
    return {
        "piece: nothing": enqueue_us(lambda: None),
        "piece: checks of one tensor": enqueue_us(checks),
        "piece: its address": enqueue_us(x.data_ptr),
        "piece: memory of the output": enqueue_us(lambda: call["empty"](shape, stride, torch.float32)),
        "piece: the same by torch.empty_strided": enqueue_us(lambda: torch.empty_strided(shape, stride, dtype=x.dtype, device=x.device)),
        "piece: the stream": enqueue_us(lambda: call["stream_of"](device)),
        "piece: packing": enqueue_us(lambda: call["pack"](1, 2, 3, 4, 5, 6, 7)),
        "piece: the call into the library, with the launch": enqueue_us(lambda: call["launch"](packed)),
    }  # fmt: skip


def captured(call):
    """A CUDA graph of a call, and its output."""
    stream = torch.cuda.Stream()
    stream.wait_stream(torch.cuda.current_stream())
    with torch.cuda.stream(stream):
        for _ in range(3):
            call()
    torch.cuda.current_stream().wait_stream(stream)
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        output = call()
    return graph, output


def replay_us(graph, replays=30):
    times = []
    for _ in range(replays):
        start, end = torch.cuda.Event(enable_timing=True), torch.cuda.Event(enable_timing=True)
        start.record()
        graph.replay()
        end.record()
        end.synchronize()
        times.append(start.elapsed_time(end) * 1e3)
    return statistics.median(times)


def compiled(way, block, args):
    torch._dynamo.reset()
    if way == "eager":
        return block, None
    if way != "sundog":
        return torch.compile(block, mode="max-autotune-no-cudagraphs", dynamic=False), None
    report = st.Report()
    options = dict(report=report, results=args.results, target="h200", no_check=True, top=args.top, threads=args.threads)
    options.update(no_gpu=args.prepare, against=None if args.prepare else args.against, within=args.within)
    options.update(states=int(args.budget)) if args.budget.isdigit() else options.update(budget=args.budget)
    return torch.compile(block, backend="sundog", options=options, dynamic=False), report


def measure(family, shape, args, ways):
    block, inputs = blocks.example(family, dtype=torch.bfloat16, device="cuda", **SHAPES[shape], **SIZES[family])
    row = {"family": family, "shape": shape, "us": {}, "called_us": {}, "error": {}, "notes": {}}
    with torch.no_grad():
        exact = block.double()(*[t.double() for t in inputs])
        block = block.to(torch.bfloat16)
        graphs = {}
        for way in ways:
            start = time.time()
            try:
                call, report = compiled(way, block, args)
                output = call(*inputs)
                row["error"][way] = ((output.double() - exact).abs().max() / exact.abs().max()).item()
                row["called_us"][way] = enqueue_us(lambda c=call: c(*inputs), 20, 5)
                graphs[way] = captured(lambda c=call: c(*inputs))
                if report is not None:
                    row["report"] = str(report)
                    row["subgraphs"] = subgraphs(report)
            except Exception as error:  # noqa: BLE001  one way that fails leaves the others
                row["notes"][way] = f"{type(error).__name__}: {error}"[:600]
            row["notes"].setdefault(way, f"prepared in {time.time() - start:.0f} s")
        times = {way: [] for way in graphs}
        for order in (list(graphs), list(graphs)[::-1]):
            for way in order:
                times[way].append(replay_us(graphs[way][0]))
        row["us"] = {way: min(t) for way, t in times.items()}
    return row


def subgraphs(report):
    """What each subgraph took by which way, as the backend has timed it: cold inputs, many calls a graph."""
    rows = []
    for each in [*report.fused, *report.slower]:
        times = each.times
        row = {"operators": each.operators, "us": times.us if times else {}, "failed": times.failed if times else {}}
        row["runs"] = times.winner if times else "fused"
        kernel = each.kernel.kernel
        row.update(launches=kernel.launches, predicted_us=kernel.predicted_us, tuned_us=kernel.measured_us)
        row["structure"] = kernel.best.structure
        rows.append(row)
    return rows


def rank(args):
    """Times the candidates of each result on this GPU and keeps the fastest first."""
    for path in sorted(pathlib.Path(args.results).glob("*.pb")):
        kernel = sundog.Kernel.from_bytes(path.read_bytes())
        if kernel.measured_us or late(args):
            continue
        start = time.time()
        try:
            better = sundog.optimize(
                kernel.program, start=kernel.to_bytes(), no_search=True, target=kernel.target, no_check=True, cache=False,
                within=args.within, gpu=torch.cuda.current_device(),
            )  # fmt: skip
            better.save(path)
            candidates = [(c.predicted_us, c.measured_us) for c in better.result.report.candidates]
            print(f"{kernel.name}: {better.measured_us} us of {candidates}, {time.time() - start:.0f} s", flush=True)
        except sundog.SundogError as error:
            print(f"{kernel.name}: {error}")


def late(args):
    return time.time() > args.until


def prepare(args):
    for family in args.families:
        for shape in args.shapes:
            block, inputs = blocks.example(family, dtype=torch.bfloat16, device="meta", **SHAPES[shape], **SIZES[family])
            with torch.no_grad():
                call, report = compiled("sundog", block, args)
                call(*inputs)
            print(family, shape, report, sep="\n", flush=True)


def warm(args, ways):
    """Searches and compiles all that a measured run needs and times nothing, so that several processes may do it
    at once: results stay in --results, those of torch.compile in its cache."""
    for family in args.families:
        for shape in args.shapes:
            block, inputs = blocks.example(family, dtype=torch.bfloat16, device="cuda", **SHAPES[shape], **SIZES[family])
            with torch.no_grad():
                for way in ways:
                    start = time.time()
                    try:
                        call, report = compiled(way, block, args)
                        call(*inputs)
                    except Exception as error:  # noqa: BLE001
                        print(family, shape, way, f"{type(error).__name__}: {error}"[:300])
                    print(f"{family} {shape} {way}: {time.time() - start:.0f} s", flush=True)


def table(rows):
    lines = ["| block | shape | eager us | max-autotune us | sundog us | fused | error |", "|---|---|---|---|---|---|---|"]
    for row in rows:
        us = [f"{row['us'][w]:.1f}" if w in row["us"] else "-" for w in ("eager", "max-autotune", "sundog")]
        errors = " / ".join(f"{row['error'].get(w, float('nan')):.1e}" for w in ("eager", "sundog"))
        lines.append(f"| {row['family']} | {row['shape']} | {' | '.join(us)} | {sum(s['runs'] == 'fused' for s in row.get('subgraphs', []))} | {errors} |")
    return "\n".join(lines)


def subgraph_table(rows):
    """Each subgraph that has a kernel, by the clock of the backend."""
    ways = ("fused", "eager", "max-autotune")
    lines = [f"| block | operators | predicted us | {' us | '.join(ways)} us | runs |", "|---|---|---|---|---|---|---|"]
    for row in rows:
        for each in row.get("subgraphs", []):
            names = " ".join(each["operators"])
            times = [f"{each['us'][w]:.1f}" if w in each["us"] else "-" for w in ways]
            predicted = f"{each['predicted_us']:.1f}"
            shown = names if len(names) <= 60 else names[:57] + "..."
            lines.append(f"| {row['family']} {row['shape']} | {shown} | {predicted} | {' | '.join(times)} | {each['runs']} |")
    return "\n".join(lines)


def main():
    parser = argparse.ArgumentParser()
    for name, otherwise in (
        ("families", ",".join(SIZES)), ("shapes", ",".join(SHAPES)), ("results", "results"), ("budget", "5s"),
        ("out", "torch_bench.json"), ("baselines", "eager,max-autotune"), ("against", "eager"), ("within", "55s"),
        ("device", "cuda"),
    ):  # fmt: skip
        parser.add_argument("--" + name, default=otherwise)
    parser.add_argument("--top", type=int, default=6, help="candidates that are timed")
    parser.add_argument("--threads", type=int, default=0, help="of a search")
    parser.add_argument("--seconds", type=float, default=1e9, help="nothing new is begun after so long")
    parser.add_argument("--prepare", action="store_true")
    parser.add_argument("--warm", action="store_true", help="fill the caches, time nothing")
    parser.add_argument("--rank", action="store_true", help="time the candidates of the results first")
    parser.add_argument("--no-overhead", action="store_true")
    args = parser.parse_args()
    args.until = time.time() + args.seconds
    args.families, args.shapes = [f for f in args.families.split(",") if f], [s for s in args.shapes.split(",") if s]
    if args.prepare:
        return prepare(args)
    if torch.device(args.device).index is not None:
        torch.cuda.set_device(args.device)
    found = {"gpu": torch.cuda.get_device_name(), "torch": torch.__version__, "sundog": sundog.version(), "rows": []}
    ways = [*filter(None, args.baselines.split(",")), "sundog"]
    if args.warm:
        return warm(args, ways)
    if not args.no_overhead:
        found["launch_us"] = overhead(args.results)
        print(json.dumps(found["launch_us"], indent=1), flush=True)
    if args.rank:
        rank(args)
    for family in args.families:
        for shape in args.shapes:
            if late(args):
                continue
            found["rows"].append(measure(family, shape, args, ways))
            pathlib.Path(args.out).write_text(json.dumps(found, indent=1))
            print(table(found["rows"][-1:]).splitlines()[-1], flush=True)
    print(table(found["rows"]), "", subgraph_table(found["rows"]), sep="\n")


if __name__ == "__main__":
    main()
