"""Transformer blocks of three families under backend="sundog", against eager: every fused subgraph is
searched for, verified, emitted and run in the emulator."""

import unittest

import support

if support.HAVE_TORCH:
    import torch

    import blocks
    import sundog.torch as st


@support.needs_torch
class Blocks(unittest.TestCase):
    # Fused subgraphs that must be found; what is left to PyTorch is in the report.
    CASES = (
        ("llama", dict(batch=2, length=8), "float32", 1e-5, 4),
        ("llama", dict(batch=1, length=1, past=16), "bfloat16", 4e-2, 4),
        ("gpt2", dict(batch=2, length=8), "float32", 1e-5, 4),
        ("gpt2", dict(batch=1, length=1, past=16), "float16", 4e-3, 4),
        ("qk_norm_lora", dict(batch=2, length=8), "float32", 1e-5, 4),
        ("qk_norm_lora", dict(batch=1, length=1, past=16), "bfloat16", 4e-2, 4),
    )

    def test_families_match_eager(self):
        for family, shape, dtype, tolerance, fused in self.CASES:
            with self.subTest(family=family, dtype=dtype, **shape), torch.no_grad():
                block, inputs = blocks.example(family, dtype=getattr(torch, dtype), device=support.DEVICE, **shape)
                report = st.Report()
                torch._dynamo.reset()
                # One family with the search for the fastest cuts, which takes its time in an emulator.
                options = dict(cuts=family == "llama", report=report, **support.QUICK)
                options["on"] = "emulator" if support.DEVICE == "cpu" else "auto"
                got = torch.compile(block, backend="sundog", options=options)(*inputs)
                wide = [t.double() if t.is_floating_point() else t for t in inputs]
                exact = block.double()(*wide)
                scale = exact.abs().max()
                self.assertLess((got.double() - exact).abs().max() / scale, tolerance, report)
                self.assertEqual(got.dtype, getattr(torch, dtype))
                self.assertGreaterEqual(len(report.fused), fused, report)
                for _, _, reason in report.eager:
                    self.assertIn("nothing better", reason)


if __name__ == "__main__":
    unittest.main()
