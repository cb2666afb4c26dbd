#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
# Copyright the ztcp authors
"""The built plugin over AF_XDP between two hosts: data, and faults of the interface below."""
import json
import os
import re
import signal
import socket
import subprocess
import sys
import time

from fabric import check, main, wait_until
from faults import DEATH_BOUND_S, EXIT_PLUGIN_ERROR, done_count, ends_with_remote_error, start_transfer
from namespaces import Hosts, enter, ip
from transfer import SWEEP, rows_are_right

BOTH = (0, 1)


def need_af_xdp():
    try:
        socket.socket(44, socket.SOCK_RAW, 0).close()
    except OSError as why:
        print(f"no AF_XDP here: {why}")
        sys.exit(77)
    with open("/proc/self/uid_map", encoding="utf-8") as users:
        if users.read().split() != ["0", "0", "4294967295"]:
            print("BPF needs root itself, not a user namespace's")
            sys.exit(77)


def attached(hosts, host):
    """The id of the XDP program on `data`, as text; nothing: there is none."""
    said = subprocess.run(hosts.inside(host, ["ip", "-d", "link", "show", "data"]), check=True, timeout=30,
                          capture_output=True, text=True).stdout
    found = re.search(r"prog/xdp id (\d+)", said)
    return found and found.group(1)


# linux/bpf.h: finds the link of the program with this id, and detaches it.
DETACH = """
import ctypes, struct, sys
libc = ctypes.CDLL(None, use_errno=True)
SYS_BPF, GET_INFO, LINK_GET_FD_BY_ID, LINK_GET_NEXT_ID, LINK_DETACH = 321, 15, 30, 31, 34
def bpf(command, attributes):
    buffer = ctypes.create_string_buffer(attributes, 128)
    result = libc.syscall(SYS_BPF, command, buffer, 128)
    return result, buffer.raw
link = 0
while True:
    result, raw = bpf(LINK_GET_NEXT_ID, struct.pack("I", link))
    if result < 0:
        sys.exit("no link has this program")
    link = struct.unpack_from("I", raw, 4)[0]
    fd, _ = bpf(LINK_GET_FD_BY_ID, struct.pack("I", link))
    if fd < 0:
        continue
    info = ctypes.create_string_buffer(128)
    bpf(GET_INFO, struct.pack("IIQ", fd, 128, ctypes.addressof(info)))
    if struct.unpack_from("III", info.raw)[2] == int(sys.argv[1]):
        sys.exit(bpf(LINK_DETACH, struct.pack("I", fd))[0])
"""


# The host's own traffic: as ssh's, over the interface and address that ztcp uses.
SERVE = """
import socket, sys
server = socket.create_server((sys.argv[1], 2222), family=socket.AF_INET6 if ":" in sys.argv[1] else socket.AF_INET)
print("ready", flush=True)
while True:
    client = server.accept()[0]
    while data := client.recv(65536):
        client.sendall(data)
"""
TALK = """
import os, socket, sys
said = os.urandom(1 << 18)
with socket.create_connection((sys.argv[1], 2222), timeout=10) as server:
    heard = b""
    for at in range(0, len(said), 4096):
        server.sendall(said[at:at + 4096])
        while len(heard) < at + 4096:
            heard += server.recv(65536)
    sys.exit(heard != said)
"""


