# SPDX-License-Identifier: Apache-2.0
# Copyright the ztcp authors
"""One virtual machine: a qemu process, its disk, its serial line, its monitor and ssh logins.

The CPU is emulated (KVM is not used), so time limits here are generous, and a time measured in a
machine says nothing about speed.
"""
import json
import os
import re
import shlex
import signal
import socket
import subprocess
import time

from queue_rails import attach_queues

BOOT_LIMIT_S = 600
COMMAND_LIMIT_S = 240
READY = "LAB-READY"


class Failure(Exception):
    """A fault that a scenario found."""


class Job:
    """A command that runs in a machine. Its output, both streams, goes to its own file."""

    def __init__(self, machine, user, command, path):
        self.machine, self.command, self.path = machine, command, path
        self.started = time.monotonic()
        with open(path, "wb") as output:
            self._process = subprocess.Popen(machine.login(user) + [command], stdin=subprocess.DEVNULL,
                                             stdout=output, stderr=subprocess.STDOUT,
                                             start_new_session=True)

    @property
    def output(self):
        with open(self.path, encoding="utf-8", errors="replace") as output:
            return output.read()

    @property
    def status(self):
        """The exit status, None while the command runs, 255 when the machine went away."""
        return self._process.poll()

    def wait(self, limit_s=COMMAND_LIMIT_S):
        try:
            self._process.wait(limit_s)
        except subprocess.TimeoutExpired:
            self._process.kill()
            raise Failure(f"{self} did not end within {limit_s} s:\n{self.output[-4000:]}") from None
        return self

    def wait_for(self, text, limit_s=COMMAND_LIMIT_S):
        """Waits until the output contains `text`."""
        end = time.monotonic() + limit_s
        while text not in self.output:
            if self.status is not None:
                raise Failure(f"{self} ended with {self.status} before it said {text!r}:\n{self.output}")
            if time.monotonic() > end:
                raise Failure(f"{self} did not say {text!r} within {limit_s} s:\n{self.output}")
            time.sleep(0.1)
        return self

    def expect(self, status=0):
        if self.status != status:
            raise Failure(f"{self} ended with {self.status}, not {status}:\n{self.output[-6000:]}")
        return self

    def __str__(self):
        return f"{self.machine.name}: {self.command}"


def queues_of(model):
    return int(model.partition("*")[2] or 1)


