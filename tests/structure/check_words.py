"""Nothing in the tree names the machine it was written on, and nothing is left to be done in a comment.

Absolute paths of a home, a scratch or a work folder are refused in every text file; a mkdtemp or mkstemp
template (ends in XXXXXX) may begin in the scratch folder, which every POSIX system has.
"""

import re

import tree

# Written in pieces, so that this file obeys its own rule.
FOLDERS = ("work", "root", "home", "tmp", "Users", "mnt")
PATHS = re.compile(r"(?<![\w.~/>)}\]*-])/(?:%s)/[\w.<>{}$+-]*" % "|".join(FOLDERS))
TEMPLATE = re.compile(r"/[\w./-]*X{6}")
UNDONE = re.compile(r"\b(%s)\b" % "|".join(("TO" + "DO", "FIX" + "ME", "HA" + "CK")))
SKIPPED_FOLDERS = {"build", ".git", ".cache", "__pycache__"}
TEXT = {
    "", ".h", ".cpp", ".cu", ".cuh", ".py", ".md", ".txt", ".cmake", ".json", ".sh", ".sd", ".mu", ".proto",
    ".textproto", ".toml", ".yml", ".yaml", ".html", ".csv",
}  # fmt: skip


def text_files(root):
    for path in sorted(root.rglob("*")):
        relative = path.relative_to(root)
        if relative.parts[0] in SKIPPED_FOLDERS or "__pycache__" in relative.parts:
            continue
        if path.is_file() and path.suffix in TEXT and "corpus" not in relative.parts:
            yield path


def check(root):
    complaints = []
    for path in text_files(root):
        for number, line in enumerate(tree.read(path).splitlines(), 1):
            found = PATHS.search(TEMPLATE.sub("", line)) or UNDONE.search(line)
            if found:
                complaints.append(f"{tree.place(root, path, number)}: '{found.group(0)}'")
    return complaints


SCRATCH = "/" + "tmp"
GOOD = {
    "core/a.cpp": f'char name[] = "{SCRATCH}/sundog-XXXXXX";\n// a/work/b and <root>/work/ are relative\n',
    "README.md": "See /usr/include and build/release.\n",
    "build/x.txt": "/" + "root/x\n",
}
BAD = {
    "scratch folder": ({"cli/a.cpp": f'open("{SCRATCH}/x");\n'}, "cli/a.cpp:1"),
    "home": ({"README.md": "cd " + "/" + "home/me/sundog\n"}, "README.md:1"),
    "work": ({".ci/run": "cd " + "/" + "work/main\n"}, ".ci/run:1"),
    "undone": ({"core/a.h": "// TO" + "DO: all of it\n"}, "core/a.h:1"),
}

if __name__ == "__main__":
    tree.main(check, GOOD, BAD)
