"""What the documents tell a reader to type exists.

In every Markdown file: relative links lead somewhere.  In its code blocks and `code spans`: sub-commands
of ./dev and of sundog, options of sundog, presets, and files of the folders of the tree.
"""

import json
import re

import tree

SPAN = re.compile(
    r"^```[^\n]*\n(?P<fence>.*?)^```|(?<=\n\n)(?P<indented>(?:    [^\n]*\n|\n(?=    ))+)|`(?P<span>[^`\n]+)`",
    re.DOTALL | re.MULTILINE,
)
LINK = re.compile(r"\]\(([^)\s#]+)(?:#[^)]*)?\)")
REPOSITORY_FILE = re.compile(
    r"(?<![\w./<$-])((?:core|search|verify|codegen|frontend|cli|python|benchmarks|tests|third_party|docs|cmake)"
    r"/[\w./-]*[\w/])(?![\w*<{/])"
)


def tool_commands(root):
    """Sub-commands of sundog, as cli/commands.h declares them."""
    commands = root / "cli" / "commands.h"
    if not commands.is_file():
        return set()
    return set(re.findall(r"^int (\w+)\(const Invocation&", tree.read(commands), re.MULTILINE))


def tool_options(root):
    """Long options of sundog: the rows of the table in cli/options.cpp."""
    options = root / "cli" / "options.cpp"
    rows = re.findall(r'^\s*\{"([\w-]+)",', tree.read(options), re.MULTILINE) if options.is_file() else []
    return {*rows, "help", "version"}


def dev_commands(root):
    """Sub-commands of ./dev: its functions named run_COMMAND."""
    dev = root / "dev"
    return set(re.findall(r"^run_(\w+)\(\)", tree.read(dev), re.MULTILINE)) if dev.is_file() else set()


def presets(root):
    path = root / "CMakePresets.json"
    if not path.is_file():
        return set()
    return {p["name"] for p in json.loads(tree.read(path))["configurePresets"] if not p.get("hidden")}


def complaints_about(root, code):
    """What the piece of code names and the tree lacks."""
    dev, tool, known = dev_commands(root), tool_commands(root), presets(root)
    for command in re.findall(r"\./dev ([a-z]\w*)", code):
        if command not in dev:
            yield f"./dev has no command {command}"
    for command in re.findall(r"(?:^|(?<!import)[\s/])sundog ([a-z]\w*)(?= |$|\n)", code):
        if command not in tool:
            yield f"sundog has no command {command}"
    for line in re.sub(r"\\\n", " ", code).splitlines():
        call = re.search(r"(?:^|[\s/])sundog [a-z]\w* (.*)", line)
        for option in re.findall(r"(?<!\S)\[?--([a-z][\w-]*)", call.group(1) if call else ""):
            if option not in tool_options(root):
                yield f"sundog has no option --{option}"
    for preset in re.findall(r"--preset[ =](\w+)", code) + re.findall(r"\bbuild/(\w+)/sundog\b", code):
        if preset not in known:
            yield f"there is no preset {preset}"
    for name in REPOSITORY_FILE.findall(code):
        if not (root / name.rstrip(".")).exists():
            yield f"there is no {name}"


def check(root):
    complaints = []
    if not (root / "README.md").is_file():
        complaints.append("README.md: missing")
    for path in sorted(root.rglob("*.md")):
        if path.relative_to(root).parts[0] in ("build", ".git", ".cache"):
            continue
        text = tree.read(path)
        prose = SPAN.sub(lambda m: re.sub(r"[^\n]", " ", m.group(0)), text)
        for match in LINK.finditer(prose):
            target = match.group(1)
            if not re.match(r"[a-z]+:", target) and not (path.parent / target).exists():
                line = text.count("\n", 0, match.start()) + 1
                complaints.append(f"{tree.place(root, path, line)}: the link to {target} leads nowhere")
        for match in SPAN.finditer(text):
            line = text.count("\n", 0, match.start()) + 1
            for problem in complaints_about(root, match.group(match.lastgroup)):
                complaints.append(f"{tree.place(root, path, line)}: {problem}")
    return complaints


GOOD = {
    "dev": "run_test() { :; }\n",
    "cli/commands.h": "int optimize(const Invocation& invocation);\n",
    "cli/options.cpp": '    {"budget", 0, 1},\n',
    "core/op.h": "",
    "CMakePresets.json": '{"configurePresets": [{"name": "release"}]}',
    "README.md": "Read [it](core/op.h#top) and [more](https://x.org/gone).\n```\n./dev test\n"
    "build/release/sundog optimize FILE --budget 3s\ncmake --preset release\n```\nSee `core/op.h`, `a[i](b)`, not `core/*.cpp`.\n",
}
BAD = {
    "link": ({"docs/a.md": "[x](gone.md)\n"}, "docs/a.md:1: the link to gone.md"),
    "dev command": ({"docs/a.md": "a\n`./dev fly`\n"}, "docs/a.md:2: ./dev has no command fly"),
    "indented": ({"docs/a.md": "a:\n\n    ./dev test\n\n    ./dev fly [x](y)\n"}, "no command fly"),
    "tool command": ({"docs/a.md": "```sh\nbuild/release/sundog fly FILE\n```\n"}, "sundog has no command fly"),
    "tool option": (
        {"docs/a.md": "```\nsundog optimize F \\\n  --budget 1s --fast\n```\n"},
        "sundog has no option --fast",
    ),
    "preset": ({"docs/a.md": "`cmake --preset fast`\n"}, "no preset fast"),
    "file": ({"docs/a.md": "`search/gone.cpp`\n"}, "there is no search/gone.cpp"),
    "one of two": ({"docs/a.md": "```\n./dev test\n./dev rest\n```\n"}, "no command rest"),
}

if __name__ == "__main__":
    tree.main(check, GOOD, BAD)
