#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
# Copyright the ztcp authors
"""Checks DPDK's mlx5 driver as the build made one object of it.

  object_check.py OBJECT LIST

The functions of rdma-core that it calls are those of LIST (rdma_core_calls.h), and it has no
constructor or destructor that a load of the plugin would run.
"""
import pathlib
import re
import subprocess
import sys

CALL = re.compile(r'(?:VERBS|MLX5|LATER)\((\w+), "\w+\.\w+"\)')
# DPDK 22.11 does not.
CALLED_BY_24_11 = {"mlx5dv_create_steering_anchor", "mlx5dv_destroy_steering_anchor"}
RUNS_AT_LOAD = re.compile(r"\.(?:preinit_array|init_array|fini_array|ctors|dtors|init|fini)(?:\.\d+)?$")


def output(*command):
    return subprocess.run(command, check=True, capture_output=True, text=True).stdout


def main():
    built, listed = sys.argv[1], set(CALL.findall(pathlib.Path(sys.argv[2]).read_text()))
    called = {line.split()[0] for line in output("nm", "-u", "--format=posix", built).splitlines()
              if re.match(r"_?(?:ibv|mlx5dv|rdma)_", line)}
    problems = [f"calls {name}, which rdma_core_calls.h lacks" for name in sorted(called - listed)]
    problems += [f"does not call {name} of rdma_core_calls.h" for name in sorted(listed - called - CALLED_BY_24_11)]
    sections = re.findall(r"^\s*\d+\s+(\S+)", output("objdump", "-h", "-w", built), re.M)
    problems += [f"has {name}, with functions that run at load: meson.build is to rename it"
                 for name in sections if RUNS_AT_LOAD.match(name)]
    if not any(name.startswith("ztcp_mlx5_init_") for name in sections):
        problems.append("has no section ztcp_mlx5_init_...: the driver would register nothing")
    for problem in problems:
        print(f"{built}: {problem}", file=sys.stderr)
    return 1 if problems or len(listed) < 90 else 0


if __name__ == "__main__":
    sys.exit(main())
