#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
# Copyright the ztcp authors
"""Processes of one host that share a NIC: each gets its share, and none starves."""
import json
import os
import re
import signal
import time

from fabric import PERF, PLUGIN, check, free_port, main, wait_until
from faults import EXIT_PLUGIN_ERROR, done_count, start_peer, start_transfer
from namespaces import Hosts, enter
from transfer import SWEEP, rows_are_right
from xdp import goes_on, need_af_xdp

PROCESSES = 8
SLOTS = 4  # Of the AF_XDP interface, and its queues.
LEAST_INDEX = 0.9
# Where there are more processes than CPUs, the kernel's scheduler is fair over seconds only, and
# slower beside other work; a transfer that is at a disadvantage stays behind for longer.
LEAST_S = 10
MOST_S = 90


def jain(shares):
    """Jain's fairness index: 1 where all are equal, 1/n where one has everything."""
    return sum(shares) ** 2 / (len(shares) * sum(share ** 2 for share in shares))


def share(hosts, processes):
    """A transfer for each process of a host; their messages are counted over the same time."""
    receivers, senders = ([start_peer(hosts, role, rank, "--name", f"handle{number}", name=f"{role}{number}")
                           for number in range(processes)] for role, rank in (("recv", 0), ("send", 1)))
    peers = receivers + senders
    wait_until(lambda: all(done_count(peer) > 0 or not peer.running() for peer in peers), 60, "first messages")
    before = [done_count(receiver) for receiver in receivers]
    started = time.monotonic()
    time.sleep(LEAST_S)
    while True:
        shares = [done_count(receiver) - count for receiver, count in zip(receivers, before)]
        took = time.monotonic() - started
        check(all(peer.running() for peer in peers), "a transfer has ended")
        print(f"messages in {took:.0f} s:", *shares, "Jain's index:", f"{jain(shares):.3f}")
        if jain(shares) >= LEAST_INDEX:
            return receivers, senders
        check(took < MOST_S, f"the shares are unequal: {shares}")
        time.sleep(5)


def kernel_sockets():
    with Hosts(queues=4) as hosts:
        share(hosts, PROCESSES)


def af_xdp():
    """Processes share an interface by its queues; a slot is free again when its process ends."""
    need_af_xdp()
    with Hosts(past_kernel=(0, 1), queues=SLOTS, processes=SLOTS) as hosts:
        receivers, senders = share(hosts, SLOTS)
        places = re.findall(r"xdp data, slot (\d) of 0-\d \(queues (\d)\), 1 queue,", hosts.log())
        check(sorted(places) == sorted([(str(slot), str(slot)) for slot in range(SLOTS)] * 2), f"wrong slots: {places}")
        one_more = start_peer(hosts, "recv", 0, "--name", "more", name="more")
        check(one_more.wait(30) == EXIT_PLUGIN_ERROR, "one process too many got a part of the interface")
        check(re.search(rf"ztcp0 is taken by (process \d+ \(python3\), ){{{SLOTS}}}as many as processes = {SLOTS} in",
                        hosts.log()), "no line names the processes that have the interface")
        victim = receivers.pop(), senders.pop()
        for peer in victim:
            peer.send(signal.SIGKILL)
            peer.wait(10)
        start_transfer(hosts, name="again")
        for receiver, sender in zip(receivers, senders):
            goes_on(receiver, sender)


def af_xdp_job():
    """One job, in whose ring each rank connects to ranks of the other host."""
    need_af_xdp()
    with Hosts(past_kernel=(0, 1), queues=SLOTS, processes=SLOTS) as hosts:
        report = os.path.join(hosts.folder, "report.json")
        place = f"10.67.0.1:{free_port()}"
        ranks = [hosts.start(f"rank{rank}", [PERF, "--plugin", PLUGIN, "--ranks", str(2 * SLOTS), "--rank", str(rank),
                                             "--rendezvous", place, "--op", "all_reduce", *SWEEP, "--json", report],
                             {"ZTCP_LOCAL_RANK": str(rank % 2)}) for rank in range(2 * SLOTS)]
        for rank in ranks:
            check(rank.wait(120) == 0, f"{rank.name} failed:\n{rank.output()[-2000:]}")
        with open(report, encoding="utf-8") as file:
            rows_are_right(json.load(file))


def af_xdp_kernel_peer():
    """Kernel sockets can't choose the port that leads to the right process, and say so."""
    need_af_xdp()
    with Hosts(past_kernel=(0,), queues=SLOTS, processes=SLOTS) as hosts:
        start_peer(hosts, "recv", 0)
        sender = start_peer(hosts, "send", 1)
        check(sender.wait(30) == EXIT_PLUGIN_ERROR, "the sender went on")
        check("processes of the peer's host share its AF_XDP interface" in hosts.log(), "no line says why")


def af_xdp_unshared():
    """processes = 1: the second one is told so, and the first one goes on."""
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
    main({f.__name__: f for f in (kernel_sockets, af_xdp, af_xdp_job, af_xdp_kernel_peer, af_xdp_unshared)})
