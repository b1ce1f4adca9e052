"""tests/ mirrors the tree.

Each tests/<folder>/x_test.cpp stands beside a source <folder>/x.cpp or x.h, so that the test of a file
is found without searching; a test of several files together says so in its first lines:
// NOLINT(sundog-mirror): what it tests.  And each header of a library is included by some test: one that
none includes was never tried alone.
"""

import re

import tree

FOLDERS = tree.LIBRARIES + ("cli",)


def mirrored(root, path, folder):
    relative = path.relative_to(root / "tests" / folder)
    stem = relative.as_posix().removesuffix("_test.cpp")
    return any((root / folder / (stem + suffix)).is_file() for suffix in (".h", ".cpp", ".cuh"))


def check(root):
    complaints, included = [], set()
    for path in tree.files(root, ["tests"], {".h", ".cpp"}):
        text = tree.read(path)
        included |= set(re.findall(r'#include "([^"]+)"', text))
        parts = path.relative_to(root).parts
        if not path.name.endswith("_test.cpp") or parts[1] not in FOLDERS:
            continue
        granted, _ = tree.exceptions("mirror", text)
        complaints += tree.unexplained_markers("mirror", root, path, text)
        if not granted and not mirrored(root, path, parts[1]):
            complaints.append(f"{tree.place(root, path)}: no source of that name in {parts[1]}")
    for path in tree.files(root, tree.LIBRARIES, {".h"}):
        text = tree.read(path)
        complaints += tree.unexplained_markers("mirror", root, path, text)
        if tree.place(root, path) not in included and not tree.exceptions("mirror", text)[0]:
            complaints.append(f"{tree.place(root, path)}: no test includes it")
    return complaints


GOOD = {
    "core/op.h": "",
    "core/schedule/layout.h": "",
    "core/detail.h": "// NOLINT(sundog-mirror): the insides of op.h\n",
    "tests/core/op_test.cpp": '#include "core/op.h"\n',
    "tests/core/schedule/layout_test.cpp": '#include "core/schedule/layout.h"\n',
    "tests/cli/tool_test.cpp": "// NOLINT(sundog-mirror): the tool from end to end\n",
}
BAD = {
    "no such source": ({"tests/core/gone_test.cpp": ""}, "no source of that name"),
    "other folder": ({"tests/core/layout_test.cpp": ""}, "no source of that name"),
    "untested header": ({"core/new.h": ""}, "core/new.h: no test includes it"),
    "marker without a reason": ({"tests/core/all_test.cpp": "// NOLINT(sundog-mirror)\n"}, "needs a reason"),
}

if __name__ == "__main__":
    tree.main(check, GOOD, BAD)
