#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
# Copyright the ztcp authors
"""Checks the requirements of a shared object on the machine that loads it.

usage: needed_check.py LIBRARY [--exports NAME...]

Its NEEDED entries are libc, libm, libgcc_s and the loader (libdl, libpthread where glibc splits
them), no symbol version is above GLIBC_2.34, and with --exports its dynamic symbols are exactly
the named ones. Built against glibc 2.38 or later, strtol() and its kin are symbols of 2.38, and
that is the limit there: a library that is to run anywhere is built on an older system.
"""
import argparse
import os
import re
import subprocess
import sys

ALLOWED = re.compile(r'(libc|libm|libgcc_s|libdl|libpthread|ld-linux-x86-64|ld-linux-aarch64)\.so\.\d+$')
BUILT_WITH = tuple(int(part) for part in os.confstr('CS_GNU_LIBC_VERSION').split()[1].split('.')[:2])
MAX_GLIBC = (2, 34) if BUILT_WITH < (2, 38) else (2, 38)


def output(*command):
    return subprocess.run(command, check=True, capture_output=True, text=True).stdout


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument('library')
    parser.add_argument('--exports', nargs='+')
    arguments = parser.parse_args()
    problems = []

    needed = re.findall(r'\(NEEDED\).*\[(.*)\]', output('readelf', '-dW', arguments.library))
    if not needed:
        problems.append('no NEEDED entry at all: not a shared object of ours')
    problems += ['NEEDED ' + name for name in needed if not ALLOWED.match(name)]

    symbols = output('objdump', '-T', arguments.library)
    for version in sorted(set(re.findall(r'GLIBC_(\d+(?:\.\d+)+)', symbols))):
        if tuple(int(part) for part in version.split('.'))[:2] > MAX_GLIBC:
            users = [line.split()[-1] for line in symbols.splitlines() if f'GLIBC_{version})' in line]
            problems.append(f'GLIBC_{version} wanted by {" ".join(users)}')

    if arguments.exports:
        table = output('nm', '-D', '--defined-only', '--format=posix', arguments.library)
        exported = {line.split()[0].split('@')[0] for line in table.splitlines()
                    if line.split()[1] != 'A'}
        for name in sorted(exported ^ set(arguments.exports)):
            problems.append(('exports ' if name in exported else 'lacks ') + name)

    for problem in problems:
        print(f'{arguments.library}: {problem}', file=sys.stderr)
    return 1 if problems else 0


if __name__ == '__main__':
    sys.exit(main())