class Machine:
    """Made by Lab.boot(). `nics` are the models of its data NICs, on rails 1, 2 and so on;
    "virtio*4" has 4 queues and needs a rail of such NICs, which has no wire. Every machine has two
    more NICs, both with a default route: management (used by login()) and, on rail 0, control,
    where the ranks of a job find each other."""

    def __init__(self, lab, number, nics, memory_mib, cpus, iommu, spare_ports):
        self.lab, self.number, self.name = lab, number, f"host{number}"
        self.nics, self.spare_ports = list(nics), spare_ports
        self.memory_mib, self.cpus, self.iommu = memory_mib, cpus, iommu
        self.disk = lab.path(f"{self.name}.qcow2")
        self.serial = lab.path(f"{self.name}.serial")
        self._qemu = None
        self._boots = 0
        self._jobs = 0
        self._ssh_port = None
        self._taps = {rail: lab.queue_rails.tap(f"rail{rail}", f"rail{rail}-{number}", queues_of(model))
                      for rail, model in enumerate(self.nics, 1) if queues_of(model) > 1}
        self.renew_disk()

    def renew_disk(self):
        """Resets the disk to the base image."""
        subprocess.run(["qemu-img", "create", "-q", "-f", "qcow2", "-b", self.lab.base_image, "-F", "raw",
                        self.disk], check=True)

    # --- Power ------------------------------------------------------------------------------------

    def power_on(self):
        self._boots += 1
        self._ssh_port = None
        for fds in self._taps.values():
            attach_queues(fds)
        with open(self.lab.path(f"{self.name}.qemu"), "ab") as errors:
            self._qemu = subprocess.Popen(self._command_line(), stdin=subprocess.DEVNULL,
                                          stdout=errors, stderr=errors, start_new_session=True,
                                          pass_fds=[fd for fds in self._taps.values() for fd in fds])

    def wait_until_ready(self):
        end = time.monotonic() + BOOT_LIMIT_S
        while READY not in self._serial_text():
            if self._qemu.poll() is not None:
                raise Failure(f"{self.name}: qemu ended with {self._qemu.returncode}; see the .qemu file")
            if time.monotonic() > end:
                raise Failure(f"{self.name} was not up within {BOOT_LIMIT_S} s; see the .serial file")
            time.sleep(0.2)

    def power_cut(self):
        """Cuts the power: data that the guest had not flushed to its disk is lost."""
        if self._qemu is not None:
            self._qemu.send_signal(signal.SIGKILL)
            self._qemu.wait()
            self._qemu = None

    def power_off(self):
        """Shuts the machine down in order."""
        self.shut_down("systemctl poweroff")

    def reboot(self):
        self.shut_down("systemctl reboot")  # qemu ends at the reset: -no-reboot.
        self.power_on()
        self.wait_until_ready()

    def shut_down(self, command):
        self.start(command, user="root")
        try:
            self._qemu.wait(BOOT_LIMIT_S)
        except subprocess.TimeoutExpired:
            raise Failure(f"{self.name} did not shut down within {BOOT_LIMIT_S} s") from None
        self._qemu = None

    def _serial_text(self):
        try:
            with open(f"{self.serial}.{self._boots}", encoding="utf-8", errors="replace") as text:
                return text.read()
        except FileNotFoundError:
            return ""

    def _command_line(self):
        command = ["setpriv", "--pdeathsig", "KILL",  # No machine outlives the lab.
                   "qemu-system-x86_64", "-name", f"hostlab-{self.name}", "-machine", "q35",
                   "-accel", "tcg,thread=multi", "-cpu", "max", "-smp", str(self.cpus),
                   "-m", str(self.memory_mib), "-nodefaults", "-no-user-config", "-no-reboot",
                   "-display", "none", "-serial", f"file:{self.serial}.{self._boots}",
                   "-qmp", f"unix:{self._qmp_path()},server=on,wait=off", "-device", "virtio-rng-pci"]
        if self.iommu:
            # 48 bits: with 39 user memory has no address that the IOMMU can map.
            command += ["-device", "intel-iommu,intremap=on,caching-mode=on,device-iotlb=on,aw-bits=48"]
        command += ["-drive", f"file={self.disk},if=none,id=disk,format=qcow2",
                    "-device", "virtio-blk-pci,drive=disk",
                    "-netdev", "user,id=mgmt,restrict=on,hostfwd=tcp:127.0.0.1:0-:22",
                    "-device", f"virtio-net-pci,netdev=mgmt,mac={self.mac(0xff)},romfile="]
        for rail in self.rails():
            command += ["-device", f"pcie-root-port,id=port{rail},chassis={rail + 1},slot={rail + 1}"]
        for rail, model in enumerate(["virtio"] + self.nics):
            command += ["-netdev", json.dumps(self._netdev(rail)),
                        "-device", json.dumps(self._nic(rail, model))]
        return command

    def rails(self):
        """All rails, also those where a NIC may be plugged later."""
        return range(len(self.nics) + self.spare_ports + 1)

    def _netdev(self, rail):
        if rail in self._taps:
            return {"type": "tap", "id": f"net{rail}", "fds": ":".join(map(str, self._taps[rail])), "vhost": False}
        return {"type": "stream", "id": f"net{rail}", "server": False,
                "addr": {"type": "unix", "path": self.lab.wire(rail).path}}

    def _nic(self, rail, model):
        queues = queues_of(model)
        model = model.partition("*")[0]
        nic = {"driver": {"virtio": "virtio-net-pci"}.get(model, model), "id": f"nic{rail}",
               "netdev": f"net{rail}", "mac": self.mac(rail), "bus": f"port{rail}", "romfile": ""}
        if model == "virtio" and self.iommu:
            nic |= {"iommu_platform": True, "ats": True, "disable-legacy": "on"}
        if queues > 1:
            nic |= {"mq": True, "vectors": 2 * queues + 2}
        return nic

    def mac(self, rail):
        return f"52:54:00:77:{rail:02x}:{self.number:02x}"

    def address(self, rail):
        return f"10.77.{rail}.{10 + self.number}"

    def pci(self, rail):
        """The root port of rail N is bus N + 1: bus 0 is the machine's own."""
        return f"0000:{rail + 1:02x}:00.0"

    def interface(self, rail):
        """The kernel's name for the rail's virtio NIC, while the kernel has it."""
        return self.run(f"ls /sys/bus/pci/devices/{self.pci(rail)}/virtio*/net").output.strip()

    # --- The monitor ------------------------------------------------------------------------------

    def monitor(self, command, **arguments):
        """Runs one QMP command. Later device events are not awaited."""
        with socket.socket(socket.AF_UNIX) as connection:
            connection.settimeout(60)
            connection.connect(self._qmp_path())
            lines = connection.makefile("rw", encoding="utf-8")
            for request in ({"execute": "qmp_capabilities"},
                            {"execute": command, "arguments": arguments}):
                lines.write(json.dumps(request) + "\n")
                lines.flush()
                answer = {}
                while "return" not in answer and "error" not in answer:
                    answer = json.loads(lines.readline())
                if "error" in answer:
                    raise Failure(f"{self.name}: {request}: {answer['error']['desc']}")
            return answer["return"]

    def processor_state(self):
        """The processor's registers, to find out why a machine does not answer."""
        return self.monitor("human-monitor-command", **{"command-line": "info registers"})

    def _qmp_path(self):
        return self.lab.path(f"{self.name}.qmp")

    def plug(self, rail, model, mac=None):
        """Adds a NIC while the machine runs, as a cloud's console adds an elastic NIC; with `mac`
        it is a different NIC than the rail's."""
        self.monitor("netdev_add", **self._netdev(rail))
        self.monitor("device_add", **self._nic(rail, model) | ({"mac": mac} if mac else {}))

    def unplug(self, rail):
        self.monitor("device_del", id=f"nic{rail}")

    def wait_until_unplugged(self, rail):
        """Waits until the guest has released it, so that its port can take the next."""
        end = time.monotonic() + COMMAND_LIMIT_S
        while any(device["name"] == f"nic{rail}"
                  for device in self.monitor("qom-list", path="/machine/peripheral")):
            if time.monotonic() > end:
                raise Failure(f"{self.name} did not let go of NIC {rail} within {COMMAND_LIMIT_S} s")
            time.sleep(0.2)
        self.monitor("netdev_del", id=f"net{rail}")

    def carrier(self, rail, up):
        self.monitor("set_link", name=f"nic{rail}", up=up)

    # --- Commands inside --------------------------------------------------------------------------

    def login(self, user):
        """The ssh command that logs in. Root's commands share one connection; users log in each
        time, so that their limits are those of a new session."""
        if self._ssh_port is None:
            # Port 0 let the system choose; the monitor reports the choice.
            users = self.monitor("human-monitor-command", **{"command-line": "info usernet"})
            self._ssh_port = re.search(r"HOST_FORWARD\S*\s+\d+\s+\S+\s+(\d+)", users).group(1)
        shared = ["-o", "ControlMaster=auto", "-o", "ControlPersist=yes",
                  "-o", f"ControlPath={self.lab.path(f'{self.name}.{self._boots}.root')}"]
        return ["ssh", "-o", "LogLevel=ERROR", "-F", "none", "-i", self.lab.key, "-p", self._ssh_port, "-l", user,
                "-o", "StrictHostKeyChecking=no", "-o", "UserKnownHostsFile=/dev/null",
                "-o", "IdentitiesOnly=yes", "-o", "ServerAliveInterval=60", "-o", "ConnectTimeout=60",
                *(shared if user == "root" else []), "127.0.0.1"]

    def start(self, command, user="root"):
        """Starts a command that runs beside the scenario."""
        self._jobs += 1
        path = self.lab.path(f"{self.name}-{self._jobs:02d}.out")
        self.lab.note(f"{self.name} {user}$ {command.strip().splitlines()[0]}  > {os.path.basename(path)}")
        return Job(self, user, command, path)

    def run(self, command, user="root", limit_s=COMMAND_LIMIT_S, status=0):
        """Runs a command and returns it; Failure unless it ends with `status` (None: any)."""
        job = self.start(command, user).wait(limit_s)
        self.lab.note(f"    ended with {job.status} after {time.monotonic() - job.started:.1f} s")
        return job if status is None else job.expect(status)

    def read(self, path):
        return self.run(f"cat {shlex.quote(path)}").output

    def write(self, path, text, mode="644"):
        self.run(f"install -m {mode} /dev/null {shlex.quote(path)} && "
                 f"printf %s {shlex.quote(text)} >{shlex.quote(path)}")

    def copy_tree(self, folder, to="/"):
        """Copies the contents of a folder."""
        archive = subprocess.Popen(["tar", "-C", folder, "--owner=0", "--group=0", "-c", "."],
                                   stdout=subprocess.PIPE)
        subprocess.run(self.login("root") + [f"tar -x -C {to} --no-overwrite-dir && ldconfig && sync"],
                       stdin=archive.stdout, check=True, timeout=COMMAND_LIMIT_S,
                       start_new_session=True)
        if archive.wait() != 0:
            raise Failure(f"could not read {folder}")
