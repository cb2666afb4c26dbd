#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
# Copyright the ztcp authors
"""Jobs of two kinds of host: one bypasses its kernel, the other uses kernel sockets.

Where there is one direction only, host 0 receives and host 1 sends; each case runs with either host
bypassing.
"""
import json
import os
import re
import signal
import sys
import time

from fabric import check, main, wait_until
from faults import (DEATH_BOUND_S, DIED, EXIT_PLUGIN_ERROR, TOLD_BOUND_S, done_count, ends_with_remote_error, start_peer,
                    start_transfer, wait_until_watched)
from namespaces import Hosts, enter
from transfer import SWEEP, rows_are_right

OTHER_KEYS = ('"' + "5a" * 32 + '"', '"' + "a5" * 32 + '"')
# For kernels that reach each other.
WATCHED = 'watch_interface = "boot"'
UNWATCHED = 'watch_interface = "off"'
SUSPECTED_S = 2.5  # Longer than a suspicion lasts.
# In a handle, behind 6 bytes of header and 18 of the endpoint (core/listen_address.h).
COOKIE_AT = 24


def configure(hosts, *texts):
    """Appends a text to each host's config, behind its [messages]."""
    for config, text in zip(hosts.configs, texts):
        with open(config, encoding="utf-8") as file:
            whole = file.read()
        with open(config, "w", encoding="utf-8") as file:
            file.write(whole.replace("[tcp]\n", f"{text}\n[tcp]\n"))


def operations(bypassing, mtu, *arguments, switched=(), sweep=SWEEP, workers=None, family=4):
    with Hosts(bypassing=(bypassing,), mtu=mtu, switched=switched, family=family) as hosts:
        if workers is not None:
            configure(hosts, *[f"[poller]\nworkers = {workers}"] * 2)
        for op in ("all_reduce", "all_to_all", "sendrecv", "ping"):
            report = os.path.join(hosts.folder, f"{op}.json")
            ranks = hosts.start_pair("--op", op, *sweep, *arguments, "--json", report)
            for rank in ranks:
                check(rank.wait(120) == 0, f"{op}: {rank.name} failed:\n{rank.output()[-2000:]}")
            with open(report, encoding="utf-8") as file:
                rows_are_right(json.load(file))
        for line in ("kernel sockets, data ", "userspace TCP"):
            check(line in hosts.log(), f"no line says '{line}'")


def goes_on(receiver, sender, more=100):
    before = done_count(receiver)
    wait_until(lambda: done_count(receiver) > before + more or not receiver.running() or not sender.running(), 30,
               "the transfer going on")
    check(receiver.running() and sender.running(), "the job was hurt")


def redialled(bypassing):
    """Longer than user_timeout_ms: flows die at both ends and are dialled again."""
    with Hosts(bypassing=(bypassing,)) as hosts:
        receiver, sender = start_transfer(hosts)
        hosts.on(1 - bypassing, "ip", "link", "set", "data", "down")
        time.sleep(5)
        hosts.on(1 - bypassing, "ip", "link", "set", "data", "up")
        goes_on(receiver, sender)


def cut(bypassing):
    """The link stays down: user_timeout_ms and the keepalive work alike in both TCPs, so the sender
    gives up after the same time as between equal hosts, and the receiver later by the time in which
    it may be redialled."""
    with Hosts(bypassing=(bypassing,)) as hosts:
        receiver, sender = start_transfer(hosts)
        hosts.on(1 - bypassing, "ip", "link", "set", "data", "down")
        began = time.monotonic()
        for process, what, least_s, most_s in ((sender, r"sending to 10\.66\.0\.1:\d+ failed", 7, 20),
                                               (receiver, r"receiving from 10\.66\.0\.2:\d+ failed", 10, 25)):
            check(process.wait(DEATH_BOUND_S) == EXIT_PLUGIN_ERROR, f"{process.name} ended well")
            took = time.monotonic() - began
            print(f"{process.name} ended after {took:.1f} s")
            check(least_s <= took <= most_s, f"{process.name} ended after {took:.1f} s")
            check(re.search(what, hosts.log()), f"no line says '{what}'")


def killed(bypassing, victim_sends, watched=True, family=4, boot_family=4):
    """The kernel of a killed process closes its connections; a NIC of its own falls silent, and the
    watch reports the death where the two kernels reach each other."""
    with Hosts(bypassing=(bypassing,), family=family, boot_family=boot_family) as hosts:
        configure(hosts, *[WATCHED if watched else UNWATCHED] * 2)
        receiver, sender = start_transfer(hosts)
        victim, survivor = (sender, receiver) if victim_sends else (receiver, sender)
        if watched:
            wait_until_watched(hosts, survivor, 0 if victim_sends else 1)
        victim.send(signal.SIGKILL)
        shown = [re.escape(("[{}]" if family == 6 else "{}").format(hosts.address(host).split("/")[0]))
                 for host in range(2)]
        what = rf"receiving from {shown[1]}:\d+ failed" if victim_sends else rf"sending to {shown[0]}:\d+ failed"
        is_silent = bypassing == (1 if victim_sends else 0)
        if not is_silent:
            what += ": the peer refused"
        elif watched:
            what += ".*" + DIED.format(r"\d+")
        ends_with_remote_error(survivor, hosts, what, DEATH_BOUND_S if is_silent and not watched else TOLD_BOUND_S)


