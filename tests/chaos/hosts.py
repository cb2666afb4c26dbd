# SPDX-License-Identifier: Apache-2.0
# Copyright the ztcp authors
"""Hosts: network namespaces with one data interface per switch, and an interface to the harness for --rendezvous.

The harness and all its jobs run in a network and mount namespace of their own, with their own loopback and /run.
Interfaces and namespaces of a run are therefore invisible outside, and the kernel removes them even if the harness is killed.
"""
from __future__ import annotations

import os
import subprocess
import sys

from processes import run

ENTERED = "CHAOS_ENTERED"  # Not ZTCP_*, which the plugin looks at.
CANNOT_RUN_STATUS = 77
NOWHERE_MAC = "02:5a:de:ad:00:00"


def enter() -> None:
    """Executes the harness again in its own namespaces. Exits with status 77 where they can't be made."""
    if os.environ.pop(ENTERED, None):
        run("mount", "-t", "tmpfs", "tmpfs", "/run")  # ip-netns(8) keeps the names there.
        run("ip", "link", "set", "lo", "up")
        return
    unshare = ["unshare", "--net", "--mount"] + ([] if os.geteuid() == 0 else ["--user", "--map-root-user"])
    tried = subprocess.run([*unshare, "true"], stderr=subprocess.PIPE, text=True, check=False, timeout=30)
    if tried.returncode != 0:
        print(f"no network namespace of its own (root or user namespaces are needed): {tried.stderr.strip()}")
        sys.exit(CANNOT_RUN_STATUS)
    os.environ[ENTERED] = "yes"
    os.execvp(unshare[0], [*unshare, sys.executable, *sys.argv])


class Host:
    """One network namespace. Network i is interface data<i> with address 10.66.<i>.<host + 1>."""

    def __init__(self, slot: int, number: int, mtu: int) -> None:
        self.number = number
        self.mtu = mtu
        self.name = f"zc{slot}-{number}"
        self.veth = f"{self.name}b"
        # A /30 network for each host.
        self.harness_address = f"10.67.{slot}.{4 * number + 1}"
        self.boot_address = f"10.67.{slot}.{4 * number + 2}"

    def start(self) -> None:
        run("ip", "netns", "add", self.name)
        self.on("ip", "link", "set", "lo", "up")
        run("ip", "link", "add", self.veth, "type", "veth", "peer", "name", "boot", "netns", self.name)
        run("ip", "address", "add", f"{self.harness_address}/30", "dev", self.veth)
        run("ip", "link", "set", self.veth, "up")
        self.on("ip", "address", "add", f"{self.boot_address}/30", "dev", "boot")
        self.on("ip", "link", "set", "boot", "up")

    def close(self) -> None:
        """The kernel removes interfaces of a namespace some time after its name: the next job needs the name of the veth."""
        run("ip", "link", "delete", self.veth, is_checked=False)
        run("ip", "netns", "delete", self.name, is_checked=False)

    def inside(self, command: list[str]) -> list[str]:
        return ["ip", "netns", "exec", self.name, *command]

    def on(self, *command: str, is_checked: bool = True) -> str:
        return run(*self.inside(list(command)), is_checked=is_checked)

    def address(self, network: int) -> str:
        return f"10.66.{network}.{self.number + 1}"

    def adopt(self, tap: str, network: int) -> None:
        """Moves a tap of a switch into the namespace, as the interface of that network."""
        name = f"data{network}"
        run("ip", "link", "set", tap, "netns", self.name)
        self.on("ip", "link", "set", tap, "name", name, "mtu", str(self.mtu), "up")
        self.on("ip", "address", "add", f"{self.address(network)}/24", "dev", name)

    def set_link(self, state: str, network: int = 0) -> None:
        self.on("ip", "link", "set", f"data{network}", state)

    def set_mtu(self, mtu: int, network: int = 0) -> None:
        self.on("ip", "link", "set", f"data{network}", "mtu", str(mtu))

    def blackhole_peers(self, peers: list["Host"], network: int = 0) -> None:
        """Sends all frames for the peers to a MAC address that no host has."""
        for peer in peers:
            self.on("ip", "neighbour", "replace", peer.address(network), "lladdr", NOWHERE_MAC, "nud", "permanent", "dev",
                    f"data{network}")

    def restore_peers(self, peers: list["Host"], network: int = 0) -> None:
        for peer in peers:
            self.on("ip", "neighbour", "delete", peer.address(network), "dev", f"data{network}")

    def sent_again(self) -> int:
        """TCP segments that the kernel of this host has retransmitted."""
        names, values = [line.split() for line in self.on("cat", "/proc/net/snmp").splitlines() if line.startswith("Tcp:")]
        return int(values[names.index("RetransSegs")])

    def kill_sockets(self, network: int = 0) -> str:
        """Destroys the TCP connections of one network. Prints them; ss fails on those that end by themselves meanwhile."""
        return self.on("ss", "-K", "-H", "-t", "-n", "dst", f"10.66.{network}.0/24", is_checked=False)
