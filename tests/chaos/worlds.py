# SPDX-License-Identifier: Apache-2.0
# Copyright the ztcp authors
"""The network, configs and environment of a job, for each transport, and the counters that prove a fault."""
from __future__ import annotations

import dataclasses
import glob
import json
import pathlib
import re
import signal
import threading
import time
from typing import Any

from hosts import Host
from plan import Plan, Timers
from processes import Broken, Process, free_port, run, start_ready


@dataclasses.dataclass(frozen=True)
class Tools:
    """Files of a build folder."""
    plugin: pathlib.Path
    perf: pathlib.Path
    switch: pathlib.Path
    setup: pathlib.Path
    soft_nic: pathlib.Path


def tools_of(build: pathlib.Path) -> Tools:
    tools = Tools(build / "plugin/libnccl-net.so", build / "tools/ztcp_perf/ztcp_perf", build / "tools/ztcp_switch/ztcp_switch",
                  build / "tools/ztcp_setup/ztcp_setup", build / "tests/support/verbs/soft_nic/libibverbs.so.1")
    missing = [str(path) for path in dataclasses.astuple(tools) if not path.exists()]
    if missing:
        raise Broken(f"not built: {', '.join(missing)}; ninja -C {build}")
    return tools


def sections(timers: Timers) -> str:
    def ms(seconds: float) -> int:
        return round(seconds * 1000)
    return (f"[messages]\nredial_window_ms = {ms(timers.redial_window_s)}\n"
            f"[tcp]\nuser_timeout_ms = {ms(timers.user_timeout_s)}\nkeepalive_idle_ms = {ms(timers.keepalive_idle_s)}\n"
            f"keepalive_interval_ms = {ms(timers.keepalive_interval_s)}\n")


class World:
    """The network of one job. close() ends all of it, also after a start() that failed."""

    def __init__(self, plan: Plan, tools: Tools, folder: pathlib.Path, slot: int, cancelled: threading.Event) -> None:
        self.plan = plan
        self.tools = tools
        self.folder = folder
        self.slot = slot
        self.cancelled = cancelled
        self.switches: list[Process] = []  # One for each network.
        self.started: list[Process] = []   # All of them, also those that were replaced.
        self.hosts: list[Host] = []
        self.has_killed_sockets = False
        self.has_lost_segments = False

    def start(self) -> None:
        raise NotImplementedError

    def config(self, rank: int) -> pathlib.Path:
        del rank
        return self.folder / "ztcp.conf"

    def environment(self, rank: int) -> dict[str, str]:
        return {"ZTCP_CONFIG": str(self.config(rank)), "ZTCP_LOG": str(self.plugin_log(rank)), "ZTCP_LOCAL_RANK": str(rank)}

    def plugin_log(self, rank: int) -> pathlib.Path:
        return self.folder / f"plugin{rank}.log"

    def inside(self, rank: int, command: list[str]) -> list[str]:
        """The command that runs `command` on the host of the rank."""
        del rank
        return command

    def first_address(self) -> str:
        """The address at which rank 0 listens for --rendezvous."""
        return "127.0.0.1"

    def harness_addresses(self) -> list[str]:
        """The address of the harness for each rank."""
        return ["127.0.0.1"] * self.plan.ranks

    def kill_sockets(self) -> None:
        raise NotImplementedError

    def restart_switch(self) -> None:
        raise NotImplementedError

    def close(self) -> None:
        for switch in self.started:
            switch.end()
        for host in self.hosts:
            host.close()

    def unexpected_ends(self) -> list[str]:
        """Deaths and complaints of processes other than ranks."""
        return [f"{switch.name} ended with {switch.status()}" for switch in self.switches
                if not switch.running() and not switch.is_meant_to_end]

    def was_met(self) -> bool:
        """A fault of plan.BY_ENVIRONMENT took effect."""
        raise NotImplementedError

    def start_switch(self, network: int, ports: list[str]) -> Process:
        arguments = [f"--{kind}={share}%" for kind, share in self.plan.impairments.items()]
        command = [str(self.tools.switch), *(word for port in ports for word in ("--port", port)), *arguments,
                   "--seed", str(self.plan.seed), "--json", str(self.folder / f"switch{network}.json"), "--exit-with-parent"]
        self.started.append(start_ready(f"switch{network}", command, self.folder, self.cancelled))
        return self.started[-1]

    def counted_by_switches(self, counter: str) -> int:
        """The sum over all ports. A switch writes its counters at SIGUSR1."""
        total = 0
        for network, switch in enumerate(self.switches):
            path = self.folder / f"switch{network}.json"
            path.unlink(missing_ok=True)
            switch.send(signal.SIGUSR1)
            deadline = time.monotonic() + 10
            while not path.exists() and switch.running() and time.monotonic() < deadline:
                time.sleep(0.05)
            if path.exists():
                total += sum(port[counter] for port in json.loads(path.read_text())["ports"])
        return total