def watch_cut(bypassing):
    """A peer whose watch connection ends may be alive: it is probed."""
    with Hosts(bypassing=(bypassing,)) as hosts:
        configure(hosts, *[WATCHED] * 2)
        # Only on the bypassing host: all its kernel connections are watches.
        cutting = [["--cut-watches-after", "2000"] if host == bypassing else [] for host in range(2)]
        receiver = start_peer(hosts, "recv", 0, *cutting[0])
        sender = start_peer(hosts, "send", 1, *cutting[1])
        cutter = (receiver, sender)[bypassing]
        wait_until(lambda: re.search(r"(?m)^cut [1-9]", cutter.output()), 30, "the cut")
        time.sleep(SUSPECTED_S)
        goes_on(receiver, sender)
        check("failed" not in hosts.log(), hosts.log())


def wrong_cookie(bypassing):
    """A connection with a wrong cookie is rejected, the error says why, and others are unharmed."""
    with Hosts(bypassing=(bypassing,)) as hosts:
        receiver = start_peer(hosts, "recv", 0, "--count", "100")
        handle = os.path.join(hosts.folder, "handle")
        wait_until(lambda: os.path.exists(handle), 30, "the listener")
        with open(handle, "rb") as file:
            forged = bytearray(file.read())
        forged[COOKIE_AT] ^= 0xff
        with open(os.path.join(hosts.folder, "forged"), "wb") as file:
            file.write(forged)
        stranger = start_peer(hosts, "send", 1, "--name", "forged", name="stranger")
        check(stranger.wait(30) == EXIT_PLUGIN_ERROR, "an unknown cookie was accepted")
        check("the peer refused: no such listener" in hosts.log(), "no line says why")
        sender = start_peer(hosts, "send", 1, "--count", "100")
        for process in (receiver, sender):
            check(process.wait(60) == 0, f"{process.name} failed:\n{process.output()[-2000:]}")


def wrong_key(bypassing):
    with Hosts(bypassing=(bypassing,)) as hosts:
        configure(hosts, *(f"cluster_key = {key}" for key in OTHER_KEYS))
        start_peer(hosts, "recv", 0)
        sender = start_peer(hosts, "send", 1)
        check(sender.wait(30) == EXIT_PLUGIN_ERROR, "different keys were accepted")
        check("the cluster keys of the two hosts differ" in hosts.log(), "no line says why")


def channels_chosen(bypassing):
    """Only the host of kernel sockets chooses channels: NCCL would hang, so both are told the
    remedy."""
    with Hosts(bypassing=(bypassing,), tuner="on") as hosts:
        for rank in hosts.start_pair("--op", "sendrecv", *SWEEP):
            check(rank.wait(60) not in (0, None), f"{rank.name}: ranks that differ in their channels were joined")
        check("export ZTCP_TUNER=off on all hosts" in hosts.log(), "no line says what mends it")


def unwatched(bypassing):
    """Only the timeouts detect the death, later."""
    killed(bypassing, victim_sends=bypassing == 1, watched=False)


# The direction of messages, and the host that bypasses its kernel then.
ENDS = {"kernel_to_bypass": 0, "bypass_to_kernel": 1}
CASES = {}
for name, bypassing in ENDS.items():
    CASES.update({
        f"{name}_mtu_1500": lambda bypassing=bypassing: operations(bypassing, 1500),
        f"{name}_ipv6": lambda bypassing=bypassing: operations(bypassing, 1500, family=6),
        f"{name}_mtu_9000": lambda bypassing=bypassing: operations(bypassing, 9000, "--tags", "8"),
        f"{name}_workers": lambda bypassing=bypassing: operations(
            bypassing, 9000, "--tags", "2", workers=2,
            sweep=["--min", "64K", "--max", "16M", "--factor", "16", "--iters", "3", "--warmup", "1", "--check"]),
        f"{name}_loss_5": lambda bypassing=bypassing: operations(
            bypassing, 1500, switched=("--loss", "5%", "--seed", "7"),
            sweep=["--min", "8", "--max", "256K", "--factor", "32", "--iters", "2", "--warmup", "1", "--check"]),
        f"{name}_redialled": lambda bypassing=bypassing: redialled(bypassing),
        f"{name}_cut": lambda bypassing=bypassing: cut(bypassing),
        f"{name}_sender_killed": lambda bypassing=bypassing: killed(bypassing, victim_sends=True),
        f"{name}_receiver_killed": lambda bypassing=bypassing: killed(bypassing, victim_sends=False),
        # The watch at an IPv4 address, and at an IPv6 address.
        f"{name}_sender_killed_ipv6": lambda bypassing=bypassing: killed(bypassing, victim_sends=True, family=6),
        f"{name}_receiver_killed_ipv6": lambda bypassing=bypassing: killed(bypassing, victim_sends=False, family=6,
                                                                           boot_family=6),
        f"{name}_watch_cut": lambda bypassing=bypassing: watch_cut(bypassing),
        f"{name}_unwatched_killed": lambda bypassing=bypassing: unwatched(bypassing),
        f"{name}_wrong_cookie": lambda bypassing=bypassing: wrong_cookie(bypassing),
        f"{name}_wrong_key": lambda bypassing=bypassing: wrong_key(bypassing),
        f"{name}_channels_chosen": lambda bypassing=bypassing: channels_chosen(bypassing),
    })

if __name__ == "__main__":
    enter()
    main(CASES)
