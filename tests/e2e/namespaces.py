# SPDX-License-Identifier: Apache-2.0
# Copyright the ztcp authors
"""Two hosts on this machine: network namespaces, joined by veth or through ztcp_switch.

Each has an interface `data` for the plugin, and `boot`, over which ranks find each other and which
no test changes. A host that bypasses its kernel has its own NIC on the switch instead of `data`.
All of it is in a namespace that the test makes, and ends with it.
"""
import os
import subprocess
import sys
import tempfile

from fabric import PERF, PLUGIN, Fabric, check, free_port
from rss import join_by_hash, pin_program

# Short, so that a test sees them fire: see QUICK_TIMERS.
CONFIG = """schema = 1
run_dir = "run{host}"
[messages]
handshake_timeout_ms = {timeout_ms}
redial_window_ms = 7000
{messages}
[tcp]
connect_timeout_ms = {timeout_ms}
user_timeout_ms = 3000
keepalive_idle_ms = 500
keepalive_interval_ms = 300
[[nic]]
name = "ztcp0"
address = "{address}"
"""
KERNELS = """driver = "socket"
interface = "data"
"""
# A second interface, merged with the first into one device.
MORE = """merge = "eth"
[[nic]]
name = "ztcp1"
driver = "socket"
interface = "more"
address = "10.68.0.{end}/24"
merge = "eth"
"""
OURS = """driver = "memif"
mac = "02:5a:00:00:00:0{host}"
memif_socket = "host{host}.sock"
mtu_bytes = {mtu}
"""
PAST_KERNEL = """driver = "xdp"
interface = "data"
first_port = 61000
last_port = 65535
queues = {lanes}
mtu_bytes = {mtu}
processes = {processes}
"""
# linux/ethtool.h. A veth has NAPI instances, one for each of its queues, if it joins segments
# (GRO), and uses them for frames that its other end cut (no TSO).
ETHTOOL_FEATURES = """
import array, fcntl, socket, struct
for command, value in ((0x2C, 1), (0x1F, 0)):
    request = array.array("B", struct.pack("II", command, value))
    fcntl.ioctl(socket.socket(), 0x8946, struct.pack("16sP", b"data", request.buffer_info()[0]))
"""
# TSO, GSO and GRO off, so that no frame is larger than the host sent it: bridges pass larger ones.
NO_OFFLOADS = """
import array, fcntl, socket, struct
for command in (0x1F, 0x24, 0x2C):
    request = array.array("B", struct.pack("II", command, 0))
    fcntl.ioctl(socket.socket(), 0x8946, struct.pack("16sP", b"data", request.buffer_info()[0]))
"""
# No checksum left to a NIC that no frame passes: AF_XDP does not tell that it is missing.
FULL_CHECKSUMS = NO_OFFLOADS.replace("0x1F", "0x17, 0x1F")
NETWORKS = {4: "10.66.0.{}/24", 6: "fd66::{}/64"}
BOOT_NETWORKS = {4: "10.67.0.{}/24", 6: "fd67::{}/64"}
ENTERED = "E2E_IN_NAMESPACE"


def enter():
    """Restarts the test in a new network namespace, or says why it can't."""
    if os.environ.get(ENTERED):
        return
    unshare = ["unshare", "--net", "--mount"] + ([] if os.geteuid() == 0 else ["--user", "--map-root-user"])
    tried = subprocess.run([*unshare, "true"], stderr=subprocess.PIPE, text=True, check=False, timeout=30)
    if tried.returncode != 0:
        print(f"no network namespace of its own: {tried.stderr.strip()}")
        sys.exit(77)
    os.environ[ENTERED] = "yes"
    os.execvp(unshare[0], [*unshare, sys.executable, *sys.argv])


def ip(*words):
    subprocess.run(["ip", *words], check=True, timeout=30)


