"""Who may include whom.

core is included by all; search, verify and codegen know nothing of one another; cli and the C ABI join
them.  Headers of the libraries stay free of heavy foreign headers, whose cost and names every file that
includes them would bear.
"""

import re

import tree

MAY_INCLUDE = {
    "core": {"core"},
    "search": {"core", "search"},
    "verify": {"core", "verify"},
    "codegen": {"core", "codegen"},
    "frontend": {"core", "frontend"},
    "cli": {"core", "search", "verify", "codegen", "frontend", "cli"},
    "python": {"core", "search", "verify", "codegen", "frontend", "cli", "python"},
}
# In no header of a library ...
HEAVY = re.compile(r"z3(\+\+|_\w+)?\.h$|^google/protobuf/|\.pb\.h$|^gtest/|^gmock/|^benchmark/")
# ... and in no file at all but those of these folders.
OWNED = (
    (re.compile(r"z3(\+\+|_\w+)?\.h$"), {"verify", "tests"}),
    (re.compile(r"^gtest/|^gmock/"), {"tests"}),
    (re.compile(r"^benchmark/"), {"benchmarks"}),
)
INCLUDE = re.compile(r'^\s*#\s*include\s*([<"])([^>"]+)[>"]')


def complaint_about(root, path, folder, quote, target):
    """What is wrong with one include, or None."""
    first = target.split("/")[0]
    if folder in tree.LIBRARIES and path.suffix == ".h" and HEAVY.search(target):
        return f"a header of {folder} includes {target}; keep it in a .cpp"
    for pattern, owners in OWNED:
        if pattern.search(target) and folder not in owners:
            return f"{target} belongs in {' and '.join(sorted(owners))} only"
    if quote != '"':
        return None
    if target.endswith(".cpp"):
        return f"includes the source file {target}"
    if folder in MAY_INCLUDE and first in MAY_INCLUDE and first not in MAY_INCLUDE[folder]:
        return f"{folder} includes {target}; it may include {', '.join(sorted(MAY_INCLUDE[folder]))}"
    base = path.parent if tree.place(root, path).startswith(tree.EMULATOR) else root
    if not target.endswith(".pb.h") and not (base / target).is_file():
        return f"no file {target}; includes are written from the root of the project"
    return None


def check(root):
    complaints = []
    for path in tree.files(root, tree.SOURCE_FOLDERS, {".h", ".cpp"}):
        folder = path.relative_to(root).parts[0]
        for number, line in enumerate(tree.read(path).splitlines(), 1):
            match = INCLUDE.match(line)
            problem = match and complaint_about(root, path, folder, *match.groups())
            if problem:
                complaints.append(f"{tree.place(root, path, number)}: {problem}")
    return complaints


GOOD = {
    "core/op.h": "#include <vector>\n",
    "core/proto.cpp": '#include "core/op.h"\n#include "core/sundog.pb.h"\n',
    "search/bank.h": '#include "core/op.h"\n',
    "verify/smt.h": '#include "core/op.h"\n',
    "verify/smt.cpp": "#include <z3++.h>\n",
    "codegen/emulator/a.h": "",
    "codegen/emulator/b.h": '#include "a.h"\n',
    "cli/main.cpp": '#include "search/bank.h"\n#include "verify/smt.h"\n',
    "tests/core/op_test.cpp": "#include <gtest/gtest.h>\n",
}
BAD = {
    "search to verify": ({"search/a.cpp": '#include "verify/smt.h"\n'}, "search includes verify/smt.h"),
    "core to search": ({"core/a.cpp": '#include "search/bank.h"\n'}, "core includes search/bank.h"),
    "codegen to cli": (
        {"cli/c.h": "", "codegen/a.cpp": '#include "cli/c.h"\n'},
        "codegen includes cli/c.h",
    ),
    "Z3 in a header": ({"verify/a.h": "#include <z3.h>\n"}, "a header of verify"),
    "protobuf in a header": ({"core/a.h": '#include "core/sundog.pb.h"\n'}, "a header of core"),
    "Z3 in search": ({"search/a.cpp": "#include <z3++.h>\n"}, "belongs in"),
    "gtest in a library": ({"search/a.cpp": "#include <gtest/gtest.h>\n"}, "belongs in tests"),
    "not from the root": ({"search/a.cpp": '#include "bank.h"\n'}, "from the root"),
    "source file": ({"search/a.cpp": '#include "core/proto.cpp"\n'}, "source file"),
}

if __name__ == "__main__":
    tree.main(check, GOOD, BAD)
