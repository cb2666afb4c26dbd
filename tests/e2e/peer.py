#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
# Copyright the ztcp authors
"""One end of a connection through the plugin's v8 table, as NCCL's proxy would use it.

ztcp_perf's ranks tell each other out of band when one dies. This process learns of its peer only
through the plugin, so that a test sees the errors that NCCL would see. Handles travel as files.

    peer.py send|recv FOLDER [--size N] [--count N] [--exit-after N] [--cut-watches-after N] ...

Prints "ready", then "done N" now and then, and at last "finished N" or "error CODE after N: ...".
"""
import argparse
import contextlib
import ctypes
import os
import socket
import sys
import time

from plugin_table import Buffer, GpuBuffer, HANDLE_BYTES, PTR_CUDA, PTR_HOST, PluginError, Table, c_int, say, voidp

EXIT_PLUGIN_ERROR = 7
DEPTH = 8


def poll(what, step, timeout_s):
    deadline = time.monotonic() + timeout_s
    while not step():
        if time.monotonic() > deadline:
            raise TimeoutError(what)
        time.sleep(0)


class Sender:
    def __init__(self, net, device, handle, timeout_s):
        self.net = net
        self.comm = voidp()
        memory = ctypes.create_string_buffer(handle, HANDLE_BYTES)

        def step():
            net.call("connect", device, memory, ctypes.byref(self.comm),
                     ctypes.byref(voidp()))
            return self.comm.value
        poll("connect", step, timeout_s)

    def register(self, buffer):
        key = voidp()
        if isinstance(buffer, GpuBuffer):
            self.net.call("regMrDmaBuf", self.comm, buffer.address, buffer.size, PTR_CUDA, buffer.offset, buffer.fd,
                          ctypes.byref(key))
            os.close(buffer.fd)  # As NCCL does.
        else:
            self.net.call("regMr", self.comm, buffer.address, buffer.size, PTR_HOST, ctypes.byref(key))
        buffer.key = key

    def post(self, buffer, index):
        buffer.fill(index)
        request = voidp()
        self.net.call("isend", self.comm, buffer.address, buffer.size, 0, buffer.key,
                      ctypes.byref(request))
        return request

    def check(self, buffer, index, size):
        del buffer, index, size

    def close(self):
        self.net.call("closeSend", self.comm)


class Receiver:
    def __init__(self, net, device, publish, timeout_s):
        self.net = net
        self.comm = voidp()
        handle = ctypes.create_string_buffer(HANDLE_BYTES)
        listener = voidp()
        net.call("listen", device, handle, ctypes.byref(listener))
        publish(handle.raw)

        def step():
            net.call("accept", listener, ctypes.byref(self.comm), ctypes.byref(voidp()))
            return self.comm.value
        poll("accept", step, timeout_s)
        net.call("closeListen", listener)

    register = Sender.register

    def post(self, buffer, index):
        del index
        request = voidp()
        data, size, tag = voidp(buffer.address), c_int(buffer.size), c_int(0)
        self.net.call("irecv", self.comm, 1, ctypes.byref(data), ctypes.byref(size),
                      ctypes.byref(tag), ctypes.byref(buffer.key), ctypes.byref(request))
        return request

    def flush(self, buffer):
        request = voidp()
        data, size = voidp(buffer.address), c_int(buffer.size)
        self.net.call("iflush", self.comm, 1, ctypes.byref(data), ctypes.byref(size), ctypes.byref(buffer.key),
                      ctypes.byref(request))

        def is_done():
            flag = c_int(0)
            self.net.call("test", request, ctypes.byref(flag), None)
            return flag.value
        if request.value:
            poll("flush", is_done, 30)

    def check(self, buffer, index, size):
        if isinstance(buffer, GpuBuffer):
            self.flush(buffer)
        if size != buffer.size or not buffer.holds(index):
            raise PluginError(f"wrong data in message {index} of {size} bytes")

    def close(self):
        self.net.call("closeRecv", self.comm)


def stream(net, side, make_buffer, count, deadline_s, on_progress):
    """Keeps DEPTH messages in flight until `count` are done."""
    buffers = [make_buffer() for _ in range(DEPTH)]
    for buffer in buffers:
        side.register(buffer)
    in_flight, posted, done = [], 0, 0
    deadline = time.monotonic() + deadline_s
    try:
        while done < count:
            while posted < count and len(in_flight) < DEPTH:
                buffer = buffers[posted % DEPTH]
                request = side.post(buffer, posted)
                if not request.value:
                    break
                in_flight.append((request, buffer, posted))
                posted += 1
            flag, moved = c_int(0), c_int(0)
            # A send may be refused until its buffer is posted.
            if in_flight:
                request, buffer, index = in_flight[0]
                net.call("test", request, ctypes.byref(flag), ctypes.byref(moved))
            if flag.value:
                in_flight.pop(0)
                side.check(buffer, index, moved.value)
                done += 1
                on_progress(done)
            elif time.monotonic() > deadline:
                raise TimeoutError("stream")
    except PluginError as error:
        raise PluginError(f"{error.args[0]} after {done}") from None
    for buffer in buffers:
        net.call("deregMr", side.comm, buffer.key)
    return done


def write_atomically(path, data):
    with open(path + ".new", "wb") as file:
        file.write(data)
    os.replace(path + ".new", path)


