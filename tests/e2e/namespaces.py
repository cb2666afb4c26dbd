# SPDX-License-Identifier: Apache-2.0
# Copyright the ztcp authors
"""Two hosts on this machine: network namespaces, joined by veth or through ztcp_switch.

Each has an interface `data`, which the plugin uses, and `boot`, over which ranks find each other and which no test
touches. A host that bypasses its kernel has a NIC of its own on the switch instead of `data`. All of it is in a
namespace of the test's own, and ends with it.
"""
import os
import subprocess
import sys
import tempfile

from fabric import PERF, PLUGIN, Fabric, check, free_port

# Short, so that a test sees them fire: see QUICK_TIMERS.
CONFIG = """schema = 1
run_dir = "run{host}"
[messages]
handshake_timeout_ms = {patience_ms}
redial_window_ms = 7000
{messages}
[tcp]
connect_timeout_ms = {patience_ms}
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
# Of another interface, with the first as one device.
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
# linux/ethtool.h. A veth has NAPI instances, one for each of its queues, where it joins segments (GRO), and uses them
# for what its other end cut (no TSO).
ETHTOOL_FEATURES = """
import array, fcntl, socket, struct
for command, value in ((0x2C, 1), (0x1F, 0)):
    request = array.array("B", struct.pack("II", command, value))
    fcntl.ioctl(socket.socket(), 0x8946, struct.pack("16sP", b"data", request.buffer_info()[0]))
"""
# So that no host's frame is larger than what it sends: TSO, GSO and GRO off. A bridge lets larger ones through.
NO_OFFLOADS = """
import array, fcntl, socket, struct
for command in (0x1F, 0x24, 0x2C):
    request = array.array("B", struct.pack("II", command, 0))
    fcntl.ioctl(socket.socket(), 0x8946, struct.pack("16sP", b"data", request.buffer_info()[0]))
"""
NETWORKS = {4: "10.66.0.{}/24", 6: "fd66::{}/64"}
ENTERED = "E2E_IN_NAMESPACE"


def enter():
    """Starts the test again in a network namespace of its own, or says why it can't."""
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
    """A fabric of two hosts; whatever has rank N runs on host N."""

    def __init__(self, mtu=1500, family=4, switched=(), bypassing=(), tuner=None, queues=1, messages="", merged=False,
                 between_mtu=None):
        """`switched`: the switch's arguments; `bypassing`: the hosts of userspace TCP, which need it. `tuner`: of
        ZTCP_TUNER; two hosts of which one bypasses its kernel need it off. `queues`: of `data`, each way; `messages`:
        more of that section. `merged`: they have an interface `more` beside it, and both are one device. `between_mtu`: two
        bridges are between the hosts, and take no more than this from one another, without a word."""
        # The base class would have a fabric of software NICs written.
        self.folder = tempfile.mkdtemp(prefix="ztcp-e2e.", dir="/tmp")
        self.ranks = 2
        self.processes = []
        self.mtu = mtu
        self.networks = NETWORKS[family]
        self.bypassing = bypassing
        self.tuner = tuner or ("off" if len(bypassing) == 1 else "on")
        self.configs = []
        self.keepers = []
        # At 5 % loss, one connection of a hundred loses both SYNs that 3 s have room for, or their answers.
        patience_ms = 20000 if "--loss" in switched else 3000
        try:
            for host in range(2):
                self.configs.append(os.path.join(self.folder, f"host{host}.conf"))
                nic = CONFIG + (OURS if host in bypassing else KERNELS) + (MORE if merged else "")
                os.mkdir(os.path.join(self.folder, f"run{host}"))
                with open(self.configs[host], "w", encoding="utf-8") as file:
                    file.write(nic.format(host=host, address=self.address(host), mtu=mtu, patience_ms=patience_ms,
                                          messages=messages, end=host + 1))
                self.keepers.append(self.keep_namespace())
            self.config = self.configs[0]
            self.join("boot", 1500)
            if switched or bypassing:
                self.join_by_switch(switched)
            elif between_mtu:
                self.join_by_bridges(mtu, between_mtu)
            else:
                self.join("data", mtu, queues)
            if merged:
                self.join("more", mtu)
            for host in range(2):
                self.on(host, "ip", "link", "set", "lo", "up")
                self.on(host, "ip", "address", "add", f"10.67.0.{host + 1}/24", "dev", "boot")
                if host not in bypassing:
                    self.add_address(host)
                if merged:
                    self.on(host, "ip", "address", "add", f"10.68.0.{host + 1}/24", "dev", "more")
        except BaseException:
            self.__exit__(None, None, None)
            raise

    def keep_namespace(self):
        """Its own /sys, too, where interfaces say what they are."""
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

    def add_address(self, host):
        self.on(host, "ip", "address", "add", self.address(host), "dev", "data",
                *(["nodad"] if ":" in self.address(host) else []))

    def inside(self, host, command):
        return ["nsenter", "-t", str(self.keepers[host].pid), "--net", "--mount", "--", *command]

    def on(self, host, *command):
        subprocess.run(self.inside(host, command), check=True, timeout=30)

    def move(self, host, interface, name, mtu):
        ip("link", "set", interface, "netns", str(self.keepers[host].pid))
        self.on(host, "ip", "link", "set", interface, "name", name, "mtu", str(mtu), "up")

    def join(self, name, mtu, queues=1):
        count = ("numrxqueues", str(queues), "numtxqueues", str(queues))
        ip("link", "add", f"{name}-a", *count, "type", "veth", "peer", "name", f"{name}-b", *count)
        for host, end in enumerate("ab"):
            self.move(host, f"{name}-{end}", name, mtu)
            if queues > 1:
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
                           [PERF, "--plugin", PLUGIN, "--ranks", "2", "--rank", str(rank), "--rendezvous",
                            f"10.67.0.1:{port}", *arguments], {**env, "ZTCP_LOCAL_RANK": str(rank)})
                for rank in range(2)]
