"""`sundog bench` on the CPU: what it makes of programs in PyTorch is right, and is what a user would write."""

import json
import os
import pathlib
import subprocess
import sys
import tempfile
import unittest

import support

ROOT = pathlib.Path(__file__).resolve().parents[2]
TOOL = pathlib.Path(os.environ.get("SUNDOG_TOOL", ROOT / "build" / "release" / "sundog"))
PROGRAMS = ROOT / "benchmarks" / "programs"

# Each at a size of a moment, and calls that its functions must contain or not: (eager, sdpa).
CASES = {
    "rms_norm b=2 h=64 d=48": (["F.rms_norm(in_X, (64,)", "torch.matmul(t0, in_W)"], None),
    "rms_norm_qkv b=2 h=32 d=16": (["F.rms_norm(in_X, (32,), weight=in_g"], None),
    "layer_norm n=16 h=64": (["F.layer_norm(in_X, (64,), weight=in_w, bias=in_b"], None),
    "lora b=2 h=32 d=16 r=4": (["torch.matmul"], None),
    "gqa b=1 q=16 k=32 e=16": (["F.softmax"], ["F.scaled_dot_product_attention", "scale=1.0"]),
    "gqa_prefill heads=4 kv=2 s=8 l=16 e=8": (["F.softmax"], ["F.scaled_dot_product_attention"]),
    "qk_norm_safe b=1 q=8 k=16 e=8": (
        ["F.rms_norm(in_Q", "F.softmax"],
        ["F.scaled_dot_product_attention", "F.rms_norm(in_V"],
    ),
    "attention_prefill_causal g=2 q=16 e=8": (["torch.where"], ["is_causal=True"]),
    "mla g=2 s=4 l=8 c=16 e=8 r=4 f=8": (["F.softmax"], None),
    "mm_mm g=2 s=8 l=16 e=8": (["torch.matmul(t0"], None),
    "add_rms_norm b=2 h=32": (["F.rms_norm"], None),
    "own/gated_rms_norm n=3 t=2 h=33": (["F.silu", "F.rms_norm"], None),
    "own/scaled_residual_norm n=5 h=48": (["F.layer_norm", "F.rms_norm"], None),
    "own/attention_bias g=3 q=8 k=16 e=16": (["F.softmax"], ["attn_mask=in_B"]),
}

FORMS = ROOT / "tests" / "fuzz" / "corpus" / "program_text"


@support.needs_torch
@unittest.skipUnless(TOOL.exists(), f"{TOOL} is not built: NOT TESTED")
class Bench(unittest.TestCase):
    def bench(self, arguments, python=sys.executable):
        command = [str(TOOL), "bench", *arguments, "--python", python]
        command += ["--no-gpu", "--states", "50", "--quiet", "--json"]
        done = subprocess.run(command, capture_output=True, text=True, timeout=600)
        self.assertEqual(done.returncode, 0, done.stderr)
        return json.loads(done.stdout)

    def test_programs_are_computed_by_the_calls_that_a_user_would_write(self):
        with tempfile.TemporaryDirectory() as folder:
            for program in CASES:
                name = program.split()[0]
                text = (PROGRAMS / f"{name}.sd").read_text(encoding="utf-8")
                pathlib.Path(folder, pathlib.Path(name).name + ".sd").write_text(text, encoding="utf-8")
            lines = [f"row{i} {program.split('/')[-1]}" for i, program in enumerate(CASES)]
            pathlib.Path(folder, "list.txt").write_text("\n".join(lines), encoding="utf-8")
            methods = ["--methods", "eager,sdpa,cublas"]
            found = self.bench([f"{folder}/list.txt", "--out", f"{folder}/out", *methods])
            self.assertTrue(pathlib.Path(folder, "out", "bench.svg").read_text().startswith("<svg"))
            self.assertIn("a dry run", pathlib.Path(folder, "out", "bench.md").read_text())
        self.assertFalse(found["gpu"])
        for row, (program, (eager, sdpa)) in zip(found["rows"], CASES.items(), strict=True):
            with self.subTest(program):
                methods = {m["method"]: m for m in row["methods"]}
                for way, calls in (("eager", eager), ("sdpa", sdpa)):
                    self.assertEqual(methods[way]["right"], calls is not None, methods[way])
                    if calls is not None:
                        self.assertLess(methods[way]["error"], 1e-2)
                    for call in calls or []:
                        self.assertIn(call, row["texts"][way])
                self.assertEqual(methods["cublas"]["right"], "torch.matmul" in row["texts"]["eager"])

    def test_every_form_of_the_language_is_computed(self):
        with tempfile.TemporaryDirectory() as folder:
            for name in ("every_form", "window"):
                text = (FORMS / name).read_text(encoding="utf-8")
                pathlib.Path(folder, f"{name}.sd").write_text(text, encoding="utf-8")
            found = self.bench([folder, "--out", f"{folder}/out", "--methods", "eager"])
        for row in found["rows"]:
            with self.subTest(row["name"]):
                (eager,) = row["methods"]
                self.assertTrue(eager["right"], eager)
                self.assertLess(eager["error"], 1e-2, row["texts"]["eager"])

    def test_without_pytorch_there_is_a_reason_and_no_failure(self):
        with tempfile.TemporaryDirectory() as folder:
            program = pathlib.Path(folder, "softmax.sd")
            program.write_text((PROGRAMS / "softmax.sd").read_text(encoding="utf-8"), encoding="utf-8")
            arguments = [str(program), "-D", "n=4", "-D", "k=8", "--out", f"{folder}/out"]
            found = self.bench(arguments, python="/bin/false")
        self.assertTrue(any("baselines not run" in note for note in found["notes"]), found["notes"])


if __name__ == "__main__":
    unittest.main()
