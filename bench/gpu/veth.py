# SPDX-License-Identifier: Apache-2.0
# Copyright the ztcp authors
"""Hosts on this machine as their kernels see it: network namespaces, joined by virtual Ethernet cards: two by a pair,
more by a bridge in a namespace of its own."""
import subprocess
import time

INTERFACE = "data"
BRIDGE = "switch"
HOSTS = 2
ADDRESS = "10.66.0.{}/24"
BURST = "1mb"  # What a link of 25 Gb/s carries in 0.3 ms.
QUEUE = "10ms"


class VethHosts:
    """The hosts until close(), which leaves nothing in the namespace they were made in."""

    def __init__(self, mtu, rate_gbps=None, hosts=HOSTS):
        """`rate_gbps`: of each host's link, each way, by a token bucket; without it as fast as the CPUs are."""
        self.mtu, self.rate_gbps = mtu, rate_gbps
        self.keepers = []
        try:
            for _ in range(hosts if hosts == HOSTS else hosts + 1):
                self.keepers.append(self.keep_namespace())
            if hosts == HOSTS:
                self.on(0, *self.pair(INTERFACE, 1))
            else:
                self.make_bridge(hosts)
            for host in range(hosts):
                self.on(host, "ip", "address", "add", ADDRESS.format(host + 1), "dev", INTERFACE)
                self.on(host, "ip", "link", "set", "lo", "mtu", "65536", "up")
                self.bring_up(host, INTERFACE)
            for host in range(hosts):
                self.wait_until_up(host)
        except BaseException:
            self.close()
            raise

    def pair(self, name, host):
        return "ip", "link", "add", name, "type", "veth", "peer", "name", INTERFACE, "netns", str(self.keepers[host].pid)

    def make_bridge(self, hosts):
        self.on(hosts, "ip", "link", "add", BRIDGE, "type", "bridge")
        for host in range(hosts):
            self.on(hosts, *self.pair(f"port{host}", host))
            self.on(hosts, "ip", "link", "set", f"port{host}", "master", BRIDGE)
            self.bring_up(hosts, f"port{host}")
        self.on(hosts, "ip", "link", "set", BRIDGE, "up")

    def bring_up(self, host, interface):
        self.on(host, "ip", "link", "set", interface, "mtu", str(self.mtu), "up")
        if self.rate_gbps:
            self.on(host, "tc", "qdisc", "add", "dev", interface, "root", "tbf", "rate", f"{self.rate_gbps:g}gbit",
                    "burst", BURST, "latency", QUEUE)

    def wait_until_up(self, host):
        """The kernel tells of the other end's state up to a second later."""
        deadline = time.monotonic() + 10
        show = self.inside(host, ("cat", f"/sys/class/net/{INTERFACE}/operstate"))
        while subprocess.run(show, check=True, timeout=30, stdout=subprocess.PIPE, text=True).stdout != "up\n":
            if time.monotonic() > deadline:
                raise OSError(f"{INTERFACE} of host {host} has no carrier after 10 s")
            time.sleep(0.02)

    @staticmethod
    def keep_namespace():
        """The namespace has its own /sys with its interfaces' properties; where that is not
        allowed, NCCL guesses their speed."""
        keeper = subprocess.Popen(["unshare", "--net", "--mount", "sh", "-c",
                                   # Until this process ends.
                                   "mount -t sysfs sysfs /sys; echo; exec cat"],
                                  stdin=subprocess.PIPE, stdout=subprocess.PIPE)
        if keeper.stdout.readline() != b"\n":
            keeper.communicate()
            raise OSError("no network namespace could be made (unshare --net --mount): --veth wants root")
        return keeper

    def inside(self, host, command):
        return ["nsenter", "--target", str(self.keepers[host].pid), "--net", "--mount", "--", *command]

    def on(self, host, *command):
        subprocess.run(self.inside(host, command), check=True, timeout=30)

    def close(self):
        for keeper in self.keepers:
            keeper.communicate()
        self.keepers.clear()
