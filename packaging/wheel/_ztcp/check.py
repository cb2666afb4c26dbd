# SPDX-License-Identifier: Apache-2.0
# Copyright the ztcp authors
"""`ztcp check`: is this host ready, and which network will NCCL use?"""
import ctypes
import hashlib
import json
import os
import resource
import subprocess

from _ztcp import __version__
from _ztcp.choice import config_path, installed_nccl, library_path
from _ztcp.tools import path

# NCCL asks for the newest of these that it knows.
TABLES = [f"ncclNetPlugin_v{version}" for version in range(12, 2, -1)]
OLDEST_NCCL = (2, 6)
VERBS_LOCKED_BYTES = 1 << 30


class Report:
    """Lines of a check. An error makes the check fail, a warning does not."""

    def __init__(self):
        self.lines = []

    def add(self, level, subject, text):
        self.lines.append({"level": level, "subject": subject, "text": text})

    def is_good(self):
        return all(line["level"] != "error" for line in self.lines)


def check_library(report):
    library = library_path()
    try:
        with open(library, "rb") as file:
            digest = hashlib.sha256(file.read()).hexdigest()
        loaded = ctypes.CDLL(library)
    except OSError as error:
        report.add("error", "plugin", f"{library}: {error}")
        return
    tables = [name for name in TABLES if hasattr(loaded, name)]
    if not tables:
        report.add("error", "plugin", f"{library} has no table for NCCL; install ztcp again")
        return
    report.add("ok", "plugin", f"{library}, {__version__}, sha256 {digest[:12]}, "
               f"{tables[-1]} to {tables[0]}")


def check_nccl(report):
    nccl = installed_nccl()
    if nccl is None:
        report.add("ok", "NCCL", "not installed as a wheel; NCCL 2.6 and newer load the plugin")
    elif nccl < OLDEST_NCCL:
        report.add("error", "NCCL", f"{'.'.join(map(str, nccl))} is older than 2.6")
    else:
        report.add("ok", "NCCL", ".".join(map(str, nccl)))


def check_locked_memory(report, transport):
    soft, _ = resource.getrlimit(resource.RLIMIT_MEMLOCK)
    if transport == "verbs" and soft != resource.RLIM_INFINITY and soft < VERBS_LOCKED_BYTES:
        report.add("error", "locked memory", f"ulimit -l is {soft >> 10} KiB, and RDMA locks the "
                   "buffers of NCCL; raise it (ulimit -l unlimited; limits.conf: memlock)")


def check_config(report, environment):
    config = config_path(environment)
    if not os.path.exists(config):
        if environment.get("ZTCP_CONFIG"):
            report.add("error", "config", f"ZTCP_CONFIG={config} does not exist")
        return
    done = subprocess.run([path("ztcp_setup"), "--check", "--config", config],
                          capture_output=True, check=False)
    if done.returncode == 0:
        report.add("ok", "config", f"{config} fits this host")
    else:
        report.add("error", "config", f"{config} does not fit this host; "
                   f"ztcp_setup --check --config {config} says what mends it")


def check(environment, made, as_json):
    """Prints the report. Returns 0, or 1 where the job would not run over ztcp."""
    report = Report()
    check_library(report)
    check_nccl(report)
    if made.refused:
        report.add("error", "environment", made.refused)
    else:
        for note in made.notes:
            report.add("ok", "environment", note)
    check_config(report, environment)
    transport = made.variables.get("ZTCP_TRANSPORT") or environment.get("ZTCP_TRANSPORT", "")
    check_locked_memory(report, transport)
    if as_json:
        print(json.dumps({"version": __version__, "ready": report.is_good(), "lines": report.lines,
                          "variables": made.variables}, indent=2))
    else:
        for line in report.lines:
            print(f"{line['level']:5} {line['subject']}: {line['text']}")
        print("This host is ready." if report.is_good() else "This host is not ready.")
    return 0 if report.is_good() else 1
