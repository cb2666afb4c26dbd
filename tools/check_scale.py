#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
# Copyright the ztcp authors
"""What a process needs in jobs of 8, 64 and 128 hosts with 8 GPUs each: the table of ARCHITECTURE.md.

    tools/check_scale.py          fails when ARCHITECTURE.md has another table than the formulas below give
    tools/check_scale.py --print  prints it

Connections and descriptors follow from NCCL's rules; the maximum of connections is read from config/settings.h. Memory
and set-up time of a connection are measured (tests/e2e/crowd.py prints them) and multiplied, not measured at that size.
"""
import pathlib
import re
import sys

ROOT = pathlib.Path(__file__).resolve().parent.parent
HOSTS = (8, 64, 128)
GPUS = 8
# Per connection and end, over kernel sockets: tests/e2e/crowd.py ten_thousand.
USER_KIB = 32
KERNEL_KIB = 4
SETUP_US = 700
# Descriptors that are no connections': libraries, GPUs, NCCL's proxies and bootstrap, lanes.
OTHER_DESCRIPTORS = 300


def connections(hosts, devices):
    """Of an all-to-all: to and from each rank on another host, for each device that NCCL sees near the GPU."""
    return 2 * GPUS * (hosts - 1) * devices


def row(hosts, devices, lanes):
    count = connections(hosts, devices)
    return [f"{count:,}", f"{count + OTHER_DESCRIPTORS:,}", f"{count * USER_KIB / 1024:,.0f} MiB",
            f"{count * KERNEL_KIB / 1024:,.0f} MiB", f"{lanes}", f"{count * SETUP_US / 1e6:.1f} s"]


def table():
    lines = ["| hosts | NICs | NCCL devices of a GPU | connections | descriptors | memory | kernel's memory | threads |"
             " set-up |", "|---|---|---|---|---|---|---|---|---|"]
    for hosts in HOSTS:
        # One NIC that all ranks share, and NCCL is shown eight times; and eight NICs, one near each GPU.
        for nics, devices, lanes in ((1, 8, 12), (8, 1, 8)):
            lines.append(f"| {hosts} | {nics} | {devices} | " + " | ".join(row(hosts, devices, lanes)) + " |")
    return "\n".join(lines)


def main():
    if "--print" in sys.argv:
        print(table())
        return 0
    most = int(re.search(r"kMostConnections = (\d+)", (ROOT / "config/settings.h").read_text(encoding="utf-8")).group(1))
    needed = max(connections(hosts, 8) for hosts in HOSTS)
    status = 0
    if needed > most:
        print(f"{needed} connections are needed, the config allows {most} (config/settings.h)")
        status = 1
    if table() not in (ROOT / "ARCHITECTURE.md").read_text(encoding="utf-8"):
        print("ARCHITECTURE.md has another table of scale than tools/check_scale.py --print")
        status = 1
    return status


if __name__ == "__main__":
    sys.exit(main())
