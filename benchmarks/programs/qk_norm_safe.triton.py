"""qk_norm_safe as a Triton kernel, for `sundog bench`: that of gqa_safe, which normalises queries and values as it
reads them."""

import functools
import pathlib
import runpy

compute = functools.partial(
    runpy.run_path(str(pathlib.Path(__file__).with_name("gqa_safe.triton.py")))["compute"], norms=True
)
