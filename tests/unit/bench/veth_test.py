#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
# Copyright the ztcp authors
"""bench/gpu/veth: hosts that reach each other only by their data interfaces, and leave nothing
behind."""
import os
import subprocess
import sys
import unittest

sys.dont_write_bytecode = True
sys.path.insert(0, os.path.dirname(sys.argv.pop(1)))
import veth  # noqa: E402

LISTEN = """import socket
listener = socket.create_server(("10.66.0.2", 4711))
print("listening", flush=True)
listener.settimeout(20)
connection, peer = listener.accept()
connection.sendall(b"from " + peer[0].encode())
"""
CONNECT = """import socket
connection = socket.create_connection(("10.66.0.2", 4711), timeout=20)
print(connection.recv(64).decode())
"""


def interfaces():
    return sorted(os.listdir("/sys/class/net"))


class Veth(unittest.TestCase):
    def setUp(self):
        self.before = interfaces()
        self.make(veth.HOSTS)

    def make(self, count):
        self.hosts = veth.VethHosts(1500, hosts=count)
        self.addCleanup(self.hosts.close)

    def read(self, host, *command):
        return subprocess.run(self.hosts.inside(host, command), check=True, stdout=subprocess.PIPE, text=True,
                              timeout=30).stdout

    def test_has_the_mtu_that_was_asked_for(self):
        for host in range(veth.HOSTS):
            self.assertIn(" mtu 1500 ", self.read(host, "ip", "-oneline", "link", "show", "dev", veth.INTERFACE))

    def test_one_host_reaches_the_other(self):
        with subprocess.Popen(self.hosts.inside(1, [sys.executable, "-c", LISTEN]), stdout=subprocess.PIPE) as listener:
            self.assertEqual(listener.stdout.readline(), b"listening\n")
            self.assertEqual(self.read(0, sys.executable, "-c", CONNECT), "from 10.66.0.1\n")

    def test_more_hosts_reach_each_other_through_a_bridge(self):
        self.hosts.close()
        self.make(4)
        with subprocess.Popen(self.hosts.inside(1, [sys.executable, "-c", LISTEN]), stdout=subprocess.PIPE) as listener:
            self.assertEqual(listener.stdout.readline(), b"listening\n")
            self.assertEqual(self.read(3, sys.executable, "-c", CONNECT), "from 10.66.0.4\n")

    def test_this_host_has_neither_interface_nor_keeper_afterwards(self):
        keepers = [keeper.pid for keeper in self.hosts.keepers]
        self.hosts.close()
        self.assertEqual(interfaces(), self.before)
        self.assertFalse([pid for pid in keepers if os.path.exists(f"/proc/{pid}")])


if __name__ == "__main__":
    if subprocess.run(["unshare", "--net", "--mount", "true"], stderr=subprocess.DEVNULL, check=False).returncode != 0:
        sys.exit(77)
    unittest.main()
