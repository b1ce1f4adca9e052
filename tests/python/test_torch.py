"""What PyTorch users count on: values, strides, aliasing, errors; each kernel runs in the emulator."""

import logging
import os
import subprocess
import sys
import tempfile
import unittest

import support

if support.HAVE_TORCH:
    import torch

    import sundog
    import sundog.torch as st

    OPTIONS = dict(on="emulator" if support.DEVICE == "cpu" else "auto", **support.QUICK)


def setUpModule():
    if support.HAVE_TORCH:
        support.set_device()


def compiled(function, **options):
    torch._dynamo.reset()
    report = st.Report()
    settings = {**OPTIONS, "report": report, **options}
    return torch.compile(function, backend="sundog", options=settings), report


def rms_norm_linear(x, g, w):
    return x * torch.rsqrt((x * x).mean(-1, keepdim=True) + 1e-6) * g @ w


@support.needs_torch
class Optimize(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        torch.manual_seed(0)
        cls.args = (torch.randn(4, 32), torch.randn(32), torch.randn(32, 16))
        cls.fused = st.optimize(rms_norm_linear, cls.args, **OPTIONS)

    def test_computes_the_same_in_one_kernel(self):
        torch.testing.assert_close(self.fused(*self.args), rms_norm_linear(*self.args), rtol=1e-5, atol=1e-5)
        self.assertEqual(self.fused.kernel.launches, 1)
        self.assertIn("1 fused subgraphs, 0 operators left", str(self.fused.report))
        self.assertIsNotNone(self.fused._direct, "one kernel is called without a graph around it")

    def test_what_does_not_fit_raises_one_clear_error(self):
        x, g, w = self.args
        for wrong, words in (
            ((x.half(), g, w), "type torch.float16; this kernel was compiled for torch.float32"),
            ((torch.randn(5, 32), g, w), r"shape \(5, 32\); this kernel was compiled for \(4, 32\)"),
            ((x, g), "takes 3 tensors and got 2"),
            ((x, g, None), "not a tensor"),
            ((x.to("meta"), g, w), "is on meta"),
        ):
            with self.assertRaisesRegex(sundog.SundogError, words):
                self.fused(*wrong)

    def test_other_memory_orders_and_places_are_copied_not_misread(self):
        x, g, w = self.args
        expected = rms_norm_linear(x, g, w)
        transposed = x.t().contiguous().t()
        shifted = torch.cat([torch.zeros(1), x.flatten()])[1:].view(4, 32)  # 4 bytes off
        wide = torch.randn(4, 64)
        wide[:, :32] = x
        for value in (transposed, shifted, wide[:, :32]):
            torch.testing.assert_close(self.fused(value, g, w), expected, rtol=1e-5, atol=1e-5)

    def test_vectors_are_stacked(self):
        def paired(x, y):
            return torch.stack((x * y, x + y)).sum(-1)

        x, y = torch.randn(32), torch.randn(32)
        torch.testing.assert_close(st.optimize(paired, (x, y), **OPTIONS)(x, y), paired(x, y))

    def test_norms_are_of_groups_and_of_vectors(self):
        nn = torch.nn.functional
        cases = {
            "groups": (lambda x, w, c: nn.group_norm(x, 2, w, c), (torch.randn(3, 4, 5), torch.randn(4), torch.randn(4))),
            "groups of images": (lambda x: nn.group_norm(x, 3) * 2, (torch.randn(2, 6, 3, 4),)),
            "normalized": (lambda x: nn.normalize(x, dim=-1), (torch.randn(5, 7),)),
            "order 1": (lambda x: x / torch.linalg.vector_norm(x, 1, dim=0), (torch.randn(5, 7),)),
            "largest": (lambda x: x / torch.linalg.vector_norm(x, torch.inf, dim=-1, keepdim=True), (torch.randn(5, 7),)),
        }
        for name, (function, args) in cases.items():
            with self.subTest(name):
                fused = st.optimize(function, args, **OPTIONS)
                self.assertIn("1 fused subgraphs, 0 operators left", str(fused.report))
                torch.testing.assert_close(fused(*args), function(*args), rtol=1e-4, atol=1e-5)

    def test_is_an_operator_of_pytorch(self):
        kernel = self.fused.kernels[0]
        torch.library.opcheck(kernel.op, self.args)
        outer = torch.compile(lambda x, g, w: torch.relu(self.fused.kernels[0](x, g, w)), backend="aot_eager", fullgraph=True)
        torch.testing.assert_close(outer(*self.args), torch.relu(rms_norm_linear(*self.args)), rtol=1e-5, atol=1e-5)

    def test_in_place_is_refused_by_name(self):
        def spoils(x):
            x.mul_(2)
            return x.sum(-1)

        with self.assertRaisesRegex(sundog.SundogError, "changes .* in place, by mul"):
            st.optimize(spoils, (torch.randn(4, 8),), **OPTIONS)

    def test_in_place_on_values_of_its_own_is_fine(self):
        def function(x):
            y = x * 2
            y += 1
            return y.sum(-1)

        x = torch.randn(4, 8)
        torch.testing.assert_close(st.optimize(function, (x,), **OPTIONS)(x), function(x))

    def test_strided_examples_are_compiled_for(self):
        base = torch.randn(16, 9)
        x = base[:, 1:].t()  # transposed and 4 bytes off
        row = torch.randn(16).expand(8, 16)  # stride 0

        def function(a, b):
            return torch.softmax(a + b, dim=-1)

        fused = st.optimize(function, (x, row), **OPTIONS)
        got, want = fused(x, row), function(x, row)
        torch.testing.assert_close(got, want, rtol=1e-5, atol=1e-6)
        self.assertEqual(got.stride(), want.stride())


@support.needs_torch
class Rounding(unittest.TestCase):
    """Between two operators PyTorch rounds to the type of the result: the program may, and in 16 bits only."""

    def program(self, dtype):
        torch.manual_seed(0)
        args = (torch.randn(4, 32).to(dtype), torch.randn(32).to(dtype), torch.randn(32, 16).to(dtype))
        return st.optimize(rms_norm_linear, args, **OPTIONS).kernel.program.text

    def test_operands_of_products_are_cast(self):
        self.assertIn("bf16) * w", self.program(torch.bfloat16).replace("arg_2", "w"))

    def test_nothing_is_cast_in_single_precision(self):
        self.assertNotIn("cast(", self.program(torch.float32))


@support.needs_torch
class Contract(unittest.TestCase):
    def test_aliases_are_those_of_eager(self):
        def function(x):
            doubled, again = x * 2 + 1, x * 2 + 1
            return doubled, again, x, x.t(), x / 1.0, x[1:]

        x = torch.randn(4, 8)
        fused, report = compiled(function)
        with torch.no_grad():
            got, want = fused(x), function(x)
        for g, w in zip(got, want):
            torch.testing.assert_close(g, w)
            self.assertEqual(g.stride(), w.stride())
        pointers = [t.untyped_storage().data_ptr() for t in got]
        self.assertNotEqual(pointers[0], pointers[1], "equal outputs are two buffers")
        self.assertIs(got[2], x)
        self.assertEqual(pointers[3], x.untyped_storage().data_ptr(), "a view is a view")
        self.assertEqual(pointers[5], x.untyped_storage().data_ptr())
        self.assertNotEqual(pointers[4], x.untyped_storage().data_ptr(), "x / 1.0 is a new tensor")
        self.assertGreaterEqual(len(report.fused), 1)

    def test_a_second_process_at_the_same_time(self):
        script = (
            "import support, torch, sundog.torch as st\n"
            "support.set_device()\n"
            "torch.manual_seed(0)\n"
            "x, w = torch.randn(4, 32), torch.randn(32, 16)\n"
            "f = lambda x, w: torch.softmax(x @ w, -1)\n"
            "on = 'emulator' if support.DEVICE == 'cpu' else 'auto'\n"
            "fused = st.optimize(f, (x, w), on=on, **support.QUICK)\n"
            "for _ in range(3):\n"
            "    torch.testing.assert_close(fused(x, w), f(x, w), rtol=1e-4, atol=1e-5)\n"
            "print('right')\n"
        )
        with tempfile.TemporaryDirectory() as folder:
            environment = {**os.environ, "SUNDOG_CACHE_DIR": folder}
            start = lambda: subprocess.Popen(  # noqa: E731
                [sys.executable, "-c", script], env=environment, cwd=os.path.dirname(__file__),
                stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
            )  # fmt: skip
            for process in [start(), start()]:
                out, err = process.communicate(timeout=600)
                self.assertEqual(out.strip(), "right", err)

    def test_in_place_functions_change_their_arguments(self):
        def function(x, y):
            x.add_(torch.softmax(y, -1))
            return x.exp()

        fused, report = compiled(function)
        x, y = torch.randn(4, 8), torch.randn(4, 8)
        other = x.clone()
        with torch.no_grad():
            got, want = fused(x, y), function(other, y)
        torch.testing.assert_close(got, want, rtol=1e-5, atol=1e-5)
        torch.testing.assert_close(x, other, rtol=1e-5, atol=1e-5)
        self.assertEqual(len(report.fused), 1)

    def test_what_is_not_supported_stays_eager_with_its_reason(self):
        def function(x):
            values, _ = torch.sort(torch.softmax(x, -1), dim=-1)
            return torch.softmax(values * 2, dim=-1)

        fused, report = compiled(function)
        x = torch.randn(4, 8)
        with torch.no_grad(), self.assertLogs("sundog", logging.WARNING) as logs:
            torch.testing.assert_close(fused(x), function(x), rtol=1e-5, atol=1e-5)
        told = [line for line in logs.output if "aten.sort" in line]
        self.assertEqual(len(told), 1, logs.output)
        self.assertIn("it has no form in a program", told[0])
        self.assertEqual(len(report.fused), 2)
        strict, _ = compiled(function, fullgraph=True)
        with torch.no_grad(), self.assertRaisesRegex(Exception, "not everything can be fused: .*sort"):
            strict(x)

    def test_symbolic_sizes_do_not_crash(self):
        def function(x):
            return torch.softmax(x * 3, dim=-1)

        torch._dynamo.reset()
        fused = torch.compile(function, backend="sundog", options=OPTIONS, dynamic=True)
        with torch.no_grad():
            for batch in (2, 3, 2, 5):
                x = torch.randn(batch, 8)
                torch.testing.assert_close(fused(x), function(x), rtol=1e-5, atol=1e-5)

    def test_gradients_flow(self):
        def function(x, w):
            return torch.softmax(x @ w, -1).pow(2).sum()

        fused, report = compiled(function)
        x, w = torch.randn(4, 8, requires_grad=True), torch.randn(8, 8, requires_grad=True)
        got = torch.autograd.grad(fused(x, w), (x, w))
        for g, e in zip(got, torch.autograd.grad(function(x, w), (x, w))):
            torch.testing.assert_close(g, e, rtol=1e-4, atol=1e-5)

    def test_random_numbers_and_empty_tensors_are_left_alone(self):
        def function(x):
            return torch.nn.functional.dropout(torch.softmax(x, -1), 0.5), x[:0] * 2

        fused, _ = compiled(function)
        x = torch.randn(4, 8)
        with torch.no_grad():
            torch.manual_seed(3)
            got = fused(x)
            torch.manual_seed(3)
            want = function(x)
        self.assertEqual(got[1].shape, want[1].shape)
        kept = got[0] != 0
        torch.testing.assert_close(got[0][kept], 2 * torch.softmax(x, -1)[kept], rtol=1e-5, atol=1e-5)

    def test_prompts_leave_large_products_to_the_library(self):
        def function(x, w):
            return torch.relu(x @ w)

        fused, report = compiled(function)
        with torch.no_grad():
            fused(torch.randn(512, 16), torch.randn(16, 16))
        self.assertEqual([name for name, _, _ in report.eager][0], "mm")
        self.assertIn("512 rows", report.eager[0][2])

    def test_masks_windows_and_layouts(self):
        def function(q, k, v, mask, bias):
            s = q @ k.transpose(-1, -2) * 0.25 + bias
            rows = torch.arange(6, device=s.device)[:, None]
            s = s.masked_fill(torch.arange(6, device=s.device)[None, :] > rows, float("-inf"))
            s = torch.where(mask, s, -1e4)
            return torch.stack((torch.softmax(s, -1) @ v, v.flip(0) if False else v * 2), 1)[:, :, ::2]

        args = [torch.randn(2, 6, 8) for _ in range(3)] + [torch.rand(6, 6) > 0.2, torch.randn(6)]
        fused, report = compiled(function)
        with torch.no_grad():
            got, want = fused(*args), function(*args)
        torch.testing.assert_close(got, want, rtol=1e-4, atol=1e-5)
        self.assertEqual(got.stride(), want.stride())


@support.needs_torch
@unittest.skipUnless(support.ON_GPU, "no GPU: NOT TESTED")
class OnGpu(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        torch.manual_seed(0)
        cls.args = (torch.randn(4, 32), torch.randn(32), torch.randn(32, 16))
        cls.fused = st.optimize(rms_norm_linear, cls.args, **OPTIONS)

    def test_is_captured_into_a_cuda_graph(self):
        x, g, w = (t.clone() for t in self.args)
        graph = torch.cuda.CUDAGraph()
        with torch.cuda.device(support.DEVICE), torch.cuda.graph(graph, stream=torch.cuda.Stream()):
            y = self.fused(x, g, w)
        for seed in range(3):
            torch.manual_seed(seed)
            x.copy_(torch.randn(4, 32))
            graph.replay()
            torch.testing.assert_close(y, rms_norm_linear(x, g, w), rtol=1e-3, atol=1e-3)

    def test_launches_on_the_current_stream(self):
        x, g, w = self.args
        stream = torch.cuda.Stream(support.DEVICE)
        stream.wait_stream(torch.cuda.current_stream(support.DEVICE))
        with torch.cuda.stream(stream):
            torch.cuda._sleep(50_000_000)
            late = x * 1
            y = self.fused(late, g, w)  # right only behind the copy in the same stream
        self.assertFalse(stream.query(), "a launch waits for nothing")
        stream.synchronize()
        torch.testing.assert_close(y, rms_norm_linear(x, g, w), rtol=1e-3, atol=1e-3)

    def test_saved_kernels_run_without_the_library(self):
        with tempfile.TemporaryDirectory() as folder:
            path = os.path.join(folder, "k.so")
            self.fused.kernel.save(path)
            kernel = self.fused.kernels[0]
            saved = st.FusedKernel(sundog.load(path), kernel.inputs, kernel.outputs)
            torch.testing.assert_close(saved(*self.args), self.fused(*self.args), rtol=0, atol=0)


if __name__ == "__main__":
    unittest.main()