class Switched(World):
    """A network with switches, whose counters prove impairments."""

    def was_met(self) -> bool:
        return self.counted_by_switches(f"impaired_{self.plan.fault}") > 0


class KernelSockets(Switched):
    """One namespace for each rank, and one switch; or two switches and merged interfaces."""

    @property
    def networks(self) -> int:
        return 2 if self.plan.is_merged else 1

    def start(self) -> None:
        for rank in range(self.plan.ranks):
            self.hosts.append(Host(self.slot, rank, self.plan.mtu))
            self.hosts[rank].start()
            (self.folder / f"run{rank}").mkdir()
            merge = 'merge = "eth"\n' if self.plan.is_merged else ""
            self.config(rank).write_text(
                f'schema = 1\nrun_dir = "run{rank}"\n{sections(self.plan.timers)}' +
                "".join(f'[[nic]]\nname = "nic{network}"\ndriver = "socket"\ninterface = "data{network}"\n'
                        f'address = "{self.hosts[rank].address(network)}/24"\n{merge}' for network in range(self.networks)))
        for network in range(self.networks):
            self.switches.append(self.join(network))

    def join(self, network: int) -> Process:
        taps = [f"zc{self.slot}t{network}{rank}" for rank in range(self.plan.ranks)]
        switch = self.start_switch(network, [f"tap:{tap},mtu={self.plan.mtu}" for tap in taps])
        for host, tap in zip(self.hosts, taps):
            host.adopt(tap, network)
        return switch

    def restart_switch(self) -> None:
        self.switches[0] = self.join(0)

    def config(self, rank: int) -> pathlib.Path:
        return self.folder / f"host{rank}.conf"

    def inside(self, rank: int, command: list[str]) -> list[str]:
        return self.hosts[rank].inside(command)

    def first_address(self) -> str:
        return self.hosts[0].boot_address

    def harness_addresses(self) -> list[str]:
        return [host.harness_address for host in self.hosts]

    def kill_sockets(self) -> None:
        self.has_killed_sockets |= "ESTAB" in self.hosts[self.plan.victim].kill_sockets()


class Local(Switched):
    """A local fabric of ztcp_setup: memif through a switch, or shared memory."""

    def start(self) -> None:
        is_switched = self.plan.transport == "memif"
        run(str(self.tools.setup), "--local", str(self.plan.ranks), "--dir", str(self.folder), "--topology",
            "switch" if is_switched else "mesh", "--mtu", str(self.plan.mtu))
        path = self.config(0)
        text = path.read_text()
        for key, value in re.findall(r"(?m)^(\w+) = (.*)$", sections(self.plan.timers)):
            text, count = re.subn(rf"(?m)^#?{key} = .*$", f"{key} = {value}", text)
            if count == 0:
                raise Broken(f"{path} has no key {key}")
        path.write_text(text)
        if is_switched:
            self.switches.append(self.start_memif())

    def start_memif(self) -> Process:
        sockets = [self.folder / f"port{rank}.sock" for rank in range(self.plan.ranks)]
        return self.start_switch(0, [f"memif:{socket},mtu={self.plan.mtu}" for socket in sockets])

    def restart_switch(self) -> None:
        self.switches[0] = self.start_memif()


