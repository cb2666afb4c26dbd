# SPDX-License-Identifier: Apache-2.0
# Copyright the ztcp authors
"""A TCP relay between rank 0 of ztcp_perf and the other ranks, for the connections of --rendezvous.

ztcp_perf notices a dead rank at once by these connections and stops, before the plugin has reported anything. NCCL has
no such channel. The harness therefore mutes a rank before it kills it: the relay drops everything from and to that
rank, the end of its connection included, and the other ranks learn of the death through the plugin alone.

The plugin can report a death only while a request is in flight. Between two exchanges the ranks wait for each other
through this relay: end_muted() ends a job whose rank died there.
"""
from __future__ import annotations

import contextlib
import socket
import threading
import time

CONNECT_TIMEOUT_S = 5
RETRY_S = 0.05


class Channel:
    """The connection between one rank and rank 0: two sockets with the relay between them."""

    def __init__(self, rank: int, from_rank: socket.socket, to_first: socket.socket) -> None:
        self.rank = rank
        self.is_muted = False
        self.ends = (from_rank, to_first)
        for end in self.ends:
            end.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)

    def pump(self, source: int) -> None:
        """Forwards one direction until a socket closes, then closes both."""
        while True:
            try:
                data = self.ends[source].recv(1 << 16)
            except OSError:
                data = b""
            if not data:
                break
            if self.is_muted:
                continue
            try:
                self.ends[1 - source].sendall(data)
            except OSError:
                break
        if not self.is_muted:
            self.close()

    def close(self) -> None:
        for end in self.ends:
            with contextlib.suppress(OSError):
                end.shutdown(socket.SHUT_RDWR)


class Relay:
    """Listens at one port for each rank other than 0, and connects each caller to rank 0."""

    def __init__(self, ranks: int, addresses: list[str], first: tuple[str, int]) -> None:
        """`addresses`: the address of the relay for each rank. `first`: the address at which rank 0 will listen."""
        self.first = first
        self.channels: list[Channel] = []
        self.is_closed = False
        self.threads: list[threading.Thread] = []
        self.listeners = {rank: socket.create_server((addresses[rank], 0)) for rank in range(1, ranks)}
        for rank in self.listeners:
            self._start(self._serve, rank)

    def rendezvous(self, rank: int) -> str:
        host, port = self.first if rank == 0 else self.listeners[rank].getsockname()
        return f"{host}:{port}"

    def mute(self, rank: int) -> None:
        """All channels end at rank 0: muting rank 0 mutes all of them."""
        for channel in self.channels:
            if rank in (0, channel.rank):
                channel.is_muted = True

    def end_muted(self) -> None:
        """Closes the muted channels, so that ztcp_perf notices the dead rank."""
        for channel in self.channels:
            if channel.is_muted:
                channel.close()

    def close(self) -> None:
        self.is_closed = True
        for listener in self.listeners.values():
            with contextlib.suppress(OSError):
                listener.shutdown(socket.SHUT_RDWR)
        for channel in self.channels:
            channel.close()
        for thread in self.threads:
            thread.join(5)
        for end in [*self.listeners.values(), *(end for channel in self.channels for end in channel.ends)]:
            end.close()

    def _start(self, work, *arguments) -> None:
        thread = threading.Thread(target=work, args=arguments, daemon=True)
        self.threads.append(thread)
        thread.start()

    def _connect(self) -> socket.socket | None:
        """None when the relay is closed first."""
        while not self.is_closed:
            with contextlib.suppress(OSError):
                to_first = socket.create_connection(self.first, CONNECT_TIMEOUT_S)
                to_first.settimeout(None)
                return to_first
            time.sleep(RETRY_S)
        return None

    def _serve(self, rank: int) -> None:
        """A caller waits until rank 0 listens: ztcp_perf does not retry once it is connected."""
        while not self.is_closed:
            try:
                from_rank, _ = self.listeners[rank].accept()
            except OSError:
                return
            to_first = self._connect()
            if to_first is None:
                from_rank.close()
                return
            channel = Channel(rank, from_rank, to_first)
            self.channels.append(channel)
            self._start(channel.pump, 0)
            self._start(channel.pump, 1)
