#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
# Copyright the ztcp authors
"""Kernel sockets on a machine with many CPUs: the processes see 16. An interface then has several
lanes and is exposed as several devices; peers that use an old table have two lanes with workers.
Between two hosts these are cases of hosts.py."""
import os
import pathlib
import sys

import hosts
from fabric import Fabric, main
from namespaces import enter, ip
from sockets import ASKED, said, without_a_config
from transfer import SWEEP, rows_are_right

ALONE = r"12 lanes \(16 CPUs"


def need_no_limit():
    """A cgroup's quota limits the CPUs as the affinity mask does."""
    with open("/proc/self/cgroup", encoding="utf-8") as file:
        own = [line.rstrip().split(":", 2)[2] for line in file if line.startswith("0::")]
    folders = [pathlib.Path("/sys/fs/cgroup" + path) for path in own]
    for folder in [parent for one in folders for parent in (one, *one.parents)]:
        limit = folder / "cpu.max"
        if limit.exists() and not limit.read_text(encoding="utf-8").startswith("max"):
            print(f"{limit} limits the CPUs of this test")
            sys.exit(77)


def run(ranks, ops, *wanted):
    need_no_limit()
    with Fabric(2, topology="mesh") as fabric:
        without_a_config(fabric)
        fabric.ranks = ranks
        for op in ops:
            rows_are_right(fabric.run_perf("--op", op, *SWEEP, env=ASKED))
        said(fabric, *wanted)


def operations():
    run(2, ("all_reduce", "all_to_all", "sendrecv"), "6 lanes (8 CPUs for each of 2 ranks (LOCAL_WORLD_SIZE))",
        "exposed to NCCL as 8 devices")


def several_ranks():
    run(4, ("all_to_all",), "2 lanes (4 CPUs for each of 4 ranks (LOCAL_WORLD_SIZE))", "exposed to NCCL as 8 devices")


def between_hosts():
    hosts.all_reduce(said=ALONE)


def loss_5():
    hosts.loss_5(said=ALONE)


if __name__ == "__main__":
    enter()
    ip("link", "set", "lo", "up")
    os.environ["LD_PRELOAD"] = os.environ["E2E_MANY_CPUS"]
    os.environ["LOCAL_WORLD_SIZE"] = "1"  # Not for ranks that ztcp_perf starts.
    main({f.__name__: f for f in (operations, several_ranks, between_hosts, hosts.receive_queues, loss_5, hosts.down_for_long,
                                  hosts.sender_killed, hosts.receiver_killed, hosts.receiver_stopped, hosts.communicators, hosts.strangers)})
