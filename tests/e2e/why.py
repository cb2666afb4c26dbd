#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
# Copyright the ztcp authors
"""Ten faults, each made on purpose: `ztcp_stat why` or the log names each within ten seconds.

docs/faults.md shows the screens.
"""
import contextlib
import os
import re
import resource
import signal
import struct
import subprocess
import sys
import time

from fabric import Fabric, check, main
from faults import done_count, start_peer, start_transfer
from namespaces import Hosts, enter

STAT = os.environ["E2E_STAT"]
BOUND_S = 10
# A diagnosis takes two looks, one second apart; the rest is for a busy machine.
RUN_S = 30
EXIT_HEALTHY = 0
EXIT_FAULT = 1


def why(config):
    done = subprocess.run([STAT, "why", "--config", config], capture_output=True, text=True, timeout=RUN_S, check=False)
    return done.returncode, done.stdout + done.stderr


def is_named(config, pattern, bound_s=BOUND_S):
    """`ztcp_stat why` says so, at the latest `bound_s` after the fault."""
    deadline = time.monotonic() + bound_s
    while True:
        began = time.monotonic()
        status, text = why(config)
        if re.search(pattern, text):
            check(status == EXIT_FAULT, f"the fault is named, and the exit status is {status}")
            print(text)
            return
        check(began < deadline, f"`why` does not say '{pattern}':\n{text}")


def is_logged(fabric, pattern):
    deadline = time.monotonic() + BOUND_S
    while not re.search(pattern, fabric.log()):
        check(time.monotonic() < deadline, f"no line says '{pattern}'")
        time.sleep(0.1)
    print(re.search(r"[^\n]*" + pattern + r"[^\n]*", fabric.log()).group(0))


def start_job(fabric, ranks, *arguments):
    """All-to-all traffic until the test ends."""
    started = fabric.start_ranks("--op", "all_to_all", "--min", "256K", "--max", "256K", "--iters", "1000000",
                                 "--warmup", "1", *arguments, ranks=ranks)
    wait_for_pages(fabric.config, ranks)
    return started


def wait_for_pages(config, count):
    deadline = time.monotonic() + 30
    while True:
        shown = subprocess.run([STAT, "--once", "--json", "--config", config], capture_output=True, text=True, timeout=RUN_S,
                               check=False).stdout
        if len(re.findall(r'"pid":', shown)) >= count:
            return
        check(time.monotonic() < deadline, f"the job's pages are not there:\n{shown}")
        time.sleep(0.2)


def healthy():
    """Without a fault none is called severe, except for what a busy machine does to its threads."""
    with Fabric(2) as fabric:
        fabric.start_switch()
        start_job(fabric, 2)
        time.sleep(3)
        status, text = why(fabric.config)
        check(status == EXIT_HEALTHY or "severe:" not in text or "ran late" in text, f"a fault is named where none was made:\n{text}")


def slow_nic():
    with Fabric(4) as fabric:
        fabric.start_switch("--port", "nic:ztcp2,rate=20Mbit,queue=64K,in.rate=20Mbit")
        start_job(fabric, 4)
        time.sleep(3)
        is_named(fabric.config, r"10\.99\.0\.3|ztcp2")


def mtu_1500_on_the_way():
    """Packets of 9000 bytes are dropped on the way without a word."""
    with Hosts(mtu=9000, between_mtu=1500) as hosts:
        for role, rank in (("recv", 0), ("send", 1)):
            start_peer(hosts, role, rank, "--size", "1000000", "--count", "1000000")
        is_logged(hosts, r"large packets to 10\.66\.0\.\d do not arrive")


def loss():
    with Fabric(2) as fabric:
        fabric.start_switch("--loss", "0.1%", "--seed", "7")
        start_job(fabric, 2)
        time.sleep(2)
        is_named(fabric.config, r"lost [\d.]+ ?% of the bytes")


def stopped_rank():
    with Hosts() as hosts:
        receiver, _ = start_transfer(hosts, (0, 1), "--size", "1000000", "--timeout", "90")
        receiver.send(signal.SIGSTOP)
        is_named(hosts.configs[1], r"10\.66\.0\.1.*though its host.s kernel answers")


def descriptor_table_full():
    with Hosts() as hosts:
        before = resource.getrlimit(resource.RLIMIT_NOFILE)
        start_peer(hosts, "recv", 0, "--rounds", "2", "--count", "100")
        resource.setrlimit(resource.RLIMIT_NOFILE, (64, before[1]))
        try:
            start_peer(hosts, "send", 1, "--rounds", "2", "--count", "100", "--fill-descriptors")
        finally:
            resource.setrlimit(resource.RLIMIT_NOFILE, before)
        is_logged(hosts, r"64 of 64 \(ulimit -n\) are in use")


