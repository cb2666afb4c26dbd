# SPDX-License-Identifier: Apache-2.0
# Copyright the ztcp authors
"""Two hosts on this machine as their kernels see it: network namespaces, joined by a pair of virtual Ethernet cards."""
import subprocess

INTERFACE = "data"
ADDRESS = "10.66.0.{}/24"
HOSTS = 2
BURST = "1mb"  # What a link of 25 Gb/s carries in 0.3 ms.
QUEUE = "10ms"


class VethHosts:
    """The hosts until close(), which leaves nothing in the namespace they were made in."""

    def __init__(self, mtu, rate_gbps=None):
        """`rate_gbps`: of the link, each way, by a token bucket; without it as fast as the CPUs are."""
        self.keepers = []
        try:
            for _ in range(HOSTS):
                self.keepers.append(self.keep_namespace())
            self.on(0, "ip", "link", "add", INTERFACE, "type", "veth", "peer", "name", INTERFACE, "netns",
                    str(self.keepers[1].pid))
            for host in range(HOSTS):
                self.on(host, "ip", "address", "add", ADDRESS.format(host + 1), "dev", INTERFACE)
                for interface, size in (("lo", 65536), (INTERFACE, mtu)):
                    self.on(host, "ip", "link", "set", interface, "mtu", str(size), "up")
                if rate_gbps:
                    self.on(host, "tc", "qdisc", "add", "dev", INTERFACE, "root", "tbf", "rate", f"{rate_gbps:g}gbit",
                            "burst", BURST, "latency", QUEUE)
        except BaseException:
            self.close()
            raise

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
