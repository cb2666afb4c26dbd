#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
# Copyright the ztcp authors
"""ztcp_perf probe with the built plugin over hosts in namespaces, of which one is bad."""
import json
import os
import signal
import sys
import tempfile
import time

from fabric import PERF, PLUGIN, check, main, wait_until
from namespaces import CONFIG, KERNELS, NETWORKS, OURS, Hosts, enter

# This machine is busy: only the fault made on purpose counts.
LENIENT = {"--slow": "0", "--late": "1e6", "--loss": "100%"}
# On a busy machine the switch's taps lose more than one percent of any host's frames.
LOSSY = {"--loss": "3%"}  # Half of what is lost on purpose.
# Stands for ssh. The agent has the script's process id.
SSH = """#!/bin/sh
. {folder}/$1.env
echo $$ > {folder}/$1.pid
exec nsenter -t "$NAMESPACE" --net --mount -- env ZTCP_CONFIG="$CONFIG" sh -c "exec $2"
"""


class Fleet(Hosts):
    """Hosts h0, h1, ... on one switch."""

    def __init__(self, count, impaired=None, mtus=None, bypassing=False):
        """`impaired`: settings of the switch's port by host. `mtus`: of `data` by host, else 1500."""
        # The base class would make two hosts.
        self.folder = tempfile.mkdtemp(prefix="ztcp-e2e.", dir="/tmp")
        self.ranks = count
        self.processes = []
        self.keepers = []
        self.configs = []
        self.networks = NETWORKS[4]
        self.bypassing = range(count) if bypassing else ()
        self.impaired = impaired or {}
        self.mtu = 1500
        self.ssh = os.path.join(self.folder, "ssh")
        try:
            self.write(self.ssh, SSH.format(folder=self.folder))
            os.chmod(self.ssh, 0o755)
            self.write("hosts", "".join(f"h{host}\n" for host in range(count)))
            for host in range(count):
                self.configs.append(os.path.join(self.folder, f"host{host}.conf"))
                os.mkdir(os.path.join(self.folder, f"run{host}"))
                self.write(self.configs[host], (CONFIG + (OURS if bypassing else KERNELS)).format(
                    host=host, address=self.address(host), mtu=self.mtu, timeout_ms=20000, messages=""))
                self.keepers.append(self.keep_namespace())
                self.write(f"h{host}.env", f"NAMESPACE={self.keepers[host].pid}\nCONFIG={self.configs[host]}\n")
            if not os.path.exists("/dev/net/tun"):
                print("no /dev/net/tun")
                sys.exit(77)
            self.start_switch()
            for host in range(count):
                self.on(host, "ip", "link", "set", "lo", "up")
                if not bypassing:
                    self.move(host, f"data-{host}", "data", (mtus or {}).get(host, self.mtu))
                    self.add_address(host, self.address(host), "data")
        except BaseException:
            self.__exit__(None, None, None)
            raise

    def write(self, name, text):
        with open(os.path.join(self.folder, name), "w", encoding="utf-8") as file:
            file.write(text)

    def switch_ports(self):
        words = []
        for host in range(self.ranks):
            port = f"memif:{self.folder}/host{host}.sock" if self.bypassing else f"tap:data-{host}"
            words += ["--port", f"{port},mtu={self.mtu}{self.impaired.get(host, '')}"]
        return words

    def start_probe(self, **options):
        words = {"--hosts": f"{self.folder}/hosts", "--ssh": self.ssh, "--plugin": PLUGIN, "--json": f"{self.folder}/report.json",
                 "--seconds": "1", "--at-once": "1", **LENIENT, **options}
        return self.start("probe", [PERF, "probe", *(word for pair in words.items() for word in pair)])

    def report(self, probe, status):
        ended = probe.wait(55)
        check(ended == status, f"it ended with {ended}:\n{probe.output()}")
        with open(f"{self.folder}/report.json", encoding="utf-8") as file:
            return json.load(file)


