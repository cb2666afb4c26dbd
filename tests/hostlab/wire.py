# SPDX-License-Identifier: Apache-2.0
# Copyright the ztcp authors
"""A cable between machines: qemu's `-netdev stream` frames on a Unix socket, with seeded faults.

One Wire per rail. Each machine's NIC connects to the socket; a frame goes to all other machines.
Runs in a thread of the lab; `loss` and `largest` may be changed at any time.
"""
import ipaddress
import os
import queue
import random
import selectors
import socket
import struct
import threading
import time

# Frames for a machine that doesn't read; beyond it they are dropped, as by a switch.
QUEUE_BYTES = 1 << 20


class Port:
    def __init__(self, connection):
        self.socket = connection
        self.socket.setblocking(False)
        self.incoming = bytearray()
        self.outgoing = bytearray()


class Wire(threading.Thread):
    def __init__(self, path, seed):
        super().__init__(daemon=True, name=os.path.basename(path))
        self.path = path
        self.loss = 0.0  # A share of all frames, 0 to 1.
        self.largest = None  # Longer frames are dropped, as where the path's MTU is smaller.
        self.forwarded = self.lost = self.oversized = self.overflowed = 0
        self._random = random.Random(seed)
        self._selector = selectors.DefaultSelector()
        self._ports = []
        self._injected = queue.SimpleQueue()
        self._listener = socket.socket(socket.AF_UNIX)
        self._listener.bind(path)
        self._listener.listen()
        self._selector.register(self._listener, selectors.EVENT_READ)
        self.start()

    def counters(self):
        return (f"{self.forwarded} frames forwarded, {self.lost} lost, {self.oversized} too long, "
                f"{self.overflowed} dropped for a full queue")

    def inject(self, frame):
        """Sends a frame of no machine to all machines, within a second. Any thread."""
        self._injected.put(frame)

    def run(self):
        while True:
            while not self._injected.empty():
                frame = self._injected.get()
                self._pass_on(struct.pack(">I", len(frame)) + frame, self._ports)
            for key, events in self._selector.select(timeout=1):
                if key.data is None:
                    self._ports.append(Port(self._listener.accept()[0]))
                    self._selector.register(self._ports[-1].socket, selectors.EVENT_READ,
                                            self._ports[-1])
                    continue
                try:
                    if events & selectors.EVENT_READ:
                        self._receive(key.data)
                    if events & selectors.EVENT_WRITE:
                        self._flush(key.data)
                except OSError:
                    self._close(key.data)

    def _receive(self, port):
        data = port.socket.recv(1 << 18)
        if not data:
            raise ConnectionResetError
        port.incoming += data
        start = 0
        passed = bytearray()
        while len(port.incoming) - start >= 4:
            end = start + 4 + struct.unpack_from(">I", port.incoming, start)[0]
            if end > len(port.incoming):
                break
            if self.largest and end - start - 4 > self.largest:
                self.oversized += 1
            elif self.loss and self._random.random() < self.loss:
                self.lost += 1
            else:
                self.forwarded += 1
                passed += port.incoming[start:end]
            start = end
        del port.incoming[:start]
        self._pass_on(passed, [other for other in self._ports if other is not port])

    def _pass_on(self, frames, ports):
        for other in list(ports):
            if len(other.outgoing) > QUEUE_BYTES:
                self.overflowed += 1
                continue
            other.outgoing += frames
            try:
                self._flush(other)
            except OSError:
                self._close(other)

    def _flush(self, port):
        try:
            while port.outgoing:
                del port.outgoing[:port.socket.send(port.outgoing)]
        except BlockingIOError:
            pass
        wanted = selectors.EVENT_READ | (selectors.EVENT_WRITE if port.outgoing else 0)
        self._selector.modify(port.socket, wanted, port)

    def _close(self, port):
        if port in self._ports:
            self._ports.remove(port)
            self._selector.unregister(port.socket)
            port.socket.close()


class RouterOnTheWire(threading.Thread):
    """Advertises a prefix of 64 bits to all machines of a wire, every two seconds (RFC 4861).
    `lifetime_s`: its own as a default router."""
    address = "fe80::77"
    INTERVAL_S = 2

    def __init__(self, wire, prefix, lifetime_s, valid_s):
        super().__init__(daemon=True, name="router")
        self._wire = wire
        self._frame = self._advertisement(ipaddress.IPv6Address(prefix).packed, lifetime_s, valid_s)

    @classmethod
    def _advertisement(cls, prefix, lifetime_s, valid_s):
        on_link_and_autonomous = 0xc0
        prefix_option = struct.pack(">BBBBIII", 3, 4, 64, on_link_and_autonomous, valid_s, valid_s, 0) + prefix
        message = struct.pack(">BBHBBHII", 134, 0, 0, 64, 0, lifetime_s, 0, 0) + prefix_option
        addresses = ipaddress.IPv6Address(cls.address).packed + ipaddress.IPv6Address("ff02::1").packed
        summed = addresses + struct.pack(">II", len(message), 58) + message
        total = sum(struct.unpack(f">{len(summed) // 2}H", summed))
        while total >> 16:
            total = (total & 0xffff) + (total >> 16)
        message = message[:2] + struct.pack(">H", ~total & 0xffff) + message[4:]
        return (bytes.fromhex("333300000001" "020000000077" "86dd") +
                struct.pack(">IHBB", 6 << 28, len(message), 58, 255) + addresses + message)

    def run(self):
        while True:
            self._wire.inject(self._frame)
            time.sleep(self.INTERVAL_S)
