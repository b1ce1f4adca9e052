"""tests/ mirrors the tree.

Each tests/<folder>/x_test.cpp stands beside a source <folder>/x.cpp or x.h, so that the test of a file
is found without searching; a test of several files together says so in its first lines:
// NOLINT(sundog-mirror): what it tests.

And each header of a library is tested: a test includes it, or it is a part of one that a test includes
(x_part.h of x.h, or included by x.h or x.cpp).  What is further from any test was never tried alone.
"""

import re

import tree

FOLDERS = tree.LIBRARIES + ("cli",)


def mirrored(root, path, folder):
    relative = path.relative_to(root / "tests" / folder)
    stem = relative.as_posix().removesuffix("_test.cpp")
    return any((root / folder / (stem + suffix)).is_file() for suffix in (".h", ".cpp", ".cuh"))


def includes(text):
    return set(re.findall(r'#include "([^"]+)"', text))


def is_part(name, tested, included_by_tested):
    """Whether the header `name` is a part of one of the headers in `tested`."""
    families = (header.removesuffix(".h") + "_" for header in tested)
    return name in included_by_tested or any(name.startswith(family) for family in families)


def check(root):
    complaints, tested = [], set()
    for path in tree.files(root, ["tests"], {".h", ".cpp"}):
        text = tree.read(path)
        tested |= includes(text)
        parts = path.relative_to(root).parts
        if not path.name.endswith("_test.cpp") or parts[1] not in FOLDERS:
            continue
        granted, _ = tree.exceptions("mirror", text)
        complaints += tree.unexplained_markers("mirror", root, path, text)
        if not granted and not mirrored(root, path, parts[1]):
            complaints.append(f"{tree.place(root, path)}: no source of that name in {parts[1]}")

    included_by_tested = set()
    for path in tree.files(root, tree.LIBRARIES, {".h", ".cpp"}):
        if tree.place(root, path.with_suffix(".h")) in tested:
            included_by_tested |= includes(tree.read(path))
    for path in tree.files(root, tree.LIBRARIES, {".h"}):
        name, text = tree.place(root, path), tree.read(path)
        if name.startswith(tree.EMULATOR):
            continue
        complaints += tree.unexplained_markers("mirror", root, path, text)
        granted, _ = tree.exceptions("mirror", text)
        if name not in tested and not granted and not is_part(name, tested, included_by_tested):
            complaints.append(f"{name}: no test includes it, nor what it is a part of")
    return complaints


GOOD = {
    "core/op.h": "",
    "core/schedule/layout.h": "",
    "core/op_names.h": '#include "core/far.h"\n',
    "core/op.cpp": '#include "core/near.h"\n',
    "core/near.h": "",
    "core/far.h": "// NOLINT(sundog-mirror): read by op_names.h alone\n",
    "codegen/emulator/fiber.h": "",
    "core/detail.h": "// NOLINT(sundog-mirror): the insides of op.h\n",
    "tests/core/op_test.cpp": '#include "core/op.h"\n',
    "tests/core/schedule/layout_test.cpp": '#include "core/schedule/layout.h"\n',
    "tests/cli/tool_test.cpp": "// NOLINT(sundog-mirror): the tool from end to end\n",
}
BAD = {
    "no such source": ({"tests/core/gone_test.cpp": ""}, "no source of that name"),
    "other folder": ({"tests/core/layout_test.cpp": ""}, "no source of that name"),
    "untested header": ({"core/new.h": ""}, "core/new.h: no test includes it"),
    "far from any test": ({"core/far.h": ""}, "core/far.h: no test includes it"),
    "marker without a reason": ({"tests/core/all_test.cpp": "// NOLINT(sundog-mirror)\n"}, "needs a reason"),
}

if __name__ == "__main__":
    tree.main(check, GOOD, BAD)
