#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
# Copyright the ztcp authors
"""The built plugin over kernel sockets between two hosts, and faults of hosts and network."""
import json
import os
import re
import signal
import statistics
import subprocess
import sys
import time

from fabric import check, main, wait_until
from faults import (DEATH_BOUND_S, EXIT_PLUGIN_ERROR, TOLD_BOUND_S, done_count, ends_with_remote_error, start_peer,
                    start_transfer)
from namespaces import Hosts, enter
from transfer import SWEEP, rows_are_right


def all_reduce(switched=(), sweep=SWEEP, said="", **network):
    with Hosts(switched=switched, **network) as hosts:
        report = os.path.join(hosts.folder, "report.json")
        ranks = hosts.start_pair("--op", "all_reduce", *sweep, "--json", report)
        for rank in ranks:
            check(rank.wait(120) == 0, f"{rank.name} failed:\n{rank.output()[-2000:]}")
        with open(report, encoding="utf-8") as file:
            rows_are_right(json.load(file))
        check("kernel sockets, data " + hosts.address(0).split("/")[0] in hosts.log(), "no line names the interface")
        check(re.search(said, hosts.log()), f"no line says '{said}'")


def ipv4_mtu_1500():
    all_reduce(mtu=1500)


def ipv4_mtu_9000():
    all_reduce(mtu=9000)


def ipv6_mtu_1500():
    all_reduce(mtu=1500, family=6)


def ipv6_mtu_9000():
    all_reduce(mtu=9000, family=6)


def loss_5(said=r"the kernel sent [1-9]\d* segments again"):
    all_reduce(("--loss", "5%", "--seed", "7"),
               ["--min", "8", "--max", "256K", "--factor", "32", "--iters", "2", "--warmup", "1", "--check"], said)


def without_a_config(hosts, said, **env):
    """Runs a job over the interface and address that ztcp chooses."""
    for config in hosts.configs:
        os.remove(config)
    ranks = hosts.start_pair("--op", "sendrecv", "--max", "64K", "--check", ZTCP_TRANSPORT="sockets", **env)
    for rank in ranks:
        check(rank.wait(60) == 0, f"{rank.name} failed:\n{rank.output()[-2000:]}")
    for host in range(2):
        text = said.format(host + 1)
        check(text in hosts.log(), f"no line says '{text}'")


def routed_address():
    """A host with a single routed address has it on `lo`, beside 127.0.0.1."""
    with Hosts() as hosts:
        for host in range(2):
            hosts.on(host, "ip", "address", "add", f"10.55.0.{host + 1}/32", "dev", "lo")
            hosts.on(host, "ip", "route", "add", f"10.55.0.{2 - host}/32", "via", hosts.address(1 - host).split("/")[0],
                     "src", f"10.55.0.{host + 1}")
        without_a_config(hosts, "kernel sockets, lo 10.55.0.{}", NCCL_SOCKET_IFNAME="lo")


def duplicate_address():
    """An address that failed duplicate detection is listed before the good one."""
    with Hosts(family=6) as hosts:
        hosts.on(0, "ip", "address", "add", "fd66::9/64", "dev", "data", "nodad")
        hosts.on(1, "ip", "address", "add", "fd66::9/64", "dev", "data")
        shown = hosts.inside(1, ["ip", "-6", "-o", "address", "show", "dev", "data"])
        wait_until(lambda: "dadfailed" in subprocess.run(shown, check=True, capture_output=True, text=True).stdout, 20,
                   "failure of duplicate address detection")
        hosts.on(0, "ip", "address", "delete", "fd66::9/64", "dev", "data")
        without_a_config(hosts, "kernel sockets, data fd66::{}", NCCL_SOCKET_IFNAME="data", NCCL_SOCKET_FAMILY="AF_INET6")


def receive_queues():
    """Flows are spread over the interface's receive queues: one that another queue serves better is
    refused and dialled again."""
    with Hosts(queues=4, messages="flows = 4") as hosts:
        # That four flows come to four queues by chance happens one time in ten.
        arguments = ("--rounds", "20", "--count", "4", "--size", "200000")
        processes = [start_peer(hosts, role, rank, *arguments) for rank, role in enumerate(("recv", "send"))]
        for process in processes:
            check(process.wait(60) == 0, f"{process.name} failed:\n{process.output()[-2000:]}")
        log = hosts.log()
        check("spread over 4 RX queues" in log, "the init line does not say so")
        if "flows are not spread over its 4 RX queues" in log:
            print("this kernel's veth does not report its queues")
            sys.exit(77)
        refused = re.findall(r", (\d+) refused_rx_queue", log)
        check(refused and 0 < max(map(int, refused)) <= 20 * 4 * 8, f"so many flows were refused: {refused}")
        check(" failed" not in log, "a connection of the job's failed")