def await_file(path, timeout_s):
    poll(path, lambda: os.path.exists(path), timeout_s)
    with open(path, "rb") as file:
        return file.read()


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("role", choices=["send", "recv", "loop", "reload", "fork-and-die"])
    parser.add_argument("folder")
    parser.add_argument("--name", default="handle")
    parser.add_argument("--size", type=int, default=65536)
    parser.add_argument("--count", type=int, default=1 << 40)
    parser.add_argument("--gpu", action="store_true", help="send from, and receive into, a GPU's memory")
    parser.add_argument("--device", type=int, default=0)
    parser.add_argument("--timeout", type=float, default=60)
    parser.add_argument("--exit-after", type=int, help="messages; then exits without closing anything")
    parser.add_argument("--raise-after", type=int, help="the same, by an exception")
    parser.add_argument("--rounds", type=int, default=1, help="connections, one after the other")
    parser.add_argument("--fill-descriptors", action="store_true", help="before the second of the rounds")
    parser.add_argument("--cut-watches-after", type=int, help="messages; then goes on")
    parser.add_argument("--cut-ports", type=int, nargs=2, metavar=("FIRST", "LAST"), help="with --cut-watches-after: only these ports")
    options = parser.parse_args()

    net = Table(os.environ["E2E_PLUGIN"])
    handle_path = os.path.join(options.folder, options.name)
    last_said = [0.0]

    def on_progress(done):
        now = time.monotonic()
        if now - last_said[0] > 0.05:
            last_said[0] = now
            say(f"done {done}")
        if done == options.exit_after:
            sys.exit(0)
        if done == options.raise_after:
            raise RuntimeError("not caught")
        if done == options.cut_watches_after:
            say(f"cut {cut_watches(*options.cut_ports or (1, 65535))}")

    try:
        net.call("init", net.logger)
        if options.role in ("loop", "reload"):
            loop(net, options)
            if options.role == "reload":
                net = net.reloaded()
                net.call("init", net.logger)
                loop(net, options)
            return 0
        for number in range(options.rounds):
            path = handle_path + (f".{number}" if options.rounds > 1 else "")
            if options.role == "recv":
                side = Receiver(net, options.device, lambda raw, path=path: write_atomically(path, raw),
                                options.timeout)
            else:
                handle = await_file(path, options.timeout)
                if options.fill_descriptors and number == 1:
                    fill_descriptors()
                side = Sender(net, options.device, handle, options.timeout)
            say("ready")
            if options.role == "fork-and-die":
                return fork_and_die()
            kind = GpuBuffer if options.gpu else Buffer
            done = stream(net, side, lambda kind=kind: kind(options.size), options.count, options.timeout, on_progress)
            side.close()
            say(f"finished {done}")
            say(f"descriptors {len(os.listdir('/proc/self/fd'))}")
    except PluginError as error:
        say(f"error {error}")
        return EXIT_PLUGIN_ERROR
    return 0


def cut_watches(first, last):
    """Ends this process's kernel connections with either port in the range, as a firewall between
    the hosts might."""
    cut = 0
    for fd in map(int, os.listdir("/proc/self/fd")):
        with contextlib.suppress(OSError):
            with socket.socket(fileno=os.dup(fd)) as connection:
                if connection.family != socket.AF_INET:
                    continue
                if any(first <= port <= last for _, port in (connection.getpeername(), connection.getsockname())):
                    connection.shutdown(socket.SHUT_RDWR)
                    cut += 1
    return cut


def fill_descriptors():
    """Again after a while: the connection before closes late."""
    for _ in range(2):
        with contextlib.suppress(OSError):
            while True:
                os.dup(0)
        time.sleep(0.5)


def fork_and_die():
    """Leaves a child behind, as a killed trainer leaves its data loaders."""
    child = os.fork()
    if child == 0:
        time.sleep(60)
        os._exit(0)
    say(f"child {child}")
    while True:
        time.sleep(1)


def loop(net, options):
    """Connects a NIC to itself and streams through it, both ends in this thread."""
    handle = ctypes.create_string_buffer(HANDLE_BYTES)
    listener, sender_comm, receiver_comm = voidp(), voidp(), voidp()
    net.call("listen", options.device, handle, ctypes.byref(listener))

    def step():
        if not sender_comm.value:
            net.call("connect", options.device, handle, ctypes.byref(sender_comm),
                     ctypes.byref(voidp()))
        if not receiver_comm.value:
            net.call("accept", listener, ctypes.byref(receiver_comm), ctypes.byref(voidp()))
        return sender_comm.value and receiver_comm.value
    poll("loopback connection", step, options.timeout)
    net.call("closeListen", listener)
    sender, receiver = object.__new__(Sender), object.__new__(Receiver)
    sender.net = receiver.net = net
    sender.comm, receiver.comm = sender_comm, receiver_comm
    out, into = Buffer(options.size), Buffer(options.size)
    sender.register(out)
    receiver.register(into)
    for index in range(options.count):
        requests = [receiver.post(into, index), sender.post(out, index)]
        sizes = [c_int(0), c_int(0)]

        def both_done():
            if requests[1] is not None and not requests[1].value:  # The send was not taken yet.
                requests[1] = sender.post(out, index)
                return False
            for i, request in enumerate(requests):
                flag = c_int(0)
                if request is not None:
                    net.call("test", request, ctypes.byref(flag), ctypes.byref(sizes[i]))
                    if flag.value:
                        requests[i] = None
            return requests == [None, None]
        poll("loopback message", both_done, options.timeout)
        receiver.check(into, index, sizes[0].value)
    sender.close()
    receiver.close()
    say(f"finished {options.count}")


def leave(status):
    """Ends the process as a C program ends: its exit handlers run. Python would first clear its
    modules, and with them the logger that the plugin's threads still call."""
    sys.stdout.flush()
    sys.stderr.flush()
    ctypes.CDLL(None).exit(status)


if __name__ == "__main__":
    leave(main())
