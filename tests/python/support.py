"""What the tests share: quick options, and skipping loudly what cannot run."""

import importlib.util
import os
import tempfile
import unittest

# No result of another run, and none left behind.
os.environ.setdefault("SUNDOG_CACHE_DIR", tempfile.mkdtemp(prefix="sundog-test-"))
# A search of a moment: what is looked at is the way to a kernel, not how good it is.
QUICK = {"states": 1500, "no_check": True}
# "cuda" on a machine that has one: the same tests, on its kernels. "cuda:1": the second of several, which nothing
# makes the current one.
DEVICE = os.environ.get("SUNDOG_TEST_DEVICE", "cpu")
ON_GPU = DEVICE.startswith("cuda")
HAVE_TORCH = importlib.util.find_spec("torch") is not None


def set_device():
    import torch

    torch.set_default_device(DEVICE)


def needs_torch(case):
    return unittest.skipUnless(HAVE_TORCH, "PyTorch is not installed: NOT TESTED")(case)
