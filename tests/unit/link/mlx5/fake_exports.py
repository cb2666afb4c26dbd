#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
# Copyright the ztcp authors
"""Writes the version script of a library that stands in for libibverbs and libmlx5.

  fake_exports.py LIST MAP [--without NAME...]

LIST is rdma_core_calls.h; MAP exports its functions with their versions, except those named.
"""
import argparse
import pathlib
import re

CALL = re.compile(r'(?:VERBS|MLX5|LATER)\((\w+), "(\w+\.\w+)"\)')


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("list", type=pathlib.Path)
    parser.add_argument("map", type=pathlib.Path)
    parser.add_argument("--without", nargs="*", default=[])
    arguments = parser.parse_args()
    versions = {}
    for name, version in CALL.findall(arguments.list.read_text()):
        if name not in arguments.without:
            versions.setdefault(version, []).append(name)
    nodes = [f"{version} {{ global: {' '.join(name + ';' for name in names)} }};" for version, names in versions.items()]
    arguments.map.write_text("\n".join([*nodes, "none { local: *; };", ""]))


if __name__ == "__main__":
    main()
