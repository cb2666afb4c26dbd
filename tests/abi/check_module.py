#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
# Copyright the ztcp authors
"""Checks how the plugin is linked.

  check_module.py LIBRARY

It stays mapped after dlclose() and binds all symbols at load; no symbol of it is looked up
elsewhere first, is unique across the process, or is found through a path. The product, once loaded
by its path, is also the library that dlopen("libnccl-net.so") finds, and is off once it is renamed.
"""
import os
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile

NAME = "libnccl-net.so"


def output(*command):
    return subprocess.run(command, check=True, capture_output=True, text=True).stdout


# As a package does that ships the library; and as NCCL 2.28 to 2.29 do with a path in
# NCCL_NET_PLUGIN: they close it with the last communicator and open the next one's by this name.
PRELOAD = """
import _ctypes, ctypes, sys
def table(library):
    return ctypes.addressof(ctypes.c_char.in_dll(library, "ncclNetPlugin_v8"))
first = ctypes.CDLL(sys.argv[1])
at = table(first)
assert table(ctypes.CDLL(sys.argv[2])) == at, "loaded by its path"
assert table(ctypes.CDLL(sys.argv[1])) == at, "loaded twice by its path"
for _ in range(3):
    _ctypes.dlclose(first._handle)
assert table(ctypes.CDLL(sys.argv[2])) == at, "loaded by its path and closed"
"""


def preload_problems(library):
    """Beside another plugin in the library path, which can't be loaded here."""
    with tempfile.TemporaryDirectory() as folder:
        pathlib.Path(folder, NAME).write_text("another plugin")
        done = subprocess.run([sys.executable, "-c", PRELOAD, str(pathlib.Path(library).resolve()), NAME], check=False,
                              env={**os.environ, "LD_LIBRARY_PATH": folder}, capture_output=True, text=True)
    return [] if done.returncode == 0 else [f"preloaded, it is not found by its name: {done.stderr.strip()}"]


def renamed_problems(library):
    """ldconfig makes a link of its SONAME's name to each lib*.so*, one that was renamed included."""
    with tempfile.TemporaryDirectory() as folder:
        shutil.copy(library, pathlib.Path(folder, NAME + "_bak"))
        output("/sbin/ldconfig", "-n", folder)
        links = sorted(path.name for path in pathlib.Path(folder).iterdir() if path.is_symlink())
    return [f"renamed to {NAME}_bak, ldconfig links it to {', '.join(links)}: it would be on"] if links else []


def main():
    library = sys.argv[1]
    is_product = pathlib.Path(library).name == NAME
    dynamic = output("readelf", "-dW", library)
    segments = output("readelf", "-lW", library)
    symbols = output("readelf", "--dyn-syms", "-W", library)
    problems = []

    flags = " ".join(re.findall(r"\((?:FLAGS|FLAGS_1)\)\s+(.*)", dynamic))
    for flag, why in (("NODELETE", "pollers would outlive their code after dlclose()"),
                      ("NOW", "a missing symbol would only show in the middle of a job")):
        if flag not in flags:
            problems.append(f"lacks {flag}: {why}")
    if "(SYMBOLIC)" not in dynamic and "SYMBOLIC" not in flags:
        problems.append("lacks SYMBOLIC: the host's symbols would replace ours")
    if "(TEXTREL)" in dynamic:
        problems.append("has TEXTREL")
    # Other test modules use libraries of the build tree, by relative paths.
    for paths in re.findall(r"\((?:RPATH|RUNPATH)\).*\[(.*)\]", dynamic):
        problems += [f"looks for libraries in {path}" for path in paths.split(":")
                     if not path.startswith("$ORIGIN") or is_product and path != "$ORIGIN"]
    if is_product:
        problems += preload_problems(library) + renamed_problems(library)
    if re.search(r"GNU_STACK.*RWE", segments):
        problems.append("wants an executable stack")
    problems += [f"unique symbol {line.split()[-1]}" for line in symbols.splitlines()
                 if " UNIQUE " in line]

    if b"this libnccl-net.so is ztcp's" not in pathlib.Path(library).read_bytes():
        problems.append("lacks the mark by which ztcp_setup --check recognizes it")

    for problem in problems:
        print(f"{library}: {problem}", file=sys.stderr)
    return 1 if problems else 0


if __name__ == "__main__":
    sys.exit(main())