def goes_on(receiver, sender, more=100):
    before = done_count(receiver)
    wait_until(lambda: done_count(receiver) > before + more or not receiver.running() or not sender.running(), 30,
               "the transfer going on")
    check(receiver.running() and sender.running(), "the job was hurt")


def down(seconds, *said):
    with Hosts() as hosts:
        receiver, sender = start_transfer(hosts)
        hosts.on(0, "ip", "link", "set", "data", "down")
        time.sleep(seconds)
        hosts.on(0, "ip", "link", "set", "data", "up")
        goes_on(receiver, sender)
        for what in said:
            wait_until(lambda line=what: line in hosts.log(), 10, f"a line: {what}")


def briefly_down():
    """Shorter than user_timeout_ms: the flows survive it."""
    down(1)


def down_for_long():
    """Longer than user_timeout_ms: flows may die, the job goes on, and the log names the cause."""
    down(5, "WARN ztcp0: data of this host is down: ip link set dev data up",
         "data of this host is up again, after")


def merged():
    """Two interfaces as one device: all sizes go over both, and traffic goes on while either link
    is down for long."""
    with Hosts(merged=True) as hosts:
        for rank in hosts.start_pair("--op", "all_reduce", *SWEEP):
            check(rank.wait(120) == 0, f"{rank.name} failed:\n{rank.output()[-2000:]}")
        check(re.search(r"eth: TCP over 2 rails that .*host0\.conf merges: TCP, of host memory alone, on data 10\.66\.0\.1", hosts.log()),
              "no line says which")
        receiver, sender = start_transfer(hosts)
        for interface in ("data", "more"):
            hosts.on(0, "ip", "link", "set", interface, "down")
            wait_until(lambda what=f"eth: the rail over TCP on {interface} has failed to": hosts.log().count(what) >= 2, 20, "both seeing it")
            goes_on(receiver, sender)
            hosts.on(0, "ip", "link", "set", interface, "up")
            wait_until(lambda what=f"eth: the rail over TCP on {interface} to": hosts.log().count(what) >= 2, 40, "the rail being back")
            goes_on(receiver, sender)


def address_removed():
    with Hosts() as hosts:
        receiver, sender = start_transfer(hosts)
        hosts.on(0, "ip", "address", "flush", "dev", "data")
        began = time.monotonic()
        # The host that had the address may get an error from its own kernel: no route.
        for process, what in ((sender, r"sending to 10\.66\.0\.1:\d+ failed"),
                              (receiver, r"receiving from 10\.66\.0\.2:\d+ failed")):
            check(process.wait(DEATH_BOUND_S) == EXIT_PLUGIN_ERROR, f"{process.name} ended well")
            check(re.search(what, hosts.log()), f"no line says '{what}'")
        check(time.monotonic() - began < DEATH_BOUND_S, "it took too long")


def killed(victim_sends):
    with Hosts() as hosts:
        receiver, sender = start_transfer(hosts)
        victim, survivor = (sender, receiver) if victim_sends else (receiver, sender)
        victim.send(signal.SIGKILL)
        # The victim's kernel refuses: nobody listens there any more.
        what = r"receiving from 10\.66\.0\.2:\d+" if victim_sends else r"sending to 10\.66\.0\.1:\d+"
        ends_with_remote_error(survivor, hosts, what + " failed: the peer refused", TOLD_BOUND_S)


def sender_killed():
    killed(victim_sends=True)


def receiver_killed():
    killed(victim_sends=False)


def stopped(which, seconds):
    with Hosts() as hosts:
        processes = start_transfer(hosts)
        processes[which].send(signal.SIGSTOP)
        time.sleep(seconds)
        processes[which].send(signal.SIGCONT)
        goes_on(*processes)


def receiver_stopped():
    """Its kernel goes on acknowledging until its memory is full."""
    stopped(0, 2)


def receiver_stopped_for_long():
    """Stopped for longer than user_timeout_ms and redial_window_ms, with more in flight than its
    kernel takes: the kernel still answers, so the job waits, and the log names the stopped process.
    """
    with Hosts() as hosts:
        for host in range(2):
            hosts.on(host, "sh", "-c", "echo 4096 65536 131072 > /proc/sys/net/ipv4/tcp_rmem")
        processes = start_transfer(hosts, (0, 1), "--size", "4000000", "--timeout", "90")
        processes[0].send(signal.SIGSTOP)
        wait_until(lambda: "the process at 10.66.0.1 has taken nothing for" in hosts.log(), 10, "a line that names it")
        time.sleep(14)
        processes[0].send(signal.SIGCONT)
        goes_on(*processes, more=10)
        check("10.66.0.1 takes messages again, after" in hosts.log(), "no line says that it is over")


