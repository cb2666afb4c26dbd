#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
# Copyright the ztcp authors
"""Kernel sockets where CPUs are many, as on machines that train: an interface has several queues, and is several devices.
The processes believe in 16 CPUs; two hosts as in hosts.py, whose cases these are."""
import os

import hosts
from fabric import Fabric, main
from namespaces import enter, ip
from sockets import ASKED, said, without_a_config
from transfer import SWEEP, rows_are_right

QUEUES = r"(6|12) queues \((8|16) CPUs"


def operations():
    with Fabric(2, topology="mesh") as fabric:
        without_a_config(fabric)
        for op in ("all_reduce", "all_to_all", "sendrecv"):
            rows_are_right(fabric.run_perf("--op", op, *SWEEP, env=ASKED))
        said(fabric, "6 queues (8 CPUs for each of 2 ranks (LOCAL_WORLD_SIZE))", "shown to NCCL as 8 devices")


def many_ranks():
    with Fabric(2, topology="mesh") as fabric:
        without_a_config(fabric)
        fabric.ranks = 8
        rows_are_right(fabric.run_perf("--op", "all_to_all", "--min", "256K", "--max", "256K", "--iters", "3", "--check",
                                       env={**ASKED, "LOCAL_WORLD_SIZE": "1"}))


def between_hosts():
    hosts.all_reduce(said=QUEUES)


def loss_5():
    hosts.all_reduce(("--loss", "5%", "--seed", "7"),
                     ["--min", "8", "--max", "256K", "--factor", "32", "--iters", "2", "--warmup", "1", "--check"], QUEUES)


if __name__ == "__main__":
    enter()
    ip("link", "set", "lo", "up")
    os.environ["LD_PRELOAD"] = os.environ["E2E_MANY_CPUS"]
    main({f.__name__: f for f in (operations, many_ranks, between_hosts, loss_5, hosts.down_for_long, hosts.sender_killed,
                                  hosts.receiver_killed, hosts.receiver_stopped, hosts.communicators, hosts.strangers)})
