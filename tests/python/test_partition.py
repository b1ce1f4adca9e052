"""Which operators are fused with which, told from graphs alone: of devices that need not be there, too."""

import unittest

import support

if support.HAVE_TORCH:
    import torch
    from torch._subclasses import FakeTensorMode
    from torch.fx.experimental.proxy_tensor import make_fx

    from sundog.torch.backend import decompositions
    from sundog.torch.partition import Partition


def partitioned(function, *shapes, devices):
    """The partition of a function of tensors of those shapes, each on its device; no device is touched."""
    with FakeTensorMode():
        tensors = [torch.empty(shape, device=device) for shape, device in zip(shapes, devices)]
        module = make_fx(function, decomposition_table=decompositions())(*tensors)
    module.graph.eliminate_dead_code()
    partition = Partition(module.graph, 64)
    partition.run()
    return partition


@support.needs_torch
class Devices(unittest.TestCase):
    def test_no_group_spans_two_devices(self):
        def function(x, w, v):
            there = torch.relu(torch.softmax(x, -1) @ w).to("cuda:1")
            return torch.softmax(torch.relu(there @ v), -1)

        partition = partitioned(function, (4, 8), (8, 8), (8, 8), devices=("cuda:0", "cuda:0", "cuda:1"))
        moved = [(n.name, reason) for n, reason in partition.reasons.items()]
        self.assertEqual(moved, [("_to_copy", "it reads and writes on several devices (cuda:0, cuda:1)")])
        for group in partition.groups:
            devices = {n.meta["val"].device for n in [*group.inputs, *group.nodes]}
            self.assertEqual(len(devices), 1, group.nodes)
        self.assertEqual({g.outputs[0].meta["val"].device.index for g in partition.groups}, {0, 1})

    def test_a_scalar_on_the_cpu_is_no_input_of_a_kernel(self):
        def function(x, scale):
            return torch.softmax(x, -1) * scale

        partition = partitioned(function, (4, 8), (), devices=("cuda:0", "cpu"))
        self.assertIn("several devices (cpu, cuda:0)", next(r for n, r in partition.reasons.items() if n.name == "mul"))
        self.assertEqual([[n.name for n in g.inputs] for g in partition.groups], [["x_1"]])

    def test_constants_are_made_by_each_group_that_reads_them(self):
        def function(x, w):
            mask = torch.arange(8, device=x.device) > 3
            first = torch.where(mask, torch.softmax(x, -1), -1e4) @ w
            return torch.softmax(torch.where(torch.arange(8, device=x.device) < 5, torch.softmax(first, -1), 2.0), -1)

        partition = partitioned(function, (4, 8), (8, 8), devices=("cuda:0", "cuda:0"))
        self.assertEqual(partition.reasons, {})
        self.assertEqual([[n.name for n in g.inputs] for g in partition.groups], [["x_1", "w_1"], ["mm"]])


if __name__ == "__main__":
    unittest.main()