class SoftNics(World):
    """RDMA over the libibverbs.so.1 of tests/support/verbs/soft_nic."""

    # Lines of the plugin that prove the fault.
    PROOF = {"port-flap": r"port error|port is down", "port-down": r"port error|port is down",
             "device-lost": r"catastrophic", "message-fail": r"IBV_WC_RETRY_EXC_ERR|\(status 12,"}

    def __init__(self, *arguments: Any) -> None:
        super().__init__(*arguments)
        self.ports: list[tuple[int, int]] = []  # First and last of each NIC.

    def start(self) -> None:
        with_tcp = self.plan.transport == "rdma-tcp"
        merge = 'merge = "ib0"\n' if self.plan.is_merged else ""
        devices = 2 if self.plan.transport == "rdma-merged" else 1
        text = "schema = 1\n" + sections(self.plan.timers)
        for number in range(devices):
            text += f'[[nic]]\nname = "rail{number}"\ndriver = "verbs"\ndevice = "soft{number}"\n{self.at_loopback()}{merge}'
        if with_tcp:
            text += f'[[nic]]\nname = "lo0"\ndriver = "socket"\ninterface = "lo"\n{self.at_loopback()}{merge}'
        self.config(0).write_text(text)

    def at_loopback(self) -> str:
        """Address and ports of a NIC. All ranks share the address, so that each needs ports of its own."""
        first = free_port()
        self.ports.append((first, min(first + 4 * self.plan.ranks, 65535)))
        return f'address = "127.0.0.1/8"\nfirst_port = {first}\nlast_port = {self.ports[-1][1]}\n'

    def environment(self, rank: int) -> dict[str, str]:
        is_hit = rank == self.plan.victim or self.plan.fault == "disorder"
        return {**super().environment(rank), "LD_LIBRARY_PATH": str(self.tools.soft_nic.parent), "NCCL_SOCKET_IFNAME": "lo",
                "SOFT_NIC_FOLDER": str(self.folder), "SOFT_NIC_FAULTS": self.plan.nic_faults if is_hit else "",
                "SOFT_NIC_DEVICES": "2" if self.plan.transport == "rdma-merged" else "1"}

    def kill_sockets(self) -> None:
        """Destroys the connections of the TCP rail, which has the last range of ports, or else those beside the only NIC."""
        first, last = self.ports[-1]
        for port in range(first, last + 1):
            said = run("ss", "-K", "-H", "-t", "-n", "sport", "=", f":{port}", is_checked=False)
            self.has_killed_sockets |= "ESTAB" in said

    def was_met(self) -> bool:
        if self.plan.fault == "disorder":
            counted = [json.loads(pathlib.Path(path).read_text()) for path in glob.glob(f"{self.folder}/counted.*.json")]
            return sum(one["dropped"] for one in counted) > 0
        return any(re.search(self.PROOF[self.plan.fault], self.plugin_log(rank).read_text(errors="replace"))
                   for rank in range(self.plan.ranks) if self.plugin_log(rank).exists())

    def unexpected_ends(self) -> list[str]:
        return [f"{path.stem}: {line}" for path in sorted(self.folder.glob("rank*.out"))
                for line in path.read_text(errors="replace").splitlines() if "soft NIC: misused" in line]


def world_of(plan: Plan, tools: Tools, folder: pathlib.Path, slot: int, cancelled: threading.Event) -> World:
    kind = KernelSockets if plan.transport.startswith("sockets") else SoftNics if plan.transport.startswith("rdma") else Local
    return kind(plan, tools, folder, slot, cancelled)