def mtu_hole():
    """Large packets are dropped between the hosts without ICMP: the job goes on with small ones."""
    with Hosts(mtu=9000, between_mtu=1500) as hosts:
        for rank in hosts.start_pair("--op", "sendrecv", "--max", "1M", "--check", "--connect-timeout", "20",
                                     "--stall-timeout", "60"):
            check(rank.wait(120) == 0, f"{rank.name} failed:\n{rank.output()[-2000:]}")
        check(re.search(r"large packets to 10\.66\.0\.\d do not arrive, small ones do: data has an MTU of 9000 bytes", hosts.log()),
              "no line names the MTU")


def sender_stopped():
    stopped(1, 2)


def communicators():
    """200 communicators, made and ended one after the other in one process, leak nothing."""
    with Hosts() as hosts:
        arguments = ("--rounds", "200", "--count", "20", "--size", "200000")
        processes = [start_peer(hosts, role, rank, *arguments) for rank, role in enumerate(("recv", "send"))]
        for process in processes:
            check(process.wait(120) == 0, f"{process.name} failed:\n{process.output()[-2000:]}")
            counts = [int(n) for n in re.findall(r"(?m)^descriptors (\d+)$", process.output())]
            check(len(counts) == 200, f"{len(counts)} rounds of {process.name}")
            # Descriptors of the last connection or two, of up to five flows each, may still wait
            # for FIN.
            check(statistics.median(counts[150:]) <= max(counts[:50]) and max(counts) <= min(counts) + 10,
                  f"{process.name} has ever more descriptors: {counts}")


# More of them stay silent than may be connected at once without a handshake.
STRANGERS = """
import os, random, socket, time
silent = []
for i in range(800):
    one = socket.create_connection(("10.66.0.1", 7472 + i % 2), 5)
    if i % 8 < 2:
        one.sendall(random.Random(i).randbytes(1 + i * 7))
    elif i % 8 < 4:
        one.close()
    else:
        silent.append(one)
print("here", flush=True)
time.sleep(60)
"""


def strangers():
    """Strangers that send garbage, stay silent or leave neither harm a job nor keep one from
    starting."""
    with Hosts() as hosts:
        first = start_transfer(hosts)
        second = [start_peer(hosts, "recv", 0, "--name", "second", "--count", "200", name="second-recv")]
        wait_until(lambda: os.path.exists(os.path.join(hosts.folder, "second")), 30, "a second listener")
        crowd = hosts.start("strangers", hosts.inside(1, [sys.executable, "-c", STRANGERS]))
        wait_until(lambda: "here" in crowd.output() or not crowd.running(), 30, "strangers at the port")
        check(crowd.running(), f"the strangers ended:\n{crowd.output()}")
        goes_on(*first)
        second.append(start_peer(hosts, "send", 1, "--name", "second", "--count", "200", name="second-send"))
        for process in second:
            check(process.wait(60) == 0, f"{process.name} failed:\n{process.output()[-2000:]}")
        goes_on(*first)
        check(" failed" not in hosts.log(), "a connection of the job's failed")
        check("listening at 10.66.0.1:7473" in hosts.log(), "the second listener was not where the strangers were")


HOG = """
import socket, time
all = [socket.create_connection(("10.66.0.1", 7472), 5) for _ in range(2)]
print("here", flush=True)
time.sleep(60)
"""


def ports_exhausted():
    """A host without a free port to connect from logs the setting to change."""
    with Hosts() as hosts:
        hosts.on(1, "sh", "-c", "echo 50000 50001 > /proc/sys/net/ipv4/ip_local_port_range")
        start_peer(hosts, "recv", 0)
        wait_until(lambda: os.path.exists(os.path.join(hosts.folder, "handle")), 30, "the listener")
        hog = hosts.start("hog", hosts.inside(1, [sys.executable, "-c", HOG]))
        wait_until(lambda: "here" in hog.output() or not hog.running(), 30, "the last ports")
        check(hog.running(), f"the ports were not taken:\n{hog.output()}")
        check(start_peer(hosts, "send", 1).wait(30) == EXIT_PLUGIN_ERROR, "there was a port left")
        check("no port is left on 10.66.0.2 to connect from: widen net.ipv4.ip_local_port_range" in hosts.log(),
              "no line names the setting")


if __name__ == "__main__":
    enter()
    main({f.__name__: f for f in (ipv4_mtu_1500, ipv4_mtu_9000, ipv6_mtu_1500, ipv6_mtu_9000, receive_queues, loss_5,
                                  briefly_down, down_for_long, merged, address_removed, sender_killed, receiver_killed, receiver_stopped,
                                  receiver_stopped_for_long, sender_stopped, mtu_hole, communicators, strangers,
                                  ports_exhausted, routed_address, duplicate_address)})
