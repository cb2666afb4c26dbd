#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
# Copyright the ztcp authors
"""ztcp_setup for an ordinary user: whatever would change the machine is refused before anything
is looked at, with the line that root would type.

usage: setup_refusal_test.py ZTCP_SETUP
"""
import json
import os
import subprocess
import sys

NOBODY = 65534


def run(*arguments):
    account = {"user": NOBODY, "group": NOBODY, "extra_groups": []} if os.geteuid() == 0 else {}
    return subprocess.run([sys.argv[1], *arguments], capture_output=True, text=True, timeout=60,
                          **account)


def expect(condition, what):
    if not condition:
        sys.exit(f"FAILED: {what}")


def main():
    try:
        run("--version")
    except PermissionError:
        print("skipped: nobody may not enter the build folder")
        return 77
    for option in ([], ["--undo"], ["--add"], ["--boot"]):
        result = run(*option, "--config", "/nonexistent/ztcp.conf")
        expect(result.returncode == 3, f"{option}: exit status {result.returncode}, wanted 3")
        line = " ".join(["sudo", sys.argv[1], *option, "--config", "/nonexistent/ztcp.conf"])
        expect(line in result.stderr, f"{option}: no '{line}' in: {result.stderr}")
        expect("nothing was changed" in result.stderr, f"{option}: {result.stderr}")
        told = json.loads(run(*option, "--json").stdout)
        expect(told["exit_code"] == 3 and told["problems"], f"{option}: {told}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
