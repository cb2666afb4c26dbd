#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
# Copyright the ztcp authors
"""Processes of one host that share a NIC: each gets its share, and none starves."""
import json
import os
import re

from fabric import PERF, PLUGIN, check, free_port, main
from faults import start_transfer
from namespaces import Hosts, enter
from transfer import rows_are_right
from xdp import goes_on, need_af_xdp

PROCESSES = 8
LEAST_INDEX = 0.9


def jain(shares):
    """Jain's fairness index: 1 where all are equal, 1/n where one has everything."""
    return sum(shares) ** 2 / (len(shares) * sum(share ** 2 for share in shares))


def start_pairs(hosts, *arguments):
    """A job of two ranks for each process of a host, all at once."""
    jobs = []
    for number in range(PROCESSES):
        report = os.path.join(hosts.folder, f"report{number}.json")
        port = free_port()
        ranks = [hosts.start(f"job{number}-rank{rank}",
                             [PERF, "--plugin", PLUGIN, "--ranks", "2", "--rank", str(rank), "--rendezvous",
                              f"10.67.0.1:{port}", *arguments, "--json", report], {"ZTCP_LOCAL_RANK": str(rank)})
                 for rank in range(2)]
        jobs.append((ranks, report))
    return jobs


def kernel_sockets():
    with Hosts(queues=4) as hosts:
        jobs = start_pairs(hosts, "--op", "all_reduce", "--min", "256K", "--max", "256K", "--iters", "400", "--check")
        shares = []
        for ranks, report in jobs:
            for rank in ranks:
                check(rank.wait(200) == 0, f"{rank.name} failed:\n{rank.output()[-2000:]}")
            with open(report, encoding="utf-8") as file:
                result = json.load(file)
            rows_are_right(result)
            shares.append(result["results"][0]["busbw_gb_per_s"])
        print("shares in GB/s:", *(f"{share:.3f}" for share in shares), "Jain's index:", f"{jain(shares):.3f}")
        check(jain(shares) >= LEAST_INDEX, f"the shares are unequal: {shares}")


def af_xdp():
    """An interface serves one process: the second one is told so, and the first one goes on."""
    need_af_xdp()
    with Hosts(past_kernel=(0, 1), queues=4) as hosts:
        receiver, sender = start_transfer(hosts)
        for rank in hosts.start_pair("--op", "all_reduce", "--min", "8", "--max", "8"):
            check(rank.wait(90) != 0, f"{rank.name} succeeded")
        check(re.search(r"ztcp0 is taken by process \d+ \(python3.*; one process drives one NIC", hosts.log()),
              "no line names the process that has the NIC")
        goes_on(receiver, sender)


if __name__ == "__main__":
    enter()
    main({f.__name__: f for f in (kernel_sockets, af_xdp)})
