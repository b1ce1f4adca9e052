"""No `default:` in a switch of the libraries.

With it, a new operator, storage or place compiles and is silently treated like the rest; without it the
compiler lists every switch that must learn of it.  A switch over something open (characters, exit codes)
says so: // NOLINT(sundog-default): why
"""

import re

import tree


def check(root):
    complaints = []
    for path in tree.files(root, tree.LIBRARIES, {".h", ".cpp"}):
        text = tree.read(path)
        granted, _ = tree.exceptions("default", text)
        complaints += tree.unexplained_markers("default", root, path, text)
        for number, line in enumerate(tree.blank_comments_and_strings(text).splitlines(), 1):
            if re.search(r"\bdefault\s*:", line) and number not in granted:
                complaints.append(
                    f"{tree.place(root, path, number)}: default: hides missing cases; list them"
                )
    return complaints


SWITCH = "int f(K k) {\n  switch (k) {\n    case K::kA: return 1;\n    %s\n  }\n}\n"
GOOD = {
    "core/a.cpp": SWITCH % "case K::kB: return 2;",
    "core/a.h": "struct A { A() = default; };  // default: in a comment\n",
    "core/text.cpp": SWITCH % "default: return 0;  // NOLINT(sundog-default): characters are many",
    "cli/main.cpp": SWITCH % "default: return 0;",
}
BAD = {
    "default": ({"search/a.cpp": SWITCH % "default: return 0;"}, "search/a.cpp:4"),
    "marker without a reason": (
        {"search/a.cpp": SWITCH % "default: return 0;  // NOLINT(sundog-default)"},
        "needs a reason",
    ),
}

if __name__ == "__main__":
    tree.main(check, GOOD, BAD)
