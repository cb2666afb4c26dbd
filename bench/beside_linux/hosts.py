# SPDX-License-Identifier: Apache-2.0
# Copyright the ztcp authors
"""Hosts that use their kernel's TCP: network namespaces with a tap of the switch as interface.

A run is in a network namespace of its own. The kernel removes it, and those of the hosts, with
their last process.
"""
import os
import pathlib
import subprocess
import sys

INTERFACE = "data"
ENTERED = "BESIDE_ENTERED"
CANNOT_RUN = 77


def enter():
    """Executes this program again in a network namespace of its own, or exits with the reason."""
    if os.environ.pop(ENTERED, None):
        return
    if not pathlib.Path("/dev/net/tun").exists():
        sys.exit("no /dev/net/tun: the switch has no port for Linux's TCP")
    unshare = ["unshare", "--net", "--mount"] + ([] if os.geteuid() == 0 else ["--user", "--map-root-user"])
    tried = subprocess.run([*unshare, "true"], stderr=subprocess.PIPE, text=True, check=False, timeout=30)
    if tried.returncode != 0:
        print(f"no network namespace of its own (this needs root): {tried.stderr.strip()}", file=sys.stderr)
        sys.exit(CANNOT_RUN)
    os.environ[ENTERED] = "yes"
    os.execvp(unshare[0], [*unshare, sys.executable, *sys.argv])


class Host:
    """A network namespace until close()."""

    def __init__(self, address):
        self.address = address
        self.keeper = subprocess.Popen(["unshare", "--net", "--mount", "sh", "-c",
                                        "mount -t sysfs sysfs /sys; ip link set lo up; echo; exec cat"],
                                       stdin=subprocess.PIPE, stdout=subprocess.PIPE, start_new_session=True)
        self.keeper.stdout.readline()

    def inside(self, command):
        return ["nsenter", "--target", str(self.keeper.pid), "--net", "--mount", "--", *command]

    def adopt(self, tap, mtu):
        """Moves a tap of the switch into the namespace, as its interface."""
        run("ip", "link", "set", tap, "netns", str(self.keeper.pid))
        run(*self.inside(["ip", "link", "set", tap, "name", INTERFACE, "mtu", str(mtu), "up"]))
        run(*self.inside(["ip", "address", "add", f"{self.address}/24", "dev", INTERFACE]))

    def close(self):
        self.keeper.communicate()


def run(*command):
    subprocess.run(command, check=True, timeout=30, stdin=subprocess.DEVNULL)
