"""Which of the ways to compute a subgraph is kept, by a clock that says what the test wants."""

import time
import unittest
from unittest import mock

import support

if support.HAVE_TORCH:
    import torch

    import sundog
    import sundog.torch as st
    from sundog.torch import measure

    OPTIONS = dict(on="emulator" if support.DEVICE == "cpu" else "auto", **support.QUICK)


def setUpModule():
    if support.HAVE_TORCH:
        support.set_device()


class Says:
    """A clock: microseconds by way, or a function of the inputs' number that gives them."""

    def __init__(self, us):
        self.us, self.asked = us, []

    def __call__(self, ways, inputs):
        self.asked.append((list(ways), len(inputs)))
        us = self.us(len(inputs)) if callable(self.us) else self.us
        return {way: us[way] for way in ways}


def normed_product(x, g, w):
    return torch.relu(x * torch.rsqrt((x * x).mean(-1, keepdim=True) + 1e-6) * g) @ w


@support.needs_torch
class Measured(unittest.TestCase):
    def setUp(self):
        torch.manual_seed(0)
        self.args = (torch.randn(4, 32), torch.randn(32), torch.randn(32, 16))

    def compiled(self, us, function=normed_product, **options):
        torch._dynamo.reset()
        clock, report = Says(us), st.Report()
        settings = {**OPTIONS, "report": report, "clock": clock, "cache": False, **options}
        call = torch.compile(function, backend="sundog", options=settings)
        with torch.no_grad():
            torch.testing.assert_close(call(*self.args), function(*self.args), rtol=1e-4, atol=1e-4)
        return clock, report

    def test_what_is_faster_runs_fused_and_the_report_has_both_times(self):
        clock, report = self.compiled({"fused": 2.0, "eager": 9.5})
        self.assertEqual(clock.asked, [(["fused", "eager"], 3)])
        self.assertEqual((len(report.fused), report.slower), (1, []))
        self.assertIn("2.00 us fused, 9.50 us eager", str(report))
        self.assertIn("timed against eager", str(report))

    def test_what_is_slower_stays_with_pytorch_and_the_report_has_both_times(self):
        clock, report = self.compiled({"fused": 9.0, "eager": 4.0})
        self.assertEqual(report.fused, [])
        self.assertIn("9.00 us fused, 4.00 us eager: runs by PyTorch (eager)", str(report))
        for _, _, reason in report.eager:
            self.assertTrue("PyTorch's own is faster" in reason or "nothing to be fused with" in reason, reason)

    def test_of_a_group_that_loses_what_leads_up_to_its_product_may_still_win(self):
        # Three inputs: the whole; two: the norm, then the product.
        parts = iter([{"fused": 1.0, "eager": 8.0}, {"fused": 5.0, "eager": 3.0}])
        clock, report = self.compiled(lambda n: {"fused": 9.0, "eager": 8.0} if n == 3 else next(parts))
        self.assertEqual([len(names) for names in (f.operators for f in report.fused)], [7])
        self.assertEqual([name for name, _, _ in report.eager], ["mm"])
        self.assertEqual([each.operators for each in report.slower], [["mm"]])
        self.assertIn("1.00 + 3.00 us measured, 8.00 us before: taken", str(report))

    def test_a_tie_goes_to_what_launches_less(self):
        _, report = self.compiled({"fused": 10.1, "eager": 10.0})
        self.assertEqual(len(report.fused), 1, "one kernel for eight operators")
        _, report = self.compiled({"fused": 10.3, "eager": 10.0}, fullgraph=True)
        self.assertEqual(report.fused, [], "more than the 2 % of a tie; and a choice is not a lack")
        _, report = self.compiled({"fused": 9.9, "eager": 10.0}, function=lambda x, g, w: x @ w)
        self.assertEqual(report.fused, [], "a product alone, of which the library's kernel is as good")
        _, report = self.compiled({"fused": 9.7, "eager": 10.0}, function=lambda x, g, w: x @ w)
        self.assertEqual(len(report.fused), 1)

    def test_what_has_no_time_is_not_taken(self):
        _, report = self.compiled({"fused": "output 0 is 1.0e+00 off PyTorch's", "eager": 4.0})
        self.assertEqual(report.fused, [])
        self.assertIn("fused not timed (output 0 is 1.0e+00 off", str(report))
        _, report = self.compiled({"fused": 3.0, "eager": "cannot be captured"})
        self.assertEqual(len(report.fused), 1, "with nothing to compare with the kernel stands")

    def test_inductor_is_a_rival_where_it_is_asked_for(self):
        made = []

        def inductor(module, inputs):
            made.append(len(inputs))
            return lambda *tensors: module(*tensors).t().contiguous().t()  # in a memory order of its own

        with mock.patch.object(measure, "inductor", inductor):
            clock, report = self.compiled({"fused": 3.0, "eager": 9.0, "max-autotune": 2.0}, against="max-autotune")
            self.assertEqual(clock.asked, [(["fused", "eager", "max-autotune"], 3)])
            self.assertEqual((made, len(report.fused), report.eager), ([3], 0, []))
            self.assertIn("runs by PyTorch (max-autotune)", str(report))
            _, report = self.compiled({"fused": 2.0, "eager": 9.0, "max-autotune": 3.0}, against="max-autotune")
            self.assertEqual(len(report.fused), 1)

    def test_times_are_kept_and_a_damaged_entry_is_measured_anew(self):
        function = lambda x, g, w: torch.softmax(x * g, -1) @ w  # noqa: E731  of this test alone
        first, _ = self.compiled({"fused": 2.0, "eager": 9.0}, function, cache=True)
        again, report = self.compiled({"fused": 9.0, "eager": 2.0}, function, cache=True)
        self.assertEqual((len(first.asked), len(again.asked), len(report.fused)), (1, 0, 1))
        for path in (sundog.cache_folder() / "times").glob("*.json"):
            path.write_text('{"fused": 1')
        anew, report = self.compiled({"fused": 2.5, "eager": 9.0}, function, cache=True)
        self.assertEqual((len(anew.asked), len(report.fused)), (1, 1))

    def test_equal_subgraphs_are_timed_once(self):
        def function(x, g, w):
            return torch.softmax(torch.softmax(x @ w, -1) @ w.t(), -1)

        clock, report = self.compiled({"fused": 2.0, "eager": 9.0}, lambda x, g, w: function(function(x, g, w), g, w))
        # A product, twice what softmax and product with the other matrix make, with this one, and a softmax.
        self.assertEqual((len(report.fused), len(clock.asked)), (5, 4), report)

    def test_without_a_gpu_or_when_asked_not_to_nothing_is_timed_and_that_is_said(self):
        if support.DEVICE == "cpu":
            _, report = self.compiled({}, clock=None)
            self.assertIn("not timed: no GPU", str(report))
            self.assertEqual(len(report.fused), 1)
        clock, report = self.compiled({}, against=None)
        self.assertEqual((clock.asked, len(report.fused)), ([], 1))
        self.assertIn("not timed: asked not to", str(report))
        with self.assertRaisesRegex(Exception, "against='inductor' is nothing to time against"):
            self.compiled({}, against="inductor")

    def test_one_function_is_timed_only_if_that_is_asked_for(self):
        clock = Says({"fused": 9.0, "eager": 2.0})
        fused = st.optimize(normed_product, self.args, clock=clock, **OPTIONS)
        self.assertEqual((clock.asked, len(fused.kernels)), ([], 1))
        fused = st.optimize(normed_product, self.args, clock=clock, against="eager", cache=False, **OPTIONS)
        self.assertEqual(fused.kernels, [])

    def test_outputs_that_are_no_rounding_apart_are_told(self):
        want = torch.tensor([1.0, -4.0, float("nan"), float("inf")])
        self.assertIsNone(measure.disagreement(want + 0.1, want))
        self.assertIn("output 0 is 3.0e-01 off", measure.disagreement(want + 0.3, want))
        self.assertIn("off PyTorch's", measure.disagreement(want * float("nan"), want))
        self.assertIn("output 1", measure.disagreement((want, want + 1), (want, want)))


@support.needs_torch
class Bounded(unittest.TestCase):
    def test_a_search_ends_within_its_time_with_the_best_so_far(self):
        program = sundog.Program.parse(
            """program block(b = 8, s = 512, h = 256, e = 64, d = 256) {
              input X: f16[b, h]
              input K: f16[b, s, e]
              input Q: f16[h, e]
              input V: f16[b, s, d]
              q[b, e] = sum[h](X * Q)
              p[b, s] = exp(sum[e](q * K) - max[s](sum[e](q * K)))
              output Y: f16[b, d] = sum[s](p * V) / sum[s](p)
            }"""
        )
        start = time.monotonic()
        kernel = program.optimize(budget="300s", within="2s", no_gpu=True, no_check=True, cache=False)
        self.assertLess(time.monotonic() - start, 60)
        self.assertEqual(kernel.result.report.stop_reason, "interrupted")
        self.assertIn("right because: equivalent", kernel.explain())
        with self.assertRaisesRegex(sundog.SundogError, "within='soon' is no time"):
            program.optimize(within="soon")


if __name__ == "__main__":
    unittest.main()
