"""Files under 600 lines, and under 2 % of functions over 60 lines (`check_budget.py --list ROOT` lists
the long ones).

Functions are found by matching braces, not by a parser: the text before an opening brace tells a
function from a type, a namespace or an initialiser.
"""

import pathlib
import re
import sys

import tree

MAX_FILE = 600
MAX_FUNCTION = 60
MAX_SHARE = 0.02
SUFFIXES = {".h", ".cpp", ".cuh", ".cu", ".py"}
NOT_A_FUNCTION = re.compile(r"^(namespace|class|struct|union|enum|extern|export)\b|^(if|for|while|switch)\b")


def opens_initialiser(head):
    """Whether the brace after head begins a value, as in `x = {`, `f({`, `a, {` or `: member_{`."""
    if re.search(r"([=,(\[{?:]|\breturn)$", head):
        return True
    return bool(re.search(r"\)\s*(noexcept\s*)?:\s", head) and re.search(r"[\w>]$", head))


def functions(text):
    """(first line, number of lines, head) of every outermost function body in C++ text."""
    text = tree.blank_comments_and_strings(text)
    text = re.sub(r"^[ \t]*#(?:[^\n\\]|\\\n|\\.)*", lambda m: "\n" * m.group(0).count("\n"), text, flags=re.M)
    found, scopes, head, head_line, line = [], [], "", 1, 1
    for character in text:
        if character == "{":
            stripped = re.sub(r"^(template\s*<[^{}]*?>\s*)+(?=\w)", "", head.strip())
            if scopes and scopes[-1][0] in ("function", "value"):
                kind = scopes[-1][0] if scopes[-1][0] == "function" else "value"
            elif opens_initialiser(stripped):
                kind = "value"
            elif "(" in stripped and not NOT_A_FUNCTION.search(stripped):
                kind = "function"
            else:
                kind = "scope"
            outermost = kind == "function" and not any(s[0] == "function" for s in scopes)
            scopes.append((kind, head_line if outermost else None, stripped))
            if kind != "value":
                head = ""
        elif character == "}":
            if scopes:
                kind, start, title = scopes.pop()
                if start is not None:
                    found.append((start, line - start + 1, title))
                # A value is part of the head it stands in: `A() : b_{1} {`.
                head = head + "}" if kind == "value" else ""
        elif character == ";":
            head = ""
        elif head or not character.isspace():
            if not head:
                head_line = line
            head += character
        if character == "\n":
            line += 1
    return found


def python_functions(text):
    """As functions, for Python text: a body ends before the next line indented no deeper than its def."""
    lines = text.splitlines()
    found = []
    for start, text_line in enumerate(lines):
        match = re.match(r"(\s*)(async )?def \w+", text_line)
        if not match:
            continue
        indent, end = len(match.group(1)), start
        for number in range(start + 1, len(lines)):
            body = lines[number]
            if body.strip() and len(body) - len(body.lstrip()) <= indent and body.strip()[0] not in ")]":
                break
            if body.strip():
                end = number
        found.append((start + 1, end - start + 1, text_line.strip()))
    return found


def survey(root):
    """(complaints about files, all functions as (place, lines, head))."""
    complaints, all_functions = [], []
    for path in tree.files(root, tree.SOURCE_FOLDERS, SUFFIXES):
        name = tree.place(root, path)
        if name.startswith(("tests/golden/", "tests/fuzz/corpus/")):
            continue
        text = tree.read(path)
        count = text.count("\n")
        if count > MAX_FILE:
            complaints.append(f"{name}: {count} lines; the budget is {MAX_FILE}")
        find = python_functions if path.suffix == ".py" else functions
        all_functions += [(f"{name}:{line}", size, head) for line, size, head in find(text)]
    return complaints, all_functions


def check(root):
    complaints, all_functions = survey(root)
    long = sorted((f for f in all_functions if f[1] > MAX_FUNCTION), key=lambda f: -f[1])
    if len(long) > MAX_SHARE * len(all_functions):
        worst = ", ".join(f"{where} ({size})" for where, size, _ in long[:20])
        complaints.append(
            f"{len(long)} of {len(all_functions)} functions exceed {MAX_FUNCTION} lines; "
            f"the budget is {MAX_SHARE:.0%}: {worst}"
        )
    return complaints


def body(lines):
    return "  if (x) {\n    y();\n  }\n" * (lines // 3)


SHORT = "".join(f"int f{i}(int x) {{\n  return x;\n}}\n" for i in range(100))
GOOD = {
    "core/a.cpp": SHORT,
    "core/b.cpp": "namespace a {\nstruct B {\n  B() : b_{1}, c_(2) {\n" + body(66) + "  }\n};\n}\n",
    # Long, but no functions: a table and a type.
    "core/c.h": "constexpr int kTable[] = {\n" + "  1,\n" * 80 + "};\nstruct C : D<int> {\n" + "  int x;\n" * 80 + "};\n",
}
LONG = "".join(f"auto g{i}(auto x) -> int {{\n{body(66)}}}\n" for i in range(2))
BAD = {
    "long file": ({"search/a.h": "// x\n" * 601}, "601 lines"),
    "long functions": ({"search/a.cpp": LONG}, "3 of 103 functions"),
    "long methods": (
        {"search/a.h": "template <class T>\nclass A {\n" + LONG.replace("auto g", "T g") + "};\n"},
        "3 of 103 functions",
    ),
    "long Python": (
        {"python/a.py": "".join(f"def g{i}(\n    x,\n):\n" + "    x += 1\n" * 61 for i in range(2))},
        "3 of 103 functions",
    ),
}

if __name__ == "__main__":
    if sys.argv[1:2] == ["--list"]:
        for where, size, head in sorted(survey(pathlib.Path(sys.argv[2]).resolve())[1], key=lambda f: f[1]):
            if size > MAX_FUNCTION:
                print(f"{size:5} {where}  {' '.join(head.split())[:80]}")
        sys.exit(0)
    tree.main(check, GOOD, BAD)