# linux/bpf.h: loads a program that passes every frame, and holds it on the interface.
OTHER_PROGRAM = """
import ctypes, socket, struct, time
libc = ctypes.CDLL(None, use_errno=True)
def bpf(command, attributes):
    return libc.syscall(321, command, ctypes.create_string_buffer(attributes, 128), 128)
code = struct.pack("BBhi", 0xb7, 0, 0, 2) + struct.pack("BBhi", 0x95, 0, 0, 0)
code_at, licence_at = ctypes.create_string_buffer(code), ctypes.create_string_buffer(b"GPL")
attributes = struct.pack("IIQQIIQII16s", 6, 2, ctypes.addressof(code_at), ctypes.addressof(licence_at), 0, 0, 0, 0, 0,
                         b"guard")
program = bpf(5, attributes)
link = bpf(28, struct.pack("IIII", program, socket.if_nametoindex("data"), 37, 1 << 2))
print("ready" if program >= 0 and link >= 0 else f"failed: {program} {link}", flush=True)
time.sleep(600)
"""
# linux/ethtool.h: sets the number of receive queues, with two to send; prints the error's name.
SET_QUEUES = """
import array, errno, fcntl, socket, struct, sys
count = int(sys.argv[1])
request = array.array("B", struct.pack("9I", 0x3D, 0, 0, 0, 0, count, 2, 0, 0))
try:
    fcntl.ioctl(socket.socket(), 0x8946, struct.pack("16sP", b"data", request.buffer_info()[0]))
except OSError as why:
    print(errno.errorcode[why.errno])
"""


class KernelTraffic:
    def __init__(self, hosts):
        self.hosts = hosts
        self.target = hosts.address(1).split("/")[0]
        server = hosts.start("server", hosts.inside(1, [sys.executable, "-c", SERVE, self.target]))
        wait_until(lambda: "ready" in server.output() or not server.running(), 30, "the server")
        self.check()

    def check(self):
        self.hosts.on(0, sys.executable, "-c", TALK, self.target)


def run_job(hosts, *arguments):
    report = os.path.join(hosts.folder, "report.json")
    ranks = hosts.start_pair("--op", "all_reduce", *(arguments or SWEEP), "--json", report)
    for rank in ranks:
        check(rank.wait(120) == 0, f"{rank.name} failed:\n{rank.output()[-2000:]}")
    with open(report, encoding="utf-8") as file:
        rows_are_right(json.load(file))


def all_reduce(said="native mode, copy mode", past_kernel=BOTH, **network):
    with Hosts(past_kernel=past_kernel, **network) as hosts:
        others = KernelTraffic(hosts)
        run_job(hosts)
        check(re.search(r"xdp data, \d+ queues?, " + said, hosts.log()), f"no line says '{said}'")
        for host in past_kernel:
            check(not attached(hosts, host), f"host {host}: the program stayed on the interface")
        others.check()


def ipv4_mtu_1500():
    all_reduce(mtu=1500)


def ipv4_mtu_3500():
    all_reduce(mtu=3500)


def ipv4_mtu_9000():
    all_reduce(mtu=9000)


def ipv6_mtu_1500():
    all_reduce(mtu=1500, family=6)


def several_queues():
    all_reduce(mtu=1500, queues=4, said="native mode")


def several_lanes():
    all_reduce(mtu=1500, queues=4, lanes=2, said="native mode")


def kernel_peer():
    all_reduce(mtu=1500, past_kernel=(0,))


def kernel_peer_mtu_9000():
    all_reduce(mtu=9000, past_kernel=(0,))


def lossy(said, *options):
    """Through a switch, whose ports are taps: their driver has XDP, too."""
    with Hosts(past_kernel=BOTH, switched=["--loss", "5%", "--seed", "7"]) as hosts:
        run_job(hosts, *options)
        check(re.search(said, hosts.log()), f"no line says '{said}'")


def loss_5():
    lossy(r"retransmitted [1-9]\d* bytes", "--min", "8", "--max", "256K", "--factor", "32", "--iters", "2",
          "--warmup", "1", "--check")


def goes_on(receiver, sender):
    seen = done_count(receiver)
    wait_until(lambda: done_count(receiver) > seen + 2 or not receiver.running() or not sender.running(), 40,
               "more messages")
    check(receiver.running() and sender.running(), "the transfer has ended")


def briefly_down():
    """Shorter than user_timeout_ms: the flows survive it."""
    with Hosts(past_kernel=BOTH) as hosts:
        receiver, sender = start_transfer(hosts)
        hosts.on(0, "ip", "link", "set", "data", "down")
        time.sleep(1)
        hosts.on(0, "ip", "link", "set", "data", "up")
        goes_on(receiver, sender)


