#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
# Copyright the ztcp authors
"""Resources of a process in jobs of 8, 64 and 128 hosts with 8 GPUs: the table of docs/sizing.md.

    tools/check_scale.py          fails when docs/sizing.md has another table than these formulas
    tools/check_scale.py --print  prints it

Connections and descriptors follow from NCCL's rules; the maximum of connections is read from
config/settings.h. Memory and set-up time of a connection are measured (tests/e2e/crowd.py prints
them) and multiplied, not measured at that size.
"""
import pathlib
import re
import sys

ROOT = pathlib.Path(__file__).resolve().parent.parent
HOSTS = (8, 64, 128)
GPUS = 8
# Per connection and end, over kernel sockets: tests/e2e/crowd.py ten_thousand.
USER_KIB = 33
KERNEL_KIB = 4
SETUP_US = 250
# Descriptors for anything but connections: libraries, GPUs, NCCL's proxies and bootstrap, lanes.
OTHER_DESCRIPTORS = 300
# NICs of a host, NCCL devices near each GPU, threads: one NIC shared by all ranks and exposed to
# NCCL eight times; eight NICs, one near each GPU.
LAYOUTS = ((1, 8, 12), (8, 1, 8))


def connections(hosts, devices):
    """For an all-to-all: to and from each rank on another host, over each device near the GPU."""
    return 2 * GPUS * (hosts - 1) * devices


def row(hosts, nics, devices, threads):
    count = connections(hosts, devices)
    cells = [f"{hosts}", f"{nics}", f"{devices}", f"{count:,}", f"{count + OTHER_DESCRIPTORS:,}",
             f"{count * USER_KIB / 1024:,.0f} MiB", f"{count * KERNEL_KIB / 1024:,.0f} MiB",
             f"{threads}", f"{count * SETUP_US / 1e6:.1f} s"]
    return "| " + " | ".join(cells) + " |"


def table():
    head = ["hosts", "NICs", "NCCL devices", "connections", "descriptors", "memory",
            "kernel", "threads", "set-up"]
    lines = ["| " + " | ".join(head) + " |", "|" + "---|" * len(head)]
    for hosts in HOSTS:
        lines += [row(hosts, *layout) for layout in LAYOUTS]
    return "\n".join(lines)


def most_connections():
    text = (ROOT / "config/settings.h").read_text(encoding="utf-8")
    return int(re.search(r"kMostConnections = (\d+)", text).group(1))


def main():
    if "--print" in sys.argv:
        print(table())
        return 0
    status = 0
    needed = max(connections(hosts, 8) for hosts in HOSTS)
    if needed > most_connections():
        print(f"config/settings.h allows {most_connections()} connections; {needed} are needed")
        status = 1
    if table() not in (ROOT / "docs/sizing.md").read_text(encoding="utf-8"):
        print("docs/sizing.md has another table than tools/check_scale.py --print")
        status = 1
    return status


if __name__ == "__main__":
    sys.exit(main())
