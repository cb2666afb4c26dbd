# SPDX-License-Identifier: Apache-2.0
# Copyright the ztcp authors
"""One ztcp_switch as the bottleneck between senders and receivers, until close()."""
import contextlib
import dataclasses
import os
import pathlib
import shutil
import signal
import subprocess
import tempfile

from hosts import Host

SWITCH = "tools/ztcp_switch/ztcp_switch"  # In a build folder.
FRAME_HEADER_BYTES = 14


@dataclasses.dataclass(frozen=True)
class Cell:
    """The path: rate, loss and queue at the port to the receiver, half of the delay each way."""
    rate_mbit: float
    round_trip_ms: float
    loss_percent: float
    buffer_bdp: float
    mtu: int

    @property
    def buffer_bytes(self):
        of_bdp = self.buffer_bdp * self.rate_mbit * 1e6 / 8 * self.round_trip_ms / 1e3
        return max(int(of_bdp), self.mtu + FRAME_HEADER_BYTES)

    @property
    def title(self):
        return f"{self.round_trip_ms:g} ms, {self.loss_percent:g} %"

    def impairments(self, is_bottleneck):
        delay = f"delay={self.round_trip_ms * 500:g}us"
        if not is_bottleneck:
            return delay
        return f"{delay},rate={self.rate_mbit:g}Mbit,queue={self.buffer_bytes},loss={self.loss_percent:g}%"


class Network:
    """Ports by name: a Linux host behind a tap, or the path of a memif socket for a NIC of ztcp."""

    def __init__(self, build, cell, slot, seed, linux=(), ztcp=(), bottlenecks=()):
        """`linux`, `ztcp`: names of ports; `slot`: a number that no other running network has."""
        self.cell = cell
        # Short: socket paths end at 107 bytes.
        self.folder = pathlib.Path(tempfile.mkdtemp(prefix="ztcp-beside.", dir="/tmp"))
        self.hosts = {}
        self.processes = []
        self.switch = None
        self.numbers = {name: number for number, name in enumerate((*linux, *ztcp), 1)}
        try:
            words = []
            for name in (*linux, *ztcp):
                target = f"tap:{self.tap(slot, name)}" if name in linux else f"memif:{self.socket(name)}"
                words += ["--port", f"{target},mtu={cell.mtu},{cell.impairments(name in bottlenecks)}"]
            self.start_switch(build, [*words, "--seed", str(seed)])
            for name in linux:
                self.hosts[name] = Host(self.address(name))
                self.hosts[name].adopt(self.tap(slot, name), cell.mtu)
        except BaseException:
            self.close()
            raise

    def start_switch(self, build, words):
        reading, writing = os.pipe()
        with open(reading, "rb") as ready:
            # The counters at the end are the report of a run that went wrong.
            with open(self.folder / "switch.out", "wb") as out:
                self.switch = subprocess.Popen([build / SWITCH, *words, "--exit-with-parent", "--ready-fd", str(writing)],
                                               pass_fds=[writing], stdin=subprocess.DEVNULL, stdout=out, stderr=out,
                                               start_new_session=True)
            os.close(writing)
            if not ready.read():
                raise RuntimeError(f"the switch did not start: {self.read('switch')}")

    def tap(self, slot, name):
        return f"t{slot}-{self.numbers[name]}"

    def socket(self, name):
        return self.folder / f"{name}.sock"

    def address(self, name):
        return f"10.66.0.{self.numbers[name]}"

    def mac(self, name):
        return f"02:5a:00:00:00:{self.numbers[name]:02x}"

    def start(self, name, port, command, env=None):
        """Starts an end at a port; `name` is its output's."""
        if port in self.hosts:
            command = self.hosts[port].inside(command)
        with open(self.folder / f"{name}.out", "wb") as out:
            process = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=out, stderr=out, start_new_session=True,
                                       env=os.environ | (env or {}))
        self.processes.append(process)
        return process

    def read(self, name):
        with contextlib.suppress(FileNotFoundError):
            return (self.folder / f"{name}.out").read_text(errors="replace")
        return ""

    def stop(self):
        """Ends the flows, then the switch, which prints its counters."""
        for process in self.processes:
            process.kill()
            process.wait()
        self.processes.clear()
        if self.switch:
            self.switch.send_signal(signal.SIGTERM)
            self.switch.wait(10)
            self.switch = None

    def close(self):
        self.stop()
        for host in self.hosts.values():
            host.close()
        shutil.rmtree(self.folder, ignore_errors=True)
