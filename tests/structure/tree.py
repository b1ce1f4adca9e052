"""What the structure checks share: reading sources, exceptions, and the two ways to run a check.

A check is a function from the root of a tree to a list of complaints, each of the form
"path:line: what is wrong".  Where a rule has a good exception, the line says so:

    ... // NOLINT(sundog-NAME): the reason, in words

and a marker without a reason is a complaint of its own.
"""

import pathlib
import re
import sys
import tempfile

LIBRARIES = ("core", "search", "verify", "codegen", "frontend")
# Text that the library carries and compiles at run time, flat in one folder, into a program of its own.
EMULATOR = "codegen/emulator/"
SOURCE_FOLDERS = LIBRARIES + ("cli", "python", "benchmarks", "tests")


def files(root, folders, suffixes):
    """The files below root/folder with one of the suffixes, in a fixed order."""
    for folder in folders:
        for path in sorted((root / folder).rglob("*")):
            if path.suffix in suffixes and path.is_file() and "__pycache__" not in path.parts:
                yield path


def place(root, path, line=None):
    """The name of a file, and of a line in it, as complaints print it."""
    name = path.relative_to(root).as_posix()
    return name if line is None else f"{name}:{line}"


def read(path):
    return path.read_text(encoding="utf-8", errors="replace")


_TOKEN = re.compile(
    r"""//[^\n]*                                     # line comment
      | /\*.*?\*/                                    # block comment
      | (?<!\w)(?:u8|[uUL])?R"([^()\\\s]*)\(.*?\)\1" # raw string
      | "(?:\\.|[^"\\\n])*"                          # string
      | (?<![0-9a-fA-F])'(?:\\.|[^'\\\n])+'          # character, not a digit separator
    """,
    re.VERBOSE | re.DOTALL,
)


def blank_comments_and_strings(text):
    """C++ text with comments blanked and literals emptied; every line keeps its number."""

    def blank(match):
        token = match.group(0)
        newlines = "\n" * token.count("\n")
        return newlines + ("" if token.startswith("/") else '""')

    return _TOKEN.sub(blank, text)


def exceptions(check, text):
    """The lines of text that carry the marker of check, and those whose marker gives no reason."""
    granted, unexplained = set(), set()
    for number, line in enumerate(text.splitlines(), 1):
        marker = re.search(rf"NOLINT\(sundog-{check}\)(.*)", line)
        if marker:
            granted.add(number)
            if len(marker.group(1).strip(" :")) < 10:
                unexplained.add(number)
    return granted, unexplained


def unexplained_markers(check, root, path, text):
    """A complaint for each marker of check in the file that gives no reason."""
    return [
        f"{place(root, path, line)}: NOLINT(sundog-{check}) needs a reason after a colon"
        for line in sorted(exceptions(check, text)[1])
    ]


def _write(root, tree):
    for name, text in tree.items():
        path = root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")


def _self_test(check, good, bad):
    failures = 0
    for label, tree, wanted in [("good", good, None)] + [(k, t, w) for k, (t, w) in bad.items()]:
        with tempfile.TemporaryDirectory() as folder:
            root = pathlib.Path(folder)
            _write(root, {**good, **tree})
            complaints = check(root)
        if wanted is None:
            failed = bool(complaints)
        else:
            failed = len(complaints) != 1 or wanted not in complaints[0]
        if failed:
            failures += 1
            print(f"self-test '{label}': wanted {wanted or 'no complaint'}, got {complaints}")
    print(f"{len(bad)} broken trees and a good one: {failures} failures")
    return 1 if failures else 0


def main(check, good, bad):
    """Runs check on the tree named on the command line or, with --self-test, on made-up ones.

    good is a tree (file name -> text) without complaint.  bad maps a label to (files to add or replace
    in good, part of the one complaint that must follow).
    """
    if sys.argv[1:] == ["--self-test"]:
        sys.exit(_self_test(check, good, bad))
    if len(sys.argv) != 2:
        sys.exit(f"usage: {sys.argv[0]} ROOT | --self-test")
    complaints = check(pathlib.Path(sys.argv[1]).resolve())
    for complaint in complaints:
        print(complaint)
    sys.exit(1 if complaints else 0)
