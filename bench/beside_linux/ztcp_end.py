# SPDX-License-Identifier: Apache-2.0
# Copyright the ztcp authors
"""One end of a flow over ztcp: messages through the plugin's table as NCCL sends them, without a pause between them.

The receiver prints as linux_end.py does. ztcp_perf measures collectives and has no time series.
"""
import argparse
import collections
import ctypes
import os
import pathlib
import sys
import time

HERE = pathlib.Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parent.parent / "tests/e2e"))

from peer import Receiver, Sender, await_file, write_atomically  # noqa: E402
from plugin_table import Buffer, PluginError, Table, c_int  # noqa: E402

from record import Record  # noqa: E402

MESSAGE_BYTES = 512 << 10  # NCCL's largest pieces. Fewer bytes in flight would be the limit.
DEPTH = 32  # NCCL_NET_MAX_REQUESTS.
REST_S = 0.0002
CONNECT_S = 30


def stream(net, side, end_s, on_done):
    """Keeps DEPTH messages in flight until the time has come."""
    buffers = [Buffer(MESSAGE_BYTES) for _ in range(DEPTH)]
    for buffer in buffers:
        side.register(buffer)
    in_flight = collections.deque()
    posted = 0
    flag, moved = c_int(0), c_int(0)
    while time.monotonic() < end_s:
        has_worked = False
        while len(in_flight) < DEPTH:
            request = side.post(buffers[posted % DEPTH], posted)
            if not request.value:  # The peer has posted no buffer for it yet.
                break
            in_flight.append(request)
            posted += 1
            has_worked = True
        while in_flight:
            net.call("test", in_flight[0], ctypes.byref(flag), ctypes.byref(moved))
            if not flag.value:
                break
            in_flight.popleft()
            on_done(moved.value)
            has_worked = True
        if not has_worked:
            time.sleep(REST_S)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("role", choices=["send", "receive"])
    parser.add_argument("--plugin", required=True)
    parser.add_argument("--handle", required=True, help="file for the receiver's NCCL handle")
    parser.add_argument("--seconds", type=float, required=True, help="of sending, or until the receiver ends")
    options = parser.parse_args()
    net = Table(options.plugin)
    record = Record()
    try:
        net.call("init", net.logger)
        if options.role == "send":
            side = Sender(net, 0, await_file(options.handle, CONNECT_S), CONNECT_S)
        else:
            side = Receiver(net, 0, lambda raw: write_atomically(options.handle, raw), CONNECT_S)
        on_done = record.add if options.role == "receive" else lambda _: None
        stream(net, side, time.monotonic() + options.seconds, on_done)
    except PluginError as error:
        print(f"error {error}", flush=True)
        return 1
    sys.stdout.flush()
    os._exit(0)  # Messages are still in flight: there is nothing to close in order.


if __name__ == "__main__":
    sys.exit(main())
