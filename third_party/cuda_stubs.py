"""Empty CUDA libraries beside a PyTorch that lacks the real ones, so that it loads and finds no GPU.

For the tests on machines without a GPU, run by the Python whose PyTorch is meant: it writes into that
installation. Each library defines what PyTorch asks of it, under the versions that PyTorch expects; every
function answers 100, which is CUDA's "no device".
"""

import collections
import importlib.util
import pathlib
import re
import subprocess
import sys
import tempfile

# Looked for by name at run time only, where an empty one would be mistaken for a driver.
LEFT_OUT = {"libcuda.so.1", "libnvrtc.so.13", "libnvrtc.so.12"}
OURS = re.compile(r"lib(cu|nv|nccl)")


def output(*command):
    return subprocess.run(command, capture_output=True, text=True, check=True).stdout


def survey(libraries):
    """Libraries that are needed, their versions, and the symbols wanted of each version."""
    needed, versions, wanted = set(), collections.defaultdict(set), collections.defaultdict(set)
    for library in libraries:
        needed |= {n for n in re.findall(r"NEEDED.*\[(.*)\]", output("readelf", "-dW", library)) if OURS.match(n)}
        file = None
        for line in output("readelf", "-VW", library).splitlines():
            if match := re.search(r"File: (\S+)", line):
                file = match.group(1)
            if (match := re.search(r"Name: (\S+)", line)) and file:
                versions[file].add(match.group(1))
        for line in output("nm", "-D", "--undefined-only", library).splitlines():
            name, _, version = line.split()[-1].replace("@@", "@").partition("@")
            wanted[version].add(name)
    return needed, versions, wanted


def function(name):
    if re.search("String|Name", name):
        return f'const char* {name}(void) {{ return "no CUDA"; }}\n'
    return f"long {name}(void) {{ return 100; }}\n"


def build(folder, name, symbols, script):
    source = "".join(map(function, sorted(symbols))) or "int nothing;\n"
    with tempfile.TemporaryDirectory() as scratch:
        options = []
        if script:
            path = pathlib.Path(scratch) / "versions"
            path.write_text(script)
            options.append(f"-Wl,--version-script={path}")
        command = ["gcc", "-shared", "-fPIC", "-w", "-fno-builtin", f"-Wl,-soname,{name}", *options]
        subprocess.run([*command, "-o", folder / name, "-x", "c", "-"], input=source, text=True, check=True)


def main():
    # Found without importing, which is what fails.
    spec = importlib.util.find_spec("torch")
    if spec is None or spec.origin is None:
        sys.exit("there is no PyTorch here")
    folder = pathlib.Path(spec.origin).parent / "lib"
    needed, versions, wanted = survey([p for p in folder.glob("*.so*") if not p.is_symlink()])
    loose = {s for s in wanted[""] if re.match(r"(cu|nv|nccl|__cuda)", s)}
    for name in sorted(needed - LEFT_OUT):
        if (folder / name).exists():
            continue
        symbols = set().union(*(wanted[v] for v in versions[name]))
        script = "".join(
            f"{v} {{ global: {' '.join(s + ';' for s in sorted(wanted[v]))} }};\n" for v in sorted(versions[name])
        )
        if not symbols:
            symbols, loose, script = loose, set(), ""
        build(folder, name, symbols, script)


if __name__ == "__main__":
    main()
