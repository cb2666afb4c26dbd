#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
# Copyright the ztcp authors
"""Checks how the plugin is linked.

  check_module.py LIBRARY

It stays mapped after dlclose() and binds all symbols at load; no symbol of it is looked up
elsewhere first, is unique across the process, or is found through a path. Once loaded by its path,
it is also the library that dlopen("libnccl-net.so") finds.
"""
import os
import pathlib
import re
import subprocess
import sys

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
    done = subprocess.run([sys.executable, "-c", PRELOAD, str(pathlib.Path(library).resolve()), NAME], check=False,
                          env={**os.environ, "LD_LIBRARY_PATH": "/nonexistent"}, capture_output=True, text=True)
    return [] if done.returncode == 0 else [f"preloaded, it is not found by its name: {done.stderr.strip()}"]


def main():
    library = sys.argv[1]
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
                     if not path.startswith("$ORIGIN") or library.endswith("/libnccl-net.so")]
    if "(SONAME)" not in dynamic or f"[{NAME}]" not in dynamic:
        problems.append(f"has another SONAME than {NAME}")
    problems += preload_problems(library)
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
