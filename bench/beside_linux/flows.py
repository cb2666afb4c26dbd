# SPDX-License-Identifier: Apache-2.0
# Copyright the ztcp authors
"""Flows through a network, of ztcp or of Linux, by their congestion control."""
import dataclasses
import pathlib
import sys
import time

import record

HERE = pathlib.Path(__file__).resolve().parent
PLUGIN = "plugin/libnccl-net.so"  # In a build folder.
START_S = 30

CONFIG = """schema = 1
run_dir = "{run}"
[messages]
flows = 1
watch_interface = "off"
[tcp]
congestion_control = "{control}"
[[nic]]
name = "ztcp0"
address = "{address}/24"
"""
USERSPACE = """driver = "memif"
mac = "{mac}"
memif_socket = "{socket}"
mtu_bytes = {mtu}
"""
KERNEL = """driver = "socket"
interface = "data"
"""


@dataclasses.dataclass(frozen=True)
class Kind:
    """ztcp:CONTROL or linux:CONTROL."""
    tcp: str
    control: str

    def __str__(self):
        return f"{self.tcp}:{self.control}"


class Flow:
    """One flow between two ports of a network."""

    def __init__(self, network, build, kind, name, sender, receiver, seconds):
        self.network = network
        self.name = name
        if kind.tcp == "linux":
            end = [sys.executable, str(HERE / "linux_end.py")]
            self.receiver = network.start(f"{name}-receiver", receiver, [*end, "receive", network.address(receiver)])
            self.wait_for("listening")
            self.sender = network.start(f"{name}-sender", sender, [*end, "send", network.address(receiver), kind.control,
                                                                   str(seconds)])
            return
        end = [sys.executable, str(HERE / "ztcp_end.py"), "--plugin", str(build / PLUGIN), "--handle",
               str(network.folder / f"{name}.handle")]
        self.receiver = network.start(f"{name}-receiver", receiver, [*end, "--seconds", str(seconds + START_S), "receive"],
                                      self.environment(kind.control, receiver))
        self.sender = network.start(f"{name}-sender", sender, [*end, "--seconds", str(seconds), "send"],
                                    self.environment(kind.control, sender))

    def environment(self, control, port):
        network = self.network
        run = network.folder / f"run-{port}"
        run.mkdir(exist_ok=True)
        config = network.folder / f"{port}.conf"
        text = CONFIG + (KERNEL if port in network.hosts else USERSPACE)
        config.write_text(text.format(run=run, control=control, address=network.address(port), mac=network.mac(port),
                                      socket=network.socket(port), mtu=network.cell.mtu))
        # The tuner describes one kind of transport to NCCL, and the two ends may be of two.
        return {"ZTCP_CONFIG": str(config), "ZTCP_LOG": str(network.folder / f"{port}.log"), "ZTCP_LOCAL_RANK": "0",
                "ZTCP_TUNER": "off"}

    def wait_for(self, text):
        deadline = time.monotonic() + START_S
        while text not in self.network.read(f"{self.name}-receiver"):
            if self.receiver.poll() is not None or time.monotonic() > deadline:
                raise RuntimeError(self.complaint())
            time.sleep(0.01)

    def wait_until_moving(self, cancelled):
        """Until the first bytes have arrived."""
        deadline = time.monotonic() + START_S
        while not self.series():
            if self.sender.poll() is not None or self.receiver.poll() is not None or time.monotonic() > deadline:
                raise RuntimeError(self.complaint())
            if cancelled.wait(0.02):
                raise KeyboardInterrupt

    def series(self):
        return record.read(self.network.read(f"{self.name}-receiver"))

    def complaint(self):
        texts = [self.network.read(f"{self.name}-{end}")[-300:] for end in ("receiver", "sender")]
        texts += [log.read_text(errors="replace")[-600:] for log in self.network.folder.glob("*.log")]
        return f"{self.name} does not move: " + "\n".join(filter(None, texts))
