"""The libraries neither print nor end the process: their callers are a tool, a C ABI and Python.

Exceptions: core/check.h and core/check.cpp, which end the process when an invariant of ours is broken, and
the text of the emulator, which becomes a program of its own.  Text inside string literals (emitted programs print) is not looked at.
"""

import re

import tree

LOUD = re.compile(
    r"\bstd\s*::\s*(cout|cerr|clog|terminate|quick_exit)\b"
    r"|(?<![\w.>])(printf|fprintf|vprintf|vfprintf|puts|putchar|perror|abort|exit|quick_exit)\s*\("
)


def check(root):
    complaints = []
    for path in tree.files(root, tree.LIBRARIES, {".h", ".cpp"}):
        name = tree.place(root, path)
        if name in ("core/check.h", "core/check.cpp") or name.startswith(tree.EMULATOR):
            continue
        text = tree.read(path)
        granted, _ = tree.exceptions("silence", text)
        complaints += tree.unexplained_markers("silence", root, path, text)
        for number, line in enumerate(tree.blank_comments_and_strings(text).splitlines(), 1):
            match = LOUD.search(line)
            if match and number not in granted:
                complaints.append(
                    f"{tree.place(root, path, number)}: {match.group(0).strip()} in a library"
                )
    return complaints


GOOD = {
    "core/check.h": "inline void fail() { std::abort(); }\n",
    "core/a.cpp": "// printf( is fine here\nvoid f(char* p) { snprintf(p, 4, \"abort(\"); }\n",
    "codegen/a.cpp": 'auto kMain = R"(\nint main() { printf("x"); exit(1); }\n)";\n',
    "codegen/emulator/main.h": "void f() { exit(1); }\n",
    "verify/child.cpp": "void f() { _exit(0); }\n",
    "search/a.cpp": "void f() { exit(1); }  // NOLINT(sundog-silence): runs in the child process\n",
    "cli/main.cpp": "void f() { std::cout << 1; }\n",
}
BAD = {
    "only check itself": ({"core/check_program.cpp": "void f() { abort(); }\n"}, "abort("),
    "cout": ({"core/b.cpp": "void f() {\n  std::cout << 1;\n}\n"}, "core/b.cpp:2: std::cout"),
    "printf": ({"verify/b.cpp": "void f() { printf(\"\"); }\n"}, "printf("),
    "std::exit": ({"search/b.h": "void f() { std::exit(1); }\n"}, "exit("),
    "abort": ({"codegen/b.cpp": "void f() { abort(); }\n"}, "abort("),
    "after a digit separator": (
        {"core/b.cpp": "int n = 1'000;\nvoid f() { puts(\"\"); }\nchar c = 'x';\n"},
        "core/b.cpp:2",
    ),
    "marker without a reason": (
        {"core/b.cpp": "void f() { abort(); }  // NOLINT(sundog-silence)\n"},
        "needs a reason",
    ),
}

if __name__ == "__main__":
    tree.main(check, GOOD, BAD)
