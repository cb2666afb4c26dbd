#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
# Copyright the ztcp authors
"""ztcp_setup for an ordinary user: commands that would change the machine are refused before reading
anything, with the command for root.

usage: setup_refusal_test.py ZTCP_SETUP
"""
import json
import os
import resource
import subprocess
import sys
import tempfile

NOBODY = 65534


def run(*arguments, **variables):
    account = {"user": NOBODY, "group": NOBODY, "extra_groups": []} if os.geteuid() == 0 else {}
    return subprocess.run([sys.argv[1], *arguments], capture_output=True, text=True, timeout=60,
                          env={**os.environ, **variables}, **account)


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
    # The suggested command is quoted for a shell, and includes the config: sudo drops ZTCP_CONFIG.
    line = f"sudo {sys.argv[1]} --undo --config '/nonexistent/my ztcp.conf'"
    for result in (run("--undo", "--config", "/nonexistent/my ztcp.conf"),
                   run("--undo", ZTCP_CONFIG="/nonexistent/my ztcp.conf")):
        expect(line in result.stderr, f"no {line} in: {result.stderr}")
    # A wrong command line, in JSON as well.
    for arguments in (["--no-such-option"], ["--check", "--undo"], ["--pages", "3M"],
                      ["--undo", "--add", "--dry-run"]):
        result = run("--json", *arguments)
        expect(result.returncode == 64, f"{arguments}: exit status {result.returncode}, wanted 64")
        told = json.loads(result.stdout)
        expect(told["exit_code"] == 64 and told["problems"], f"{arguments}: {told}")
    # A script's unset variable gives an empty name, which no config can hold.
    for option in ("--keep", "--take", "--user", "--group", "--config"):
        told = json.loads(run("--json", "--dry-run", option, "").stdout)
        expect(option in told["problems"][0]["what"], f"{option} '': {told}")
    for size in ("0", "32M", "65G"):
        told = json.loads(run("--json", "--dry-run", "--per-gpu", size).stdout)
        expect("outside 64M..65536M" in told["problems"][0]["what"], f"--per-gpu {size}: {told}")
    # Options without effect beside another: the error names both.
    for arguments in (["--check", "--keep", "eth1", "--per-gpu", "1G"], ["--check", "--take", "eth1"],
                      ["--undo", "--nics", "4"], ["--undo", "--no-iommu"], ["--boot", "--iommu"],
                      ["--boot", "--user", "root"], ["--local", "2", "--group", "root"],
                      ["--local", "2", "--spare", "1G"], ["--local", "2", "--config", "x.conf"],
                      ["--add", "--per-gpu", "1G"], ["--add", "--dry-run", "--pages", "2M"],
                      ["--add", "--user", "root"], ["--check", "--mtu", "1500"], ["--check", "--transport", "sockets"],
                      ["--transport", "sockets", "--no-iommu"], ["--transport", "sockets", "--per-gpu", "1G"]):
        result = run("--json", *arguments)
        expect(result.returncode == 64, f"{arguments}: exit status {result.returncode}, wanted 64")
        told = json.loads(result.stdout)["problems"][0]["what"]
        named = [word for word in [*arguments, "--local"] if word.startswith("--") and word in told]
        expect(len(named) >= 2, f"{arguments}: both are not named in: {told}")
    for arguments in (["--queues", "9"], ["--queues", "0"], ["--queues", "some"],
                      ["--local", "2", "--queues", "auto"], ["--transport", "sockets", "--queues", "2"]):
        told = json.loads(run("--json", "--dry-run", *arguments).stdout if "--local" not in arguments else
                          run("--json", *arguments).stdout)
        expect("--queues" in told["problems"][0]["what"], f"{arguments}: {told}")
    # Bytes that are not text.
    result = subprocess.run([sys.argv[1], "--json", "--check", "--config", b"/nonexistent/\xff"],
                            capture_output=True, timeout=60)
    expect(json.loads(result.stdout)["exit_code"] == 3, result)
    # A limit of file sizes.
    with tempfile.TemporaryDirectory() as folder:
        result = subprocess.run([sys.argv[1], "--local", "2", "--dir", folder], capture_output=True, text=True, timeout=60,
                                preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_FSIZE, (0, 0)))
    expect(result.returncode == 3 and "File too large" in result.stderr, result)
    # Help describes an option's effect, not the options it excludes.
    told = run("--help").stdout
    expect("Excludes" not in told and "Needs" not in told and "--keep IFNAME|PCI|DEVICE" in told, told)
    # --undo accepts --dry-run.
    told = run("--undo", "--dry-run")
    expect(told.returncode in (0, 3) and "Excludes" not in told.stderr and "excludes" not in told.stderr, told)
    # The output goes to a full disk.
    with open("/dev/full", "w") as full:
        result = subprocess.run([sys.argv[1], "--help"], stdout=full, stderr=subprocess.PIPE, text=True, timeout=60)
    expect(result.returncode == 1 and "standard output" in result.stderr, result)
    return 0


if __name__ == "__main__":
    sys.exit(main())
