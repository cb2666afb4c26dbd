#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
# Copyright the ztcp authors
"""The built plugin over the kernel's TCP: with a config and without one, requested and not."""
import os
import subprocess
import sys

from fabric import Fabric, check, free_port, main, wait_until
from faults import EXIT_PLUGIN_ERROR, start_peer
from transfer import SWEEP, rows_are_right

ASKED = {"ZTCP_TRANSPORT": "sockets", "NCCL_SOCKET_IFNAME": "lo"}


def without_a_config(fabric):
    os.remove(fabric.config)
    return fabric


def said(fabric, *wanted):
    log = fabric.log()
    for text in wanted:
        check(text in log, f"{text!r} is not in the log")


def unconfigured():
    with Fabric(2, topology="mesh") as fabric:
        without_a_config(fabric)
        for op in ("all_reduce", "sendrecv"):
            rows_are_right(fabric.run_perf("--op", op, *SWEEP, env=ASKED))
        said(fabric, "lo: kernel sockets, lo 127.0.0.1", "ports of the kernel's choice; GPUDirect RDMA off: kernel sockets end in host memory; "
             "chosen by NCCL_SOCKET_IFNAME=lo")


def unasked():
    """A host that was meant to bypass the kernel does not silently run slowly."""
    with Fabric(2, topology="mesh") as fabric:
        without_a_config(fabric)
        check(fabric.start_perf("--op", "sendrecv").wait(60) != 0, "it ran without its config")
        said(fabric, "no fabric config at", "ZTCP_TRANSPORT=sockets")


def misspelt():
    with Fabric(2, topology="mesh") as fabric:
        perf = fabric.start_perf("--op", "sendrecv", env={**ASKED, "ZTCP_TRANSPORT": "socket"})
        check(perf.wait(60) != 0, "it ran with an unknown transport")
        said(fabric, "ZTCP_TRANSPORT=socket is none of sockets, ustack and verbs (did you mean sockets?)")


def instead():
    """The connection settings of a config hold also when none of its NICs is used."""
    with Fabric(2, topology="mesh", settings={"cluster_key": '"' + "5a" * 32 + '"'}) as fabric:
        rows_are_right(fabric.run_perf("--op", "sendrecv", *SWEEP, env=ASKED))
        said(fabric, "2 of the 2 NICs in", "lo: kernel sockets")


def write_config(fabric, address, first_port, last_port, more=""):
    with open(fabric.config, "w", encoding="utf-8") as file:
        file.write(f'schema = 1\n[[nic]]\nname = "ztcp0"\ndriver = "socket"\ninterface = "lo"\naddress = "{address}"\n'
                   f"first_port = {first_port}\nlast_port = {last_port}\n{more}")


def configured():
    with Fabric(2, topology="mesh") as fabric:
        first = free_port()
        write_config(fabric, "127.0.0.1/8", first, min(first + 7, 65535))
        rows_are_right(fabric.run_perf("--op", "all_reduce", *SWEEP))
        said(fabric, "ztcp0: kernel sockets, lo 127.0.0.1", f"listening at 127.0.0.1:{first}")


def several_devices():
    """One interface, exposed to NCCL as three devices; the ranks are on different ones."""
    with Fabric(3, topology="mesh") as fabric:
        first = free_port()
        write_config(fabric, "127.0.0.1/8", first, min(first + 7, 65535), "nccl_devices = 3\n")
        report = fabric.run_perf("--op", "all_reduce", *SWEEP)
        rows_are_right(report)
        devices = [rank["device"] for rank in report["ranks"]]
        check(all(device.startswith(f"{i} ztcp0{name}, 3333 Mb/s") for i, (device, name) in enumerate(zip(devices, ("", "#2", "#3")))),
              f"the ranks are on {devices}")
        said(fabric, "; exposed to NCCL as 3 devices, for each of which it opens channels")


def ports_taken():
    with Fabric(2, topology="mesh") as fabric:
        only = free_port()
        write_config(fabric, "127.0.0.1/8", only, only)
        check(fabric.start_perf("--op", "sendrecv").wait(60) != 0, "two processes had one port")
        said(fabric, "widen first_port and last_port in")


def ipv6():
    """A config may name ::1 as it may any other address."""
    has_loopback = subprocess.run(["ip", "-6", "-brief", "address", "show", "dev", "lo"], text=True, check=False,
                                  stdout=subprocess.PIPE).stdout
    if "::1/128" not in has_loopback:
        print("IPv6 is off on the loopback interface")
        sys.exit(77)
    with Fabric(2, topology="mesh") as fabric:
        first = free_port()
        write_config(fabric, "::1/128", first, min(first + 7, 65535))
        rows_are_right(fabric.run_perf("--op", "all_reduce", *SWEEP))
        said(fabric, f"listening at [::1]:{first}")


def shared_memory():
    """A kernel's interface has no route into a mesh, and a NIC of the mesh none out of it."""
    for sockets, said_why in (("send", r"no connection from 127.0.0.1 to 10.99.0.1:7471: the peer's NIC is shared memory"),
                              ("recv", r"no route from 10.99.0.2/24 to 127.0.0.1: it is shared memory between processes")):
        with Fabric(2, topology="mesh") as fabric:
            start_peer(fabric, "recv", 0, env=ASKED if sockets == "recv" else None)
            wait_until(lambda f=fabric: os.path.exists(os.path.join(f.folder, "handle")), 30, "the listener")
            sender = start_peer(fabric, "send", 1, env=ASKED if sockets == "send" else None)
            check(sender.wait(30) == EXIT_PLUGIN_ERROR, "there was a way")
            said(fabric, said_why)


def many_ranks():
    """64 ranks share the CPUs and one address of this machine."""
    with Fabric(2, topology="mesh") as fabric:
        without_a_config(fabric)
        fabric.ranks = 64
        for op in ("all_reduce", "all_to_all"):
            rows_are_right(fabric.run_perf("--op", op, "--min", "4K", "--max", "4K", "--iters", "1", "--warmup", "0",
                                           "--check", "--connect-timeout", "200", "--stall-timeout", "200",
                                           timeout_s=280, env=ASKED))


if __name__ == "__main__":
    main({f.__name__: f for f in (unconfigured, unasked, misspelt, instead, configured, several_devices, ports_taken, ipv6,
                                  shared_memory, many_ranks)})
