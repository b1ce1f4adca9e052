"""Programs, kernels and files from Python, without PyTorch."""

import os
import pathlib
import subprocess
import sys
import tempfile
import unittest

import numpy as np

import support
import sundog as sd
from sundog import _wire

RNG = np.random.default_rng(0)


def small_program(dtype="f32"):
    x = sd.input("x", n=4, h=32, dtype=dtype)
    w = sd.input("w", h=32, d=8, dtype=dtype)
    return sd.sum(x * sd.rsqrt(sd.mean(x * x, "h") + 1e-6) * w, "h")


class Builder(unittest.TestCase):
    def test_text_names_what_is_shared(self):
        x = sd.input("x", n=4, h=8)
        r = sd.rsqrt(sd.mean(x * x, "h")).named("r")
        self.assertEqual(
            sd.program_text(out=x * r * r),
            "program tensor_program(n = 4, h = 8) {\n"
            "  input x: f16[n, h]\n"
            "  r[n] = rsqrt(mean[h]((x * x)))\n"
            "  output out: f16[n, h] = ((x * r) * r)\n"
            "}\n",
        )

    def test_every_operator_is_read_and_computes_what_numpy_does(self):
        a = RNG.uniform(0.5, 2, 6)
        cases = {
            "exp": np.exp, "log": np.log, "sqrt": np.sqrt, "rsqrt": lambda v: 1 / np.sqrt(v), "square": np.square,
            "abs": np.abs, "relu": lambda v: np.maximum(v, 0), "sigmoid": lambda v: 1 / (1 + np.exp(-v)),
            "silu": lambda v: v / (1 + np.exp(-v)), "softplus": lambda v: np.log1p(np.exp(v)), "tanh": np.tanh,
            "sin": np.sin, "cos": np.cos,
        }  # fmt: skip
        x = sd.input("x", n=6, dtype="f64")
        outputs = {name: getattr(sd, name)(x - 1.0 if name == "relu" else x) for name in cases}
        values = sd.program(**outputs).evaluate(a)
        for (name, function), value in zip(cases.items(), values):
            np.testing.assert_allclose(value, function(a - 1 if name == "relu" else a), rtol=1e-12, err_msg=name)

    def test_indices_conditions_and_reductions(self):
        a = RNG.normal(size=(5, 5))
        s = sd.input("s", q=5, k=5, dtype="f64")
        causal = sd.where(sd.index("k", 5) <= sd.index("q", 5), s, float("-inf"))
        moved = s.at(k=sd.index("q", 5) * -1 + 4)
        p, v, m, d = sd.program(sd.softmax(causal, "k"), sd.var(s, "k"), sd.min(s, "q"), moved).evaluate(a)
        masked = np.where(np.tril(np.ones((5, 5), bool)), a, -np.inf)
        e = np.exp(masked - masked.max(1, keepdims=True))
        np.testing.assert_allclose(p, e / e.sum(1, keepdims=True))
        np.testing.assert_allclose(v, a.var(1))
        np.testing.assert_allclose(m, a.min(0))
        np.testing.assert_allclose(d, a[np.arange(5), 4 - np.arange(5)])

    def test_mistakes_are_told_in_words(self):
        x, y = sd.input("x", n=4), sd.input("y", n=5)
        for wrong, words in (
            (lambda: x + y, "axis n is 4 long in one operand and 5 in another"),
            (lambda: sd.sum(x, "k"), "k, which is no axis"),
            (lambda: sd.input("z", n=4, dtype="float16"), "no type float16"),
            (lambda: sd.program(x + sd.input("x", n=4)), "two inputs named x"),
            (lambda: sd.program(x).optimize(bugdet="1s"), "no option bugdet"),
            (lambda: sd.program(x).optimize(budget="soon"), "is no time"),
            (lambda: sd.program(x)(np.zeros(4)) if False else sd.program(x).evaluate(np.zeros(3)), "shape (3,), not (4,)"),
        ):
            with self.assertRaises(sd.SundogError) as caught:
                wrong()
            self.assertIn(words, str(caught.exception))
        with self.assertRaises(TypeError):
            bool(x < 1)

    def test_errors_of_text_have_a_place(self):
        with self.assertRaises(sd.SundogError) as caught:
            sd.Program.parse("program p(n = 4) {\n  input x: f32[n]\n  output y: f32[n] = z\n}", "p.sd")
        self.assertEqual((caught.exception.file, caught.exception.line, caught.exception.code), ("p.sd", 3, "bad input"))