def peer_without_ztcp():
    """The handle is that of NCCL's own sockets: an address and a random number."""
    with Hosts() as hosts:
        handle = struct.pack("=H", 2) + struct.pack(">H", 40000) + bytes([10, 66, 0, 1]) + bytes(20) + os.urandom(8)
        with open(os.path.join(hosts.folder, "handle"), "wb") as file:
            file.write(handle.ljust(128, b"\0"))
        start_peer(hosts, "send", 1)
        is_logged(hosts, r"10\.66\.0\.1.* uses another network \(NCCL's Socket or IB\?\)")


def peer_died():
    with Hosts() as hosts:
        receiver, sender = start_transfer(hosts)
        receiver.send(signal.SIGKILL)
        is_logged(hosts, r"sending to 10\.66\.0\.1:\d+ failed: the peer refused")
        is_named(hosts.configs[0], rf"{receiver.pid}.* died .* ago")
        check(sender.wait(30) != 0, "the sender went on")


def move_to(folder):
    """Moves this process; those that it starts later begin there."""
    with open(os.path.join(folder, "cgroup.procs"), "w", encoding="utf-8") as file:
        file.write(str(os.getpid()))


@contextlib.contextmanager
def cpu_quota(percent):
    """A cgroup of either version with this quota; skips the test where none can be made."""
    name = f"ztcp-why-{os.getpid()}"
    for root, files in (("/sys/fs/cgroup", {"cpu.max": f"{percent * 1000} 100000"}),
                        ("/sys/fs/cgroup/unified", {"cpu.max": f"{percent * 1000} 100000"}),
                        ("/sys/fs/cgroup/cpu", {"cpu.cfs_period_us": "100000", "cpu.cfs_quota_us": str(percent * 1000)})):
        folder = os.path.join(root, name)
        try:
            os.mkdir(folder)
        except OSError:
            continue
        try:
            for file, text in files.items():
                # An ordinary folder would let new files be made.
                with open(os.path.join(folder, file), "r+", encoding="utf-8") as out:
                    out.write(text)
        except OSError:
            os.rmdir(folder)
            continue
        try:
            yield lambda: move_to(folder), lambda: move_to(root)
        finally:
            for _ in range(100):
                try:
                    os.rmdir(folder)
                    break
                except OSError:
                    time.sleep(0.1)
        return
    print("no cgroup with a CPU quota can be made")
    sys.exit(77)


def quota():
    with cpu_quota(20) as (move_in, move_out), Fabric(2) as fabric:
        fabric.start_switch()
        move_in()
        try:
            start_job(fabric, 2)
        finally:
            move_out()
        is_named(fabric.config, r"by the CPU quota of its cgroup", bound_s=20)


def busy_neighbour():
    """Other processes use the only CPU of the ranks."""
    cpu = min(os.sched_getaffinity(0))
    with Fabric(2) as fabric:
        fabric.start_switch()
        ranks = start_job(fabric, 2)
        for number in range(6):
            neighbour = fabric.start(f"neighbour{number}", [sys.executable, "-c", "while True: pass"])
            os.sched_setaffinity(neighbour.pid, {cpu})
        for rank in ranks:
            for thread in os.listdir(f"/proc/{rank.pid}/task"):
                with contextlib.suppress(OSError):
                    os.sched_setaffinity(int(thread), {cpu})
        is_named(fabric.config, r"ran late", bound_s=20)


def slow_rank():
    """One rank of four computes between its steps, and the others wait for it."""
    with Fabric(2) as fabric:
        fabric.start_switch()
        receiver, sender = start_transfer(fabric, (0, 1), "--size", "1000000", "--timeout", "90")
        before = done_count(receiver)
        sender.send(signal.SIGSTOP)
        is_named(fabric.config, r"10\.99\.0\.2")
        sender.send(signal.SIGCONT)
        check(done_count(receiver) >= before, "the count fell")


if __name__ == "__main__":
    enter()
    subprocess.run(["ip", "link", "set", "lo", "up"], check=True, timeout=30)
    main({f.__name__: f for f in (healthy, slow_nic, mtu_1500_on_the_way, loss, stopped_rank, descriptor_table_full,
                                  peer_without_ztcp, peer_died, quota, busy_neighbour, slow_rank)})