class Hosts(Fabric):
    """A fabric of two hosts; rank N runs on host N."""

    def __init__(self, mtu=1500, family=4, switched=(), bypassing=(), tuner=None, queues=1, messages="", merged=False,
                 between_mtu=None, boot_family=4, past_kernel=(), lanes=1, processes=1, prefix=()):
        """`switched`: arguments of the switch; `bypassing`: hosts with userspace TCP, which need
        the switch. `tuner`: ZTCP_TUNER, which must be off when only one host bypasses its kernel.
        `queues`: of `data`, each way; a pair: of each host's end. `messages`: more keys of that section. `merged`: a second
        interface `more`, merged with `data` into one device. `between_mtu`: MTU of a link between
        two bridges, which drop larger packets silently. `boot_family`: of the interface `boot`;
        start_pair() needs IPv4. `past_kernel`: hosts with AF_XDP on `data`, and their lanes. `processes`:
        that share `data`, over a network that spreads flows over its queues as NICs do. `prefix`:
        of the command of rank 0 of start_pair()."""
        # The base class would write a fabric of software NICs.
        self.folder = tempfile.mkdtemp(prefix="ztcp-e2e.", dir="/tmp")
        self.ranks = 2
        self.processes = []
        self.mtu = mtu
        self.networks = NETWORKS[family]
        self.bypassing = bypassing
        self.prefix = prefix
        self.tuner = tuner or ("off" if len(bypassing) + len(past_kernel) == 1 else "on")
        self.configs = []
        self.keepers = []
        # At 5 % loss one connection in a hundred loses both SYNs that fit in 3 s, or their answers.
        timeout_ms = 20000 if "--loss" in switched else 3000
        try:
            for host in range(2):
                self.configs.append(os.path.join(self.folder, f"host{host}.conf"))
                kind = OURS if host in bypassing else PAST_KERNEL if host in past_kernel else KERNELS
                nic = CONFIG + kind + (MORE if merged else "")
                os.mkdir(os.path.join(self.folder, f"run{host}"))
                with open(self.configs[host], "w", encoding="utf-8") as file:
                    file.write(nic.format(host=host, address=self.address(host), mtu=mtu, timeout_ms=timeout_ms,
                                          messages=messages, end=host + 1, lanes=lanes, processes=processes))
                self.keepers.append(self.keep_namespace())
            self.config = self.configs[0]
            self.join("boot", 1500)
            if switched or bypassing:
                self.join_by_switch(switched)
            elif processes > 1:
                join_by_hash(self, queues)
            elif between_mtu:
                self.join_by_bridges(mtu, between_mtu)
            else:
                self.join("data", mtu, queues)
            if past_kernel:
                for host in range(2):
                    self.on(host, sys.executable, "-c", FULL_CHECKSUMS)
            if merged:
                self.join("more", mtu)
            for host in range(2):
                self.on(host, "ip", "link", "set", "lo", "up")
                self.add_address(host, BOOT_NETWORKS[boot_family].format(host + 1), "boot")
                if host not in bypassing:
                    self.add_address(host, self.address(host), "data")
                if merged:
                    self.on(host, "ip", "address", "add", f"10.68.0.{host + 1}/24", "dev", "more")
            if processes > 1:
                for host in past_kernel:
                    pin_program(self, host, processes)
        except BaseException:
            self.__exit__(None, None, None)
            raise

    def keep_namespace(self):
        """The namespace has its own /sys, too, with the properties of its interfaces."""
        keeper = subprocess.Popen(["unshare", "--net", "--mount", "sh", "-c",
                                   "mount -t sysfs sysfs /sys; echo; exec sleep 900"],
                                  stdin=subprocess.DEVNULL, stdout=subprocess.PIPE)
        check(keeper.stdout.readline() == b"\n", "the namespace was not made")
        return keeper

    def __exit__(self, kind, value, traceback):
        super().__exit__(kind, value, traceback)
        for keeper in self.keepers:
            keeper.kill()
            keeper.wait(10)
            keeper.stdout.close()

    def address(self, host):
        return self.networks.format(host + 1)

    def add_address(self, host, address, interface):
        self.on(host, "ip", "address", "add", address, "dev", interface, *(["nodad"] if ":" in address else []))

    def inside(self, host, command):
        return ["nsenter", "-t", str(self.keepers[host].pid), "--net", "--mount", "--", *command]

    def on(self, host, *command):
        subprocess.run(self.inside(host, command), check=True, timeout=30)

    def move(self, host, interface, name, mtu):
        ip("link", "set", interface, "netns", str(self.keepers[host].pid))
        self.on(host, "ip", "link", "set", interface, "name", name, "mtu", str(mtu), "up")

    def join(self, name, mtu, queues=1):
        of_host = queues if isinstance(queues, tuple) else (queues, queues)
        first, second = (("numrxqueues", str(count), "numtxqueues", str(count)) for count in of_host)
        ip("link", "add", f"{name}-a", *first, "type", "veth", "peer", "name", f"{name}-b", *second)
        for host, end in enumerate("ab"):
            self.move(host, f"{name}-{end}", name, mtu)
            if of_host[host] > 1:
                self.on(host, sys.executable, "-c", ETHTOOL_FEATURES)

    def join_by_bridges(self, mtu, between_mtu):
        ip("link", "add", "between-a", "mtu", str(between_mtu), "type", "veth", "peer", "name", "between-b",
           "mtu", str(between_mtu))
        for host, end in enumerate("ab"):
            ip("link", "add", f"bridge-{end}", "type", "bridge")
            ip("link", "add", f"data-{end}", "type", "veth", "peer", "name", f"port-{end}", "mtu", str(mtu))
            self.move(host, f"data-{end}", "data", mtu)
            self.on(host, sys.executable, "-c", NO_OFFLOADS)
            for port in (f"port-{end}", f"between-{end}"):
                ip("link", "set", port, "master", f"bridge-{end}", "up")
            ip("link", "set", f"bridge-{end}", "up")

    def join_by_switch(self, arguments):
        if not os.path.exists("/dev/net/tun"):
            print("no /dev/net/tun")
            sys.exit(77)
        self.start_switch(*arguments)
        for host in range(2):
            if host not in self.bypassing:
                self.move(host, f"data-{host}", "data", self.mtu)

    def switch_ports(self):
        ports = [f"memif:{self.folder}/host{host}.sock" if host in self.bypassing else f"tap:data-{host}"
                 for host in range(2)]
        return [word for port in ports for word in ("--port", f"{port},mtu={self.mtu}")]

    def start(self, name, command, env=None, pass_fds=()):
        env = dict(env or {})
        rank = env.get("ZTCP_LOCAL_RANK")
        if rank is not None:
            env["ZTCP_CONFIG"] = self.configs[int(rank)]
            env["ZTCP_TUNER"] = self.tuner
            command = self.inside(int(rank), command)
        return super().start(name, command, env, pass_fds)

    def start_pair(self, *arguments, **env):
        """A rank of ztcp_perf on each host."""
        port = free_port()
        return [self.start(f"rank{rank}",
                           [*(self.prefix if rank == 0 else ()), PERF, "--plugin", PLUGIN, "--ranks", "2", "--rank", str(rank), "--rendezvous",
                            f"10.67.0.1:{port}", *arguments], {**env, "ZTCP_LOCAL_RANK": str(rank)})
                for rank in range(2)]
