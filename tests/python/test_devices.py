"""Two GPUs in one process: a kernel is compiled and launched where its tensors are, whatever device is the current one.

SUNDOG_TEST_DEVICE=cuda:1 runs all other tests on the second GPU too."""

import os
import tempfile
import threading
import unittest

import support

if support.HAVE_TORCH:
    import torch

    import sundog
    import sundog.torch as st
    from sundog.torch import measure

    GPUS = torch.cuda.device_count() if support.ON_GPU else 0
    QUICK = {"no_gpu": True, "against": None, "keep_unfused": True, **support.QUICK}
else:
    GPUS = 0


def norm_linear(x, g, w):
    return x * torch.rsqrt((x * x).mean(-1, keepdim=True) + 1e-6) * g @ w


def two_kernels(x, w):
    return torch.softmax(torch.softmax(x, -1) @ w, -1)


def made(seed, device):
    torch.manual_seed(seed)
    return [torch.randn(shape).to(device) for shape in ((4, 32), (32,), (32, 16))]


@support.needs_torch
@unittest.skipUnless(GPUS > 1, "fewer than two GPUs: NOT TESTED")
class TwoDevices(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.devices = [torch.device("cuda", i) for i in range(2)]
        # Timed, each on its own.
        cls.fused = [st.optimize(norm_linear, made(0, d), top=1, **support.QUICK) for d in cls.devices]

    def setUp(self):
        torch.cuda.set_device(0)

    def assertRight(self, fused, function, args):
        got = fused(*args)
        self.assertEqual(got.device, args[0].device)
        torch.testing.assert_close(got, function(*args), rtol=1e-3, atol=1e-3)

    def test_each_is_compiled_for_its_device(self):
        for device, fused in zip(self.devices, self.fused):
            self.assertEqual([k.device for k in fused.kernels], [device])
            self.assertEqual(fused.kernels[0]._loaded.device, device.index)
            self.assertTrue(fused.kernel.measured_us, fused.kernel.result.report)
            other = self.devices[1 - device.index]
            with self.assertRaisesRegex(sundog.SundogError, f"is on {other}; this kernel was compiled for {device}"):
                fused(*made(0, other))

    def test_used_alternately_whatever_device_is_current(self):
        for seed in range(12):
            torch.cuda.set_device(seed // 2 % 2)
            self.assertRight(self.fused[seed % 2], norm_linear, made(seed, self.devices[seed % 2]))
            self.assertEqual(torch.cuda.current_device(), seed // 2 % 2)

    def test_memory_between_kernels_is_on_the_device(self):
        for device in self.devices[::-1]:
            x, _, w = made(3, device)
            args = (x, w[:, :8].contiguous())
            fused = st.optimize(two_kernels, args, **{**QUICK, "states": 1})
            self.assertTrue(fused.kernels[0].workspace_bytes, fused.report)
            self.assertRight(fused, two_kernels, args)

    def test_streams_of_both_at_once(self):
        streams = [torch.cuda.Stream(d) for d in self.devices]
        args = [made(5, d) for d in self.devices]
        for device in self.devices:
            torch.cuda.synchronize(device)
        results = []
        for stream, fused, values in zip(streams, self.fused, args):
            with torch.cuda.stream(stream):
                torch.cuda._sleep(200_000_000)
                late = values[0] * 2
                results.append(fused(late, *values[1:]))
        self.assertEqual([stream.query() for stream in streams], [False, False], "a launch waits for nothing")
        for stream, got, values in zip(streams, results, args):
            stream.synchronize()
            torch.testing.assert_close(got, norm_linear(values[0] * 2, *values[1:]), rtol=1e-3, atol=1e-3)

    def test_captured_on_the_second(self):
        x, g, w = made(1, self.devices[1])
        graph = torch.cuda.CUDAGraph()
        with torch.cuda.device(1), torch.cuda.graph(graph, stream=torch.cuda.Stream()):
            y = self.fused[1](x, g, w)
        for seed in range(3):
            x.copy_(made(seed, self.devices[1])[0])
            graph.replay()
            torch.testing.assert_close(y, norm_linear(x, g, w), rtol=1e-3, atol=1e-3)

    def test_saved_kernels_too(self):
        with tempfile.TemporaryDirectory() as folder:
            path = os.path.join(folder, "k.so")
            self.fused[1].kernel.save(path)
            for device in self.devices[::-1]:
                kernel = self.fused[device.index].kernels[0]
                saved = st.FusedKernel(sundog.load(path), kernel.inputs, kernel.outputs)
                self.assertRight(saved, norm_linear, made(2, device))

    def test_a_thread_for_each(self):
        wrong = []

        def work(index):
            try:
                torch.cuda.set_device(index)
                args = made(index, self.devices[index])
                want = norm_linear(*args)
                for _ in range(50):
                    torch.testing.assert_close(self.fused[index](*args), want, rtol=1e-3, atol=1e-3)
            except Exception as error:  # noqa: BLE001
                wrong.append(error)

        threads = [threading.Thread(target=work, args=(i,)) for i in range(2)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        self.assertEqual(wrong, [])

    def test_a_model_on_both(self):
        def function(x, g, w, v):
            here = norm_linear(x, g, w)
            return torch.softmax(here.to("cuda:1") @ v, -1)

        x, g, w = made(7, self.devices[0])
        v = torch.randn(16, 8).to(self.devices[1])
        torch._dynamo.reset()
        report = st.Report()
        fused = torch.compile(function, backend="sundog", options={"report": report, **QUICK})
        with torch.no_grad():
            torch.testing.assert_close(fused(x, g, w, v), function(x, g, w, v), rtol=1e-3, atol=1e-3)
        self.assertEqual({f.kernel.device.index for f in report.fused}, {0, 1}, report)
        self.assertIn("several devices (cuda:0, cuda:1)", str(report))

    def test_the_clock_is_that_of_the_device(self):
        kernel = self.fused[1].kernels[0]
        found = measure.GpuClock(self.devices[1])({"fused": kernel.run, "eager": norm_linear}, kernel.inputs)
        self.assertEqual({way: type(us) for way, us in found.items()}, {"fused": float, "eager": float}, found)
        self.assertEqual(torch.cuda.current_device(), 0)


if __name__ == "__main__":
    unittest.main()
