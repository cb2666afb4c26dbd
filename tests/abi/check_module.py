#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
# Copyright the ztcp authors
"""Checks how the plugin is linked.

  check_module.py LIBRARY

It stays mapped after dlclose() and binds everything at load; nothing in it is looked up elsewhere
first, unique across the process, or found through a path of the build machine.
"""
import pathlib
import re
import subprocess
import sys


def output(*command):
    return subprocess.run(command, check=True, capture_output=True, text=True).stdout


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
    # Paths relative to the library are the build tree's own and go away at install.
    for paths in re.findall(r"\((?:RPATH|RUNPATH)\).*\[(.*)\]", dynamic):
        problems += [f"looks for libraries in {path}" for path in paths.split(":")
                     if not path.startswith("$ORIGIN")]
    if re.search(r"GNU_STACK.*RWE", segments):
        problems.append("wants an executable stack")
    problems += [f"unique symbol {line.split()[-1]}" for line in symbols.splitlines()
                 if " UNIQUE " in line]

    if b"this libnccl-net.so is ztcp's" not in pathlib.Path(library).read_bytes():
        problems.append("lacks the mark by which ztcp_setup --check knows it")

    for problem in problems:
        print(f"{library}: {problem}", file=sys.stderr)
    return 1 if problems else 0


if __name__ == "__main__":
    sys.exit(main())
