# SPDX-License-Identifier: Apache-2.0
# Copyright the ztcp authors
"""Rails for NICs with several queues: multi-queue taps on bridges, in their own network namespace.

qemu's `-netdev stream`, which wire.py speaks, has one queue. A tap has several, each a descriptor
that qemu inherits. A process of this file makes them, so that the lab itself stays in the host's
namespace; it needs root or user namespaces. The kernel sends a flow's frames to the queue from
which the machine last sent frames of that flow.
"""
import errno
import fcntl
import os
import socket
import struct
import subprocess
import sys

TUNSETIFF = 0x400454CA
TUNSETQUEUE = 0x400454D9
IFF_ATTACH_QUEUE = 0x0200
IFF_TAP, IFF_NO_PI, IFF_VNET_HDR, IFF_MULTI_QUEUE = 0x0002, 0x1000, 0x4000, 0x0100


class QueueRails:
    def __init__(self):
        self._socket, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        unshare = ["unshare", "--net"] + ([] if os.geteuid() == 0 else ["--user", "--map-root-user"])
        self._keeper = subprocess.Popen([*unshare, sys.executable, os.path.abspath(__file__), str(theirs.fileno())],
                                        pass_fds=[theirs.fileno()], stdin=subprocess.DEVNULL)
        theirs.close()

    def tap(self, rail, name, queues):
        """Descriptors of a new tap's queues. They stay open as long as this process."""
        self._socket.send(f"{rail} {name} {queues}".encode())
        answer, fds, _, _ = socket.recv_fds(self._socket, 64, queues)
        if answer != b"made":
            raise OSError(f"no tap with {queues} queues: network namespaces and /dev/net/tun are needed")
        return fds

    def end(self):
        self._socket.close()  # Ends the keeper, and with it the namespace.
        self._keeper.wait()


def attach_queues(fds):
    """A qemu that ended left queues of the tap detached; the next one expects all attached."""
    request = struct.pack("16sH22x", b"", IFF_ATTACH_QUEUE)
    for fd in fds:
        try:
            fcntl.ioctl(fd, TUNSETQUEUE, request)
        except OSError as failure:
            if failure.errno != errno.EINVAL:  # It is attached.
                raise


def ip(*words):
    subprocess.run(["ip", *words], check=True)


def make_tap(rail, name, queues):
    if not os.path.exists(f"/proc/sys/net/ipv4/conf/{rail}"):
        ip("link", "add", rail, "type", "bridge", "mcast_snooping", "0")
        ip("link", "set", rail, "up")
    request = struct.pack("16sH22x", name.encode(), IFF_TAP | IFF_NO_PI | IFF_VNET_HDR | IFF_MULTI_QUEUE)
    fds = []
    for _ in range(queues):
        fds.append(os.open("/dev/net/tun", os.O_RDWR | os.O_NONBLOCK | os.O_CLOEXEC))
        fcntl.ioctl(fds[-1], TUNSETIFF, request)
    ip("link", "set", name, "master", rail, "mtu", "9000", "up")
    return fds


def keep(connection):
    while request := connection.recv(256):
        rail, name, queues = request.decode().split()
        fds = make_tap(rail, name, int(queues))
        socket.send_fds(connection, [b"made"], fds)
        for fd in fds:
            os.close(fd)


if __name__ == "__main__":
    keep(socket.socket(fileno=int(sys.argv[1])))
