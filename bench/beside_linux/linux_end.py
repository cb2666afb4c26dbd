# SPDX-License-Identifier: Apache-2.0
# Copyright the ztcp authors
"""One end of a flow over Linux's TCP: a plain socket that sends for some time, or receives.

The receiver prints "TIME BYTES": the monotonic clock, and all bytes so far.
"""
import socket
import sys
import time

from record import Record

PORT = 5001
BUFFER_BYTES = 16 << 20
CHUNK_BYTES = 256 << 10
# asm-generic/socket.h: without the bounds of net.core.
SO_SNDBUFFORCE, SO_RCVBUFFORCE = 32, 33
CONNECT_S = 30


def send(address, control, seconds):
    with socket.socket() as flow:
        flow.setsockopt(socket.IPPROTO_TCP, socket.TCP_CONGESTION, control.encode())
        flow.setsockopt(socket.SOL_SOCKET, SO_SNDBUFFORCE, BUFFER_BYTES)
        flow.settimeout(CONNECT_S)
        flow.connect((address, PORT))
        flow.setblocking(True)
        data = bytes(CHUNK_BYTES)
        end = time.monotonic() + seconds
        while time.monotonic() < end:
            flow.send(data)


def receive(address):
    with socket.socket() as listener:
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        listener.setsockopt(socket.SOL_SOCKET, SO_RCVBUFFORCE, BUFFER_BYTES)
        listener.bind((address, PORT))
        listener.listen()
        print("listening", flush=True)
        flow, _ = listener.accept()
    memory = bytearray(CHUNK_BYTES)
    record = Record()
    with flow:
        while count := flow.recv_into(memory):
            record.add(count)


if __name__ == "__main__":
    role, *words = sys.argv[1:]
    if role == "send":
        send(words[0], words[1], float(words[2]))
    else:
        receive(words[0])
