"""Where a graph is cut, by a clock that goes by the operators of a piece, and by predictions that do."""

import unittest
from unittest import mock

import support

if support.HAVE_TORCH:
    import torch

    import sundog.torch as st
    from sundog.kernel import Kernel

    OPTIONS = dict(on="emulator" if support.DEVICE == "cpu" else "auto", cache=False, **support.QUICK)


def setUpModule():
    if support.HAVE_TORCH:
        support.set_device()


def count(graph, *words):
    """How many of the operators have a word in their names."""
    return sum(any(word in str(n.target) for word in words) for n in graph.nodes if n.op == "call_function")


class Clock:
    """Microseconds fused and eager, by a function of a piece's graph."""

    def __init__(self, us):
        self.us, self.asked = us, []

    def __call__(self, ways, inputs):
        self.asked.append(list(ways))
        fused, eager = self.us(ways["eager"].graph)
        return {way: {"fused": fused, "eager": eager}[way] for way in ways}


def rotated(x, cos, sin):
    first, second = x.chunk(2, -1)
    return x * cos + torch.cat((-second, first), -1) * sin


def heads(x, q, k, v, cos, sin):
    """A norm, three products that share it, and rotary embedding of two of them."""
    y = x * torch.rsqrt((x * x).mean(-1, keepdim=True) + 1e-6)
    return rotated(y @ q, cos, sin), rotated(y @ k, cos, sin), y @ v


def decode(x, q, k, v, past_k, past_v):
    """Attention of one position on those before it."""
    q, k, v = ((x @ w).view(2, 1, 2, 8).transpose(1, 2) for w in (q, k, v))
    k, v = torch.cat((past_k, k), 2), torch.cat((past_v, v), 2)
    return torch.nn.functional.scaled_dot_product_attention(q, k, v), k, v


def residual(x, w, v):
    """A product with its residual, and a normalised product of the sum."""
    z = x + x @ w
    return z, z * torch.rsqrt((z * z).mean(-1, keepdim=True) + 1e-6) @ v


