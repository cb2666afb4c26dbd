# SPDX-License-Identifier: Apache-2.0
# Copyright the ztcp authors
"""The environment of a scenario: machines, the wires between them, and a folder for their output.
"""
import hashlib
import os
import subprocess
import sys
import time

from machine import Failure, Machine
from queue_rails import QueueRails
from wire import Wire


class Lab:
    def __init__(self, folder, cache, stage):
        self._folder = folder
        # Files of the packages, by packaging/stage; None while the image is made.
        self._stage = stage
        self.cache = cache
        self._started = time.monotonic()
        self._wires = {}
        self._machines = []
        self._queue_rails = None
        self.base_image = os.path.join(cache, "base.raw")
        self.key = os.path.join(cache, "key")

    def path(self, name):
        return os.path.join(self._folder, name)

    def wire(self, rail):
        if rail not in self._wires:
            self._wires[rail] = Wire(self.path(f"rail{rail}"), seed=rail)
        return self._wires[rail]

    @property
    def queue_rails(self):
        if self._queue_rails is None:
            self._queue_rails = QueueRails()
        return self._queue_rails

    # --- Output -----------------------------------------------------------------------------------

    def say(self, text):
        """Prints a step of a scenario to the terminal."""
        print(f"    {time.monotonic() - self._started:6.1f} s  {text}", flush=True)
        self.note(f"=== {text}")

    def note(self, text):
        with open(self.path("log"), "a", encoding="utf-8") as log:
            log.write(f"[{time.monotonic() - self._started:8.1f}] {text}\n")

    # --- Machines ---------------------------------------------------------------------------------

    def boot(self, count=1, nics=("virtio",), memory_mib=6144, cpus=1, iommu=True, spare_ports=0):
        """`count` new machines: named, rails addressed by systemd-networkd, ztcp unpacked."""
        self.say(f"boot {count} x {memory_mib} MiB, {' '.join(nics)}, "
                 f"{'vIOMMU' if iommu else 'no IOMMU'}")
        new = [Machine(self, len(self._machines) + i, nics, memory_mib, cpus, iommu, spare_ports)
               for i in range(count)]
        self._machines += new
        for machine in new:
            machine.power_on()
        for machine in new:
            machine.wait_until_ready()
        for machine in new:
            try:
                self._settle_in(machine)
            except (Failure, subprocess.SubprocessError) as failure:
                self._start_afresh(machine, failure)
        return new

    def _start_afresh(self, machine, failure):
        """Emulated hardware sometimes stops before ztcp has run on it: some machines did not answer
        any more after a restart of systemd-networkd. Their state is kept in the log."""
        self.say(f"{machine.name} stopped before ztcp was on it, and starts afresh: {failure}")
        self.note(machine.processor_state())
        machine.power_cut()
        machine.renew_disk()
        machine.power_on()
        machine.wait_until_ready()
        self._settle_in(machine)

    def _settle_in(self, machine):
        files = "".join(
            f"cat >/etc/systemd/network/20-rail{rail}.network <<END\n"
            f"[Match]\nMACAddress={machine.mac(rail)}\n"
            f"[Network]\nAddress={machine.address(rail)}/24\nLinkLocalAddressing=no\n"
            + ("[Route]\nGateway=10.77.0.1\nMetric=2048\n" if rail == 0 else "") + "END\n"
            for rail in machine.rails())
        identity = hashlib.md5(machine.name.encode()).hexdigest()
        machine.run(f"# settle in\n{files}hostname {machine.name}; echo {machine.name} >/etc/hostname\n"
                    f"echo {identity} >/etc/machine-id\nsystemctl restart systemd-networkd && sync")
        if self._stage:
            machine.copy_tree(self._stage)

    def build_base_image(self):
        """Makes the disk and boots it once, so that the work of a first boot is in the base image.
        """
        self.say("base image: Debian 12 from the mirror (a few minutes, once)")
        with open(self.path("build-image.out"), "wb") as output:
            subprocess.run([os.path.join(os.path.dirname(__file__), "build-image"),
                            os.path.dirname(self.base_image)],
                           stdin=subprocess.DEVNULL, stdout=output, stderr=subprocess.STDOUT, check=True)
        self.say("base image: first boot")
        machine = Machine(self, 0, nics=[], memory_mib=2048, cpus=2, iommu=True, spare_ports=0)
        self._machines.append(machine)
        machine.power_on()
        machine.wait_until_ready()
        machine.run("update-grub && sync", limit_s=300)
        machine.power_off()
        merged = self.base_image + ".new"
        subprocess.run(["qemu-img", "convert", "-O", "raw", machine.disk, merged], check=True)
        os.replace(merged, self.base_image)

    def end(self):
        for machine in self._machines:
            machine.power_cut()
        if self._queue_rails is not None:
            self._queue_rails.end()

    def login_lines(self):
        return [f"{machine.name}: {' '.join(machine.login('root'))}" for machine in self._machines]
