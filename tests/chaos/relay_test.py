#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
# Copyright the ztcp authors
"""tests/chaos/relay.py: forwards between ranks, and drops everything of a muted rank, its end included."""
import socket
import sys
import unittest

sys.dont_write_bytecode = True
from relay import Relay  # noqa: E402

SHORT_S = 0.3
LONG_S = 10


class Relays(unittest.TestCase):
    def setUp(self):
        self.listener = socket.socket()
        self.listener.bind(("127.0.0.1", 0))
        self.relay = Relay(3, ["127.0.0.1"] * 3, self.listener.getsockname())
        self.addCleanup(self.relay.close)
        self.addCleanup(self.listener.close)

    def call(self, rank):
        host, port = self.relay.rendezvous(rank).split(":")
        return socket.create_connection((host, int(port)), LONG_S)

    def join(self, rank):
        """The socket of the rank and the socket of rank 0."""
        self.listener.listen()
        ends = (self.call(rank), self.listener.accept()[0])
        for end in ends:
            end.settimeout(LONG_S)
            self.addCleanup(end.close)
        return ends

    def is_silent(self, end):
        end.settimeout(SHORT_S)
        with self.assertRaises(TimeoutError):
            end.recv(1)
        return True

    def test_a_rank_waits_for_rank_0_to_listen(self):
        rank = self.call(1)
        self.addCleanup(rank.close)
        rank.sendall(b"early")
        self.assertTrue(self.is_silent(rank))
        self.listener.listen()
        first, _ = self.listener.accept()
        self.addCleanup(first.close)
        self.assertEqual(first.recv(16), b"early")

    def test_forwards_both_directions(self):
        rank, first = self.join(1)
        rank.sendall(b"here")
        self.assertEqual(first.recv(16), b"here")
        first.sendall(b"welcome")
        self.assertEqual(rank.recv(16), b"welcome")

    def test_forwards_the_end_of_a_connection(self):
        rank, first = self.join(1)
        rank.close()
        self.assertEqual(first.recv(1), b"")

    def test_a_muted_rank_is_silent_until_end_muted(self):
        rank, first = self.join(1)
        other, others_first = self.join(2)
        rank.sendall(b"a")
        self.assertEqual(first.recv(16), b"a")
        self.relay.mute(1)
        rank.sendall(b"b")
        rank.close()
        self.assertTrue(self.is_silent(first))
        other.sendall(b"c")
        self.assertEqual(others_first.recv(16), b"c")
        self.relay.end_muted()
        first.settimeout(LONG_S)
        self.assertEqual(first.recv(1), b"")
        other.sendall(b"d")
        self.assertEqual(others_first.recv(16), b"d")

    def test_muting_rank_0_mutes_all(self):
        ends = [self.join(rank) for rank in (1, 2)]
        for rank, first in ends:
            first.sendall(b"a")
            self.assertEqual(rank.recv(1), b"a")
        self.relay.mute(0)
        for rank, first in ends:
            first.close()
            self.assertTrue(self.is_silent(rank))


if __name__ == "__main__":
    unittest.main()