@support.needs_torch
class Cuts(unittest.TestCase):
    def setUp(self):
        torch.manual_seed(0)
        self.args = (torch.randn(4, 32), *(torch.randn(32, n) for n in (16, 16, 16)), torch.randn(16), torch.randn(16))

    def compiled(self, function, args, us=None, **options):
        torch._dynamo.reset()
        clock, report = us and Clock(us), st.Report()
        call = torch.compile(function, backend="sundog", options={**OPTIONS, "report": report, "clock": clock, **options})
        with torch.no_grad():
            for got, want in zip(call(*args), function(*args)):
                torch.testing.assert_close(got, want, rtol=1e-4, atol=1e-4)
        return clock, report

    def pieces(self, report):
        """Products and norms of the fused subgraphs, in order."""
        words = [" ".join(f.operators) for f in report.fused]
        return sorted((w.count("mm"), w.count("mean"), w.count("cat")) for w in words)

    def test_a_slow_whole_is_cut_behind_its_products(self):
        def us(graph):
            if count(graph, "mm") == 3:
                return (74.3, 73.0) if count(graph, "cat") else (27.4, 54.0)
            return (1.9, 13.0) if not count(graph, "mm", "mean") else (60.0, 50.0)

        _, report = self.compiled(heads, self.args, us)
        self.assertEqual(self.pieces(report), [(0, 0, 1), (0, 0, 1), (3, 1, 0)])
        self.assertIn("cut behind its products", str(report))
        self.assertRegex(str(report), r"27\.40 \+ 1\.90 \+ 1\.90 us measured, 74\.30 us before: taken")

    def test_or_between_them_with_the_norm_in_each(self):
        def us(graph):
            if count(graph, "mm") == 1 and count(graph, "mean"):
                return 9.0, 30.0
            return 60.0, 70.0

        _, report = self.compiled(heads, self.args, us)
        self.assertEqual(self.pieces(report), [(1, 1, 0), (1, 1, 1), (1, 1, 1)])
        self.assertIn("cut between its products", str(report))

    def test_what_is_cut_is_cut_again(self):
        def us(graph):
            products, norms, tails = count(graph, "mm"), count(graph, "mean"), count(graph, "cat")
            if products == 3:
                return (74.0, 90.0) if tails else (60.0 if norms else 8.0, 70.0)
            return (2.0, 13.0) if not products else (70.0, 80.0)

        _, report = self.compiled(heads, self.args, us)
        self.assertEqual(self.pieces(report), [(0, 0, 1), (0, 0, 1), (0, 1, 0), (3, 0, 0)])

    def test_the_whole_is_kept_where_it_is_as_fast(self):
        def us(graph):
            return (30.5, 73.0) if count(graph, "mm") == 3 and count(graph, "cat") else (10.1, 13.0)

        _, report = self.compiled(heads, self.args, us)
        self.assertEqual(self.pieces(report), [(3, 1, 2)], "three pieces of 10.1 are within 2 % of it")
        self.assertIn("30.50 us before: not taken", str(report))
        self.assertFalse(any(each.taken for each in report.compared))

    def test_pieces_run_by_whoever_is_faster(self):
        def us(graph):
            if count(graph, "mm") == 3:
                return (74.0, 90.0) if count(graph, "cat") else (40.0, 20.0)
            return (2.0, 13.0) if not count(graph, "mm", "mean") else (70.0, 80.0)

        _, report = self.compiled(heads, self.args, us)
        self.assertEqual(self.pieces(report), [(0, 0, 1), (0, 0, 1)])
        self.assertIn("mm_2", [name for name, _, _ in report.eager])
        self.assertRegex(str(report), r"20\.00 \+ 2\.00 \+ 2\.00 us measured, 74\.00 us before: taken")

    def test_a_cut_counts_what_its_neighbours_become(self):
        args = self.args[0], torch.randn(32, 32), torch.randn(32, 16)

        def us(slow):
            def clock(graph):
                products, norms, sums = count(graph, "mm"), count(graph, "mean"), count(graph, "add")
                if norms and products:
                    return (slow if sums == 2 else 20.0), 90.0  # with the residual in front, or without
                return (30.0, 90.0) if sums else (8.0, 40.0)

            return clock

        _, report = self.compiled(residual, args, us(21.0))
        self.assertEqual(sorted(len(f.operators) for f in report.fused), [1, 7], "8 + 21 for 30 + 20")
        _, report = self.compiled(residual, args, us(60.0))
        self.assertEqual(sorted(len(f.operators) for f in report.fused), [2, 6], "8 + 60 for 30 + 20")

    def test_attention_is_joined_with_its_cache_where_that_is_faster(self):
        args = torch.randn(2, 1, 32), *(torch.randn(32, 16) for _ in range(3)), *(torch.randn(2, 2, 5, 8) for _ in range(2))

        def us(joined):
            def clock(graph):
                if count(graph, "attention"):
                    return (joined, 40.0) if count(graph, "cat") else (10.0, 12.0)
                return (5.5, 7.0) if count(graph, "cat") else (3.0, 9.0)

            return clock

        for joined, fused in ((14.0, ["cat", "cat_1", "attention"]), (25.0, ["attention"])):
            _, report = self.compiled(decode, args, us(joined))
            self.assertIn(fused, [f.operators for f in report.fused])
            words = f"{joined:.2f} us measured, 21.00 us before: {'taken' if joined < 21 else 'not taken'}"
            self.assertIn("joined with the concatenation of its operands", str(report))
            self.assertIn(words, str(report))

    def test_pieces_that_cannot_win_are_not_looked_at(self):
        clock, report = self.compiled(heads, self.args, lambda graph: (2.0, 50.0))
        self.assertEqual((len(clock.asked), report.compared), (1, []))

    def test_without_a_clock_predictions_decide(self):
        def predicted(kernel):
            text = kernel.program.text
            if "sum[" not in text:
                return 2.0
            return 27.0 if "select" not in text and text.count("sum[") == 4 else 74.0  # a square and three products

        with mock.patch.object(Kernel, "predicted_us", property(predicted)):
            _, report = self.compiled(heads, self.args, against=None)
        self.assertEqual(self.pieces(report), [(0, 0, 1), (0, 0, 1), (3, 1, 0)])
        self.assertRegex(str(report), r"27\.00 \+ 2\.00 \+ 2\.00 us predicted, 74\.00 us before: taken")

    def test_one_function_is_cut_only_if_that_is_asked_for(self):
        slow = Clock(lambda graph: (74.0, 90.0) if count(graph, "cat") and count(graph, "mm") else (9.0, 30.0))
        kept = st.optimize(heads, self.args, clock=slow, **OPTIONS)
        self.assertEqual((len(kept.kernels), slow.asked), (1, []))
        cut = st.optimize(heads, self.args, clock=slow, against="eager", **OPTIONS)
        self.assertGreater(len(cut.kernels), 1)
        self.assertEqual(len(st.optimize(heads, self.args, clock=slow, against="eager", cuts=False, **OPTIONS).kernels), 1)


if __name__ == "__main__":
    unittest.main()