def other_traffic():
    """The host's own connections go on during a job."""
    with Hosts(past_kernel=BOTH) as hosts:
        others = KernelTraffic(hosts)
        receiver, sender = start_transfer(hosts)
        for _ in range(3):
            others.check()
            goes_on(receiver, sender)


def killed(victim_sends):
    """A process that is killed leaves no program behind, and its peer is told."""
    with Hosts(past_kernel=BOTH) as hosts:
        others = KernelTraffic(hosts)
        receiver, sender = start_transfer(hosts)
        victim, survivor = (sender, receiver) if victim_sends else (receiver, sender)
        check(attached(hosts, int(victim_sends)), "no program is attached")
        victim.send(signal.SIGKILL)
        ends_with_remote_error(survivor, hosts, "failed: ")
        wait_until(lambda: not attached(hosts, int(victim_sends)), 10, "the program's end")
        others.check()


def sender_killed():
    killed(victim_sends=True)


def receiver_killed():
    killed(victim_sends=False)


def detached():
    """Somebody takes the program off under load."""
    with Hosts(past_kernel=BOTH) as hosts:
        others = KernelTraffic(hosts)
        receiver, sender = start_transfer(hosts)
        hosts.on(0, sys.executable, "-c", DETACH, attached(hosts, 0))
        check(receiver.wait(DEATH_BOUND_S) == EXIT_PLUGIN_ERROR, "the receiver went on")
        ends_with_remote_error(sender, hosts, "has lost its XDP program")
        others.check()


def generic_mode():
    """veth runs no program where it has fewer receive queues than the other end has send queues."""
    all_reduce(mtu=1500, queues=(1, 2), said=r"generic mode \(native, with MTU 1500: No space left on device\), copy mode")


def mtu_changed():
    with Hosts(past_kernel=BOTH) as hosts:
        others = KernelTraffic(hosts)
        receiver, sender = start_transfer(hosts)
        hosts.on(0, "ip", "link", "set", "data", "mtu", "1400")
        wait_until(lambda: "its MTU is 1400 now, mtu_bytes = 1500 in the config" in hosts.log(), 10, "the warning")
        hosts.on(0, "ip", "link", "set", "data", "mtu", "1500")
        goes_on(receiver, sender)
        others.check()


def renamed():
    """An interface that is up can't be renamed before Linux 6.2."""
    with Hosts(past_kernel=BOTH) as hosts:
        others = KernelTraffic(hosts)
        receiver, sender = start_transfer(hosts)
        hosts.on(0, "sh", "-c", "ip link set data down; ip link set data name rail7; ip link set rail7 up")
        goes_on(receiver, sender)
        others.check()


def queues_changed():
    """The kernel takes no queue from a socket; frames of new queues pass to it."""
    with Hosts(past_kernel=BOTH, queues=4) as hosts:
        def set_queues(host, count):
            return subprocess.run(hosts.inside(host, [sys.executable, "-c", SET_QUEUES, str(count)]), check=True,
                                  timeout=30, capture_output=True, text=True).stdout.strip()

        for host in BOTH:
            check(set_queues(host, 2) == "", "veth did not take two queues")
        others = KernelTraffic(hosts)
        receiver, sender = start_transfer(hosts)
        check(re.search("xdp data, 2 queues", hosts.log()), "no line says 2 queues")
        check(set_queues(0, 1) != "", "the kernel took a queue from a socket")
        goes_on(receiver, sender)
        failure = set_queues(0, 4)
        check(failure == "", f"veth did not take four queues: {failure}")
        wait_until(lambda: "it has 4 queues now, ztcp has sockets for 2" in hosts.log(), 10, "the warning")
        goes_on(receiver, sender)
        others.check()


def down_for_long():
    with Hosts(past_kernel=BOTH) as hosts:
        others = KernelTraffic(hosts)
        receiver, sender = start_transfer(hosts)
        hosts.on(0, "ip", "link", "set", "data", "down")
        check(receiver.wait(DEATH_BOUND_S) == EXIT_PLUGIN_ERROR, "the receiver went on")
        ends_with_remote_error(sender, hosts, "failed: ")
        hosts.on(0, "ip", "link", "set", "data", "up")
        others.check()


