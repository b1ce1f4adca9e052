"""The Python examples of the documents, each document from top to bottom in one namespace."""

import contextlib
import io
import os
import pathlib
import re
import tempfile
import unittest

import support

ROOT = pathlib.Path(__file__).resolve().parents[2]


class Documents(unittest.TestCase):
    def run_document(self, name):
        text = (ROOT / "docs" / name).read_text(encoding="utf-8")
        examples = [(m.start(), m.group(1)) for m in re.finditer(r"^```python\n(.*?)^```", text, re.S | re.M)]
        self.assertGreater(len(examples), 3)
        namespace, before = {}, os.getcwd()
        with tempfile.TemporaryDirectory() as folder, contextlib.redirect_stdout(io.StringIO()):
            os.chdir(folder)
            try:
                for start, code in examples:
                    line = text.count("\n", 0, start) + 2
                    exec(compile("\n" * (line - 1) + code, name, "exec"), namespace)
            finally:
                os.chdir(before)

    @unittest.skipUnless(support.HAVE_TORCH, "PyTorch is not installed: NOT TESTED")
    def test_tutorial(self):
        self.run_document("python.md")

    def test_operators(self):
        self.run_document("python_operators.md")


if __name__ == "__main__":
    unittest.main()
