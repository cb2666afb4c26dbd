# SPDX-License-Identifier: Apache-2.0
# Copyright the ztcp authors
"""The command `ztcp`, which is `python -m ztcp`, too."""
import argparse
import json
import os
import shlex
import subprocess
import sys

from _ztcp import __version__
from _ztcp.check import check
from _ztcp.choice import TRANSPORTS, choose, library_path
from _ztcp.tools import path

EPILOG = """examples:
  eval "$(python -m ztcp env)"          NCCL in commands of this shell uses ztcp
  ztcp run -- torchrun --nproc-per-node 8 train.py
  ztcp check                            is this host ready, and what will NCCL use?
  ztcp bench --op all_reduce            two ranks of this host over the plugin, without NCCL

In a Python program, `import ztcp` before NCCL starts does the same as `ztcp run`. No command sets a
variable that is already set."""


def parser():
    out = argparse.ArgumentParser(
        prog="ztcp", description="The ztcp network plugin for NCCL: switches it on, and tells "
        "whether it runs.", epilog=EPILOG, formatter_class=argparse.RawDescriptionHelpFormatter)
    out.add_argument("--version", action="version", version=f"ztcp {__version__}")
    commands = out.add_subparsers(dest="command", required=True, metavar="COMMAND")
    commands.add_parser("path", help="print the path of libnccl-net.so")
    env = commands.add_parser("env", help="print the variables for a shell, each with its reason")
    env.add_argument("--json", action="store_true", help="print JSON")
    run = commands.add_parser("run", help="run a command with these variables")
    bench = commands.add_parser("bench", help="measure the plugin between two ranks of this host",
                                allow_abbrev=False, usage="ztcp bench [--transport NAME] "
                                "[OPTIONS OF ztcp_perf]", description="All other options go to "
                                "ztcp_perf; ztcp_perf --help lists them.")
    checking = commands.add_parser("check", help="compare this host with the needs of the plugin")
    checking.add_argument("--json", action="store_true", help="print JSON")
    for one in (env, run, bench, checking):
        one.add_argument("--transport", choices=TRANSPORTS,
                         help="default: as $ZTCP_TRANSPORT or the config says; else verbs where an "
                         "RDMA port is active; else sockets")
    run.add_argument("argv", nargs=argparse.REMAINDER, metavar="-- COMMAND", help="the command")
    return out


def fail(text):
    print(f"ztcp: {text}", file=sys.stderr)
    return 1


def print_env(made, as_json):
    if as_json:
        print(json.dumps({"variables": made.variables, "notes": made.notes}, indent=2))
        return 0
    for note in made.notes:
        print(f"# {note}")
    for name, value in made.variables.items():
        print(f"export {name}={shlex.quote(value)}")
    return 0


def run(made, argv):
    argv = argv[1:] if argv[:1] == ["--"] else argv
    if not argv:
        return fail("run: name a command: ztcp run -- torchrun train.py")
    try:
        os.execvpe(argv[0], argv, {**os.environ, **made.variables})
    except OSError as error:
        return fail(f"run: {argv[0]}: {error.strerror}")


def bench(made, argv):
    for note in made.notes:
        print(f"# {note}", flush=True)
    return subprocess.call([path("ztcp_perf"), "--plugin", library_path(), *argv],
                           env={**os.environ, **made.variables})


def main(argv=None):
    options, rest = parser().parse_known_args(argv)
    if rest and options.command != "bench":
        parser().error(f"unrecognized arguments: {' '.join(rest)}")
    if options.command == "path":
        print(library_path())
        return 0
    made = choose(os.environ, transport=options.transport)
    if options.command == "check":
        return check(os.environ, made, options.json)
    if made.refused:
        return fail(made.refused)
    if options.command == "env":
        return print_env(made, options.json)
    if options.command == "run":
        return run(made, options.argv)
    try:
        return bench(made, rest)
    except KeyboardInterrupt:
        return 130