def refused(said, change=lambda hosts: None, shares_interface=True, **network):
    """Rank 0 can't use AF_XDP: both ranks end soon, the reason is in the log, and the host's own
    traffic goes on."""
    with Hosts(past_kernel=(0,), **network) as hosts:
        others = KernelTraffic(hosts) if shares_interface else None
        change(hosts)
        for rank in hosts.start_pair("--op", "all_reduce", "--min", "8", "--max", "8"):
            check(rank.wait(90) != 0, f"{rank.name} succeeded")
        check(re.search(said, hosts.log()), f"no line says '{said}'")
        if others:
            others.check()


def another_program():
    def add_program(hosts):
        guard = hosts.start("guard", hosts.inside(0, [sys.executable, "-c", OTHER_PROGRAM]))
        wait_until(lambda: "ready" in guard.output() or not guard.running(), 30, "the other program")

    refused(r"the XDP program guard \(id \d+\) is on this interface already", add_program)


def missing_rights():
    refused("needs CAP_BPF, CAP_NET_ADMIN and CAP_NET_RAW",
            prefix=("setpriv", "--bounding-set=-bpf,-net_admin,-net_raw,-sys_admin"))


def little_locked_memory():
    refused(r"max locked memory is 1024 KiB, data needs 10240 KiB",
            prefix=("prlimit", "--memlock=1048576", "setpriv", "--bounding-set=-ipc_lock"))


def move_address(hosts, interface):
    hosts.on(0, "ip", "address", "flush", "dev", "data")
    hosts.on(0, "ip", "link", "set", interface, "up")
    hosts.add_address(0, hosts.address(0), interface)


def need_kind(*kind):
    ip("link", "add", "below0", "type", "veth", "peer", "name", "below1")
    if subprocess.run(["ip", "link", "add", "link", "below0", "name", "probe0", "type", *kind], check=False, timeout=30,
                      capture_output=True).returncode != 0:
        print(f"this kernel makes no {kind[0]}")
        sys.exit(77)
    ip("link", "delete", "probe0")
    ip("link", "delete", "below0")


def on_vlan():
    need_kind("vlan", "id", "5")

    def add_vlan(hosts):
        hosts.on(0, "ip", "link", "add", "link", "data", "name", "data.5", "type", "vlan", "id", "5")
        move_address(hosts, "data.5")
        hosts.set("interface", '"data.5"', hosts.configs[0])

    refused("data.5 is a VLAN: AF_XDP works on the NICs below it", add_vlan, shares_interface=False)


def below_bridge():
    need_kind("bridge")

    def add_bridge(hosts):
        hosts.on(0, "ip", "link", "add", "br0", "type", "bridge")
        hosts.on(0, "ip", "link", "set", "data", "master", "br0")
        move_address(hosts, "br0")

    refused("data belongs to br0, which has the address and receives its frames", add_bridge)


def below_bond():
    need_kind("bond")

    def add_bond(hosts):
        hosts.on(0, "ip", "link", "add", "bond0", "type", "bond", "mode", "active-backup")
        hosts.on(0, "ip", "link", "set", "data", "down")
        hosts.on(0, "ip", "link", "set", "data", "master", "bond0")
        move_address(hosts, "bond0")

    refused("data belongs to bond0, which has the address and receives its frames", add_bond)


if __name__ == "__main__":
    enter()
    need_af_xdp()
    main({f.__name__: f for f in (ipv4_mtu_1500, ipv4_mtu_3500, ipv4_mtu_9000, ipv6_mtu_1500, several_queues, several_lanes,
                                  kernel_peer, kernel_peer_mtu_9000, loss_5, briefly_down, other_traffic, sender_killed,
                                  receiver_killed, detached, generic_mode, mtu_changed, renamed, queues_changed,
                                  down_for_long, another_program, missing_rights, little_locked_memory, on_vlan,
                                  below_bridge, below_bond)})