class Kernels(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.kernel = sd.optimize(small_program(), target="h200", no_gpu=True, **support.QUICK)

    def test_runs_in_the_emulator_as_the_program_says(self):
        x, w = RNG.normal(size=(4, 32)).astype("f4"), RNG.normal(size=(32, 8)).astype("f4")
        np.testing.assert_allclose(self.kernel(x, w=w), self.kernel.program.evaluate(x, w), rtol=1e-5, atol=1e-5)
        with self.assertRaisesRegex(sd.SundogError, r"x has the shape \(4, 31\), not \(4, 32\)"):
            self.kernel(x[:, :31], w)

    def test_says_what_it_is(self):
        kernel = self.kernel
        self.assertEqual(kernel.verdict.answer, 1)
        self.assertIn('extern "C"', kernel.cuda_source)
        self.assertIn("ugraph", kernel.mugraph)
        self.assertTrue(kernel.svg.startswith("<svg"))
        self.assertIn("<table>", kernel._repr_html_())
        for word in ("chosen:", "worth:", "right because: equivalent", "search:"):
            self.assertIn(word, kernel.explain())
        self.assertIn(kernel.best.structure, repr(kernel))
        self.assertIsNone(kernel.measured_us)

    def test_repro_makes_the_same_kernel(self):
        scope = {}
        exec(self.kernel.repro().replace("print(", "text = ("), scope)
        self.assertEqual(scope["kernel"].mugraph, self.kernel.mugraph)

    def test_is_stored_and_loaded(self):
        with tempfile.TemporaryDirectory() as folder:
            path = pathlib.Path(folder) / "result.pb"
            self.kernel.save(path)
            again = sd.load(folder)
            self.assertEqual(again.cuda_source, self.kernel.cuda_source)
            self.assertEqual(sd.load(path).mugraph, self.kernel.mugraph)
            (path.with_name("program.sd")).write_text(self.kernel.program.text)
            (path.with_name("best.mu")).write_text(self.kernel.mugraph)
            self.assertEqual(sd.load(path.with_name("best.mu")).mugraph, self.kernel.mugraph)
            self.assertEqual(sd.load(path.with_name("program.sd"), n=7).axes["n"], 7)
            for name in ("absent.sd", "absent.pb", "what.txt"):
                with self.assertRaises(sd.SundogError):
                    sd.load(path.with_name(name))
            path.write_bytes(b"\xff" * 10)
            with self.assertRaises(sd.SundogError):
                sd.load(path)

    def test_is_saved_as_a_library(self):
        with tempfile.TemporaryDirectory() as folder:
            path = os.path.join(folder, "k.so")
            try:
                self.kernel.save(path, archs=["sm_90a"])
            except sd.SundogError as error:
                self.assertEqual(error.code, "tool missing")  # no CUDA compiler
                self.skipTest("no CUDA compiler: NOT TESTED")
            saved = sd.load(path)
            self.assertEqual(saved.cuda_source, self.kernel.cuda_source)
            self.assertEqual([s.shape for s in saved.inputs], [(4, 32), (32, 8)])
            if not os.path.exists("/dev/nvidiactl"):
                with self.assertRaisesRegex(sd.SundogError, "there is no CUDA driver"):
                    saved.launch(None, None)

    def test_strides_offsets_and_bf16(self):
        program = sd.Program.parse(
            "program p(n = 4, h = 8) {\n  input x: bf16[n, h] stride(1, 4)\n  input g: f32[n, h] stride(0, 1)\n"
            "  output y: bf16[n, h] stride(1, 4) = 2 * x + g\n}"
        )
        kernel = program.optimize(target="h200", no_gpu=True, **support.QUICK)
        x = RNG.integers(-8, 8, (4, 8)).astype("f4")
        g = np.broadcast_to(RNG.integers(-8, 8, 8).astype("f4"), (4, 8))
        np.testing.assert_array_equal(kernel(x, g), 2 * x + g)


class Cache(unittest.TestCase):
    def test_is_used_heals_and_is_shared_by_processes(self):
        with tempfile.TemporaryDirectory() as folder:
            script = (
                "import sundog as sd\nx = sd.input('x', n=4, h=32, dtype='f32')\n"
                "k = sd.optimize(sd.sum(x * x, 'h'), target='h200', no_gpu=True, states=500, no_check=True)\n"
                "print(len(k.cuda_source))"
            )
            environment = {**os.environ, "SUNDOG_CACHE_DIR": folder}
            run = lambda: subprocess.Popen([sys.executable, "-c", script], env=environment, stdout=subprocess.PIPE)  # noqa: E731
            both = [run(), run()]
            texts = {p.communicate()[0] for p in both}
            self.assertEqual(len(texts), 1)
            self.assertEqual([p.returncode for p in both], [0, 0])
            (entry,) = (pathlib.Path(folder) / "results").iterdir()
            entry.write_bytes(entry.read_bytes()[:100])
            self.assertEqual({run().communicate()[0]}, texts)
            self.assertGreater(entry.stat().st_size, 100)


class Wire(unittest.TestCase):
    def test_messages_survive(self):
        message = _wire.message("OptimizeOptions", target="h200", states=2**40, error_log2=-60.5, no_gpu=True, gpu=-1)
        again = _wire.decode("OptimizeOptions", message.to_bytes())
        self.assertEqual(again.to_bytes(), message.to_bytes())
        self.assertEqual((again.states, again.error_log2, again.no_gpu, again.gpu), (2**40, -60.5, True, -1))

    def test_a_program_goes_through_both_codecs(self):
        program = sd.program(small_program())
        again = _wire.decode("Program", program.to_bytes()).to_bytes()
        self.assertEqual(sd.Program.from_bytes(again).text, program.text)

    def test_every_truncation_is_told(self):
        data = sd.program(small_program()).to_bytes()
        for size in range(1, len(data), 7):
            try:
                _wire.decode("Program", data[:size])
            except ValueError:
                continue


class Worker(unittest.TestCase):
    def test_optimizes_in_a_process_of_its_own(self):
        from sundog.optimizer import _apart, options_message

        lines = []
        options = options_message(dict(target="h200", no_gpu=True, **support.QUICK)).to_bytes()
        kernel = _apart(sd.program(small_program()), options, None, lines.append)
        self.assertEqual(kernel.verdict.answer, 1)
        self.assertTrue(any("best" in line for line in lines), lines)
        wrong = options_message(dict(target="h999", no_gpu=True)).to_bytes()
        with self.assertRaisesRegex(sd.SundogError, "h999"):
            _apart(sd.program(small_program()), wrong, None, lines.append)


if __name__ == "__main__":
    unittest.main()