def named(report, kind, host):
    """The only faults are of this kind, of this host."""
    faults = [one for one in report["findings"] if one["severity"] == "fault"]
    check([(one["kind"], one["host"]) for one in faults] == [(kind, host)], f"found {faults}")
    check(report["verdict"] == faults[0]["text"], report["verdict"])
    return report["verdict"]


def good():
    with Fleet(3) as fleet:
        report = fleet.report(fleet.start_probe(**{"--seconds": "0.3"}), 0)
        check(len(report["pairs"]) == 3, "not every pair was measured")
        check(all(host["facts"]["nics"] == [{"name": "ztcp0", "device": 0, "speed_mbps": host["facts"]["nics"][0]["speed_mbps"],
                                             "mtu_bytes": 1500}] for host in report["hosts"]), f"{report['hosts']}")
        check(all(host["facts"]["config"] not in ("none", "broken") for host in report["hosts"]), "no config was compared")


def userspace_tcp():
    """Each agent has taken its host's NIC for the whole probe; the transport does not count loss."""
    with Fleet(3, bypassing=True) as fleet:
        report = fleet.report(fleet.start_probe(**{"--seconds": "0.3"}), 0)
        check(len(report["pairs"]) == 3, "not every pair was measured")
        check(all(pair[way]["resent"] is None for pair in report["pairs"] for way in ("a_to_b", "b_to_a")), "loss of the kernel's")


def lossy_host():
    with Fleet(3, {2: ",loss=6%,in.loss=6%"}) as fleet:
        report = fleet.report(fleet.start_probe(**LOSSY), 1)
        named(report, "loss", "h2")


def lossy_sender():
    with Fleet(3, {1: ",in.loss=6%"}) as fleet:
        report = fleet.report(fleet.start_probe(**LOSSY), 1)
        check("host h1 loses packets as the sender" in named(report, "loss", "h1"), report["verdict"])


def slow_link():
    with Fleet(3, {1: ",rate=30Mbit,in.rate=30Mbit"}) as fleet:
        report = fleet.report(fleet.start_probe(**{"--slow": "0.1"}), 1)
        check("host h1 is slow" in named(report, "bandwidth", "h1"), report["verdict"])


def late_host():
    # Scheduling on a busy machine delays a message by tens of milliseconds.
    with Fleet(3, {0: ",delay=200ms"}) as fleet:
        report = fleet.report(fleet.start_probe(**{"--max-us": "60000"}), 1)
        named(report, "latency", "h0")


def small_mtu():
    with Fleet(3, mtus={2: 1400}) as fleet:
        report = fleet.report(fleet.start_probe(**{"--seconds": "0.3"}), 1)
        check("hosts differ in MTU of rail 0: 1500 on h0, h1, 1400 on h2" in named(report, "MTU of rail 0", "h2"), report["verdict"])


def stopped_agent():
    """One that stops in its measurements: it is named, and the others are measured."""
    with Fleet(3) as fleet:
        probe = fleet.start_probe(**{"--pair-timeout": "3", "--host-timeout": "5"})
        wait_until(lambda: fleet.log().count("listening at") >= 2 or not probe.running(), 20, "the first pair")
        time.sleep(0.3)
        with open(f"{fleet.folder}/h0.pid", encoding="utf-8") as file:
            os.kill(int(file.read()), signal.SIGSTOP)
        report = fleet.report(probe, 1)
        check("h0: hangs: no answer within 6 s (--pair-timeout 3)" in named(report, "unreachable", "h0"), report["verdict"])
        check(any({pair["a"], pair["b"]} == {"h1", "h2"} for pair in report["pairs"]), "the others were not measured")


if __name__ == "__main__":
    enter()
    main({f.__name__: f for f in (good, userspace_tcp, lossy_host, lossy_sender, slow_link, late_host, small_mtu, stopped_agent)})
