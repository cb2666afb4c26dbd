#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
# Copyright the ztcp authors
"""Two processes with as many connections between them as a process has in a large job: an
all-to-all of 78 hosts with 8 GPUs each, where the NIC is exposed to NCCL as eight devices, needs so
many. Each process dials half of them; each connection carries a message.

    crowd.py CASE                        as the other tests
    crowd.py end FOLDER NUMBER CONNECTIONS   one of the two processes
"""
import contextlib
import ctypes
import os
import resource
import sys
import time

from fabric import Fabric, check, main
from peer import await_file, poll, write_atomically
from plugin_table import Buffer, HANDLE_BYTES, PTR_HOST, Table, c_int, say, voidp
from sockets import ASKED, without_a_config

CONNECTIONS = 10_000
OTHERS = 300  # Descriptors of other kinds, and those left to the application.
IN_PROGRESS = 256
BYTES = 64


def memory_kib():
    with open("/proc/self/status", encoding="utf-8") as file:
        return next(int(line.split()[1]) for line in file if line.startswith("VmRSS"))


def raise_limit(descriptors):
    """A plugin must not raise the limit; a program may raise its own."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    if hard < descriptors:
        print(f"the hard limit of descriptors is {hard}; {descriptors} are needed")
        sys.exit(77)
    resource.setrlimit(resource.RLIMIT_NOFILE, (max(descriptors, soft), hard))


def connected(net, handles, listeners):
    """Makes all sends and receives as NCCL does: each is tried again until it is posted."""
    sends, receives = [voidp() for _ in handles], [voidp() for _ in listeners]
    wanted = [(sends[i], "connect", (0, handle)) for i, handle in enumerate(handles)]
    awaited = [(receives[i], "accept", (listener,)) for i, listener in enumerate(listeners)]

    def step():
        for waiting in (wanted, awaited):
            for comm, verb, arguments in waiting[:IN_PROGRESS]:
                net.call(verb, *arguments, ctypes.byref(comm), ctypes.byref(voidp()))
            waiting[:IN_PROGRESS] = [one for one in waiting[:IN_PROGRESS] if not one[0].value]
        return not wanted and not awaited
    poll("connections", step, 240)
    return sends, receives


def exchange(net, sends, receives):
    """Sends one message over each connection, all at the same time."""
    requests, keys = [], []
    buffers = {id(comm): Buffer(BYTES) for comm in sends + receives}
    for comms in (receives, sends):
        for comm in comms:
            buffer, key, request = buffers[id(comm)], voidp(), voidp()
            net.call("regMr", comm, buffer.address, BYTES, PTR_HOST, ctypes.byref(key))
            keys.append((comm, key))
            if comms is sends:
                buffer.fill(7)
                poll("isend", lambda c=comm, b=buffer, k=key, r=request:
                     net.call("isend", c, b.address, BYTES, 0, k, ctypes.byref(r)) or r.value, 60)
            else:
                net.call("irecv", comm, 1, ctypes.byref(voidp(buffer.address)),
                         ctypes.byref(c_int(BYTES)), ctypes.byref(c_int(0)), ctypes.byref(key),
                         ctypes.byref(request))
            requests.append(request)
    size, flag = c_int(0), c_int(0)

    def step():
        for request in requests[:IN_PROGRESS]:
            net.call("test", request, ctypes.byref(flag), ctypes.byref(size))
            if flag.value:
                requests.remove(request)
        return not requests
    poll("messages", step, 120)
    check(all(buffers[id(comm)].holds(7) for comm in receives), "wrong bytes")
    for comm, key in keys:
        net.call("deregMr", comm, key)


def end(folder, number, connections):
    own, other = number, 1 - number
    raise_limit(connections + OTHERS)
    net = Table(os.environ["E2E_PLUGIN"])
    net.call("init", net.logger)
    handles, listeners = [], []
    for _ in range(connections // 2):
        handles.append(ctypes.create_string_buffer(HANDLE_BYTES))
        listeners.append(voidp())
        net.call("listen", 0, handles[-1], ctypes.byref(listeners[-1]))
    write_atomically(f"{folder}/handles{own}", b"".join(handle.raw for handle in handles))
    raw = await_file(f"{folder}/handles{other}", 60)
    theirs = [ctypes.create_string_buffer(raw[i:i + HANDLE_BYTES], HANDLE_BYTES)
              for i in range(0, len(raw), HANDLE_BYTES)]
    before, began, cpu_before = memory_kib(), time.monotonic(), time.process_time()
    sends, receives = connected(net, theirs, listeners)
    took, cpu = time.monotonic() - began, time.process_time() - cpu_before
    grown = memory_kib() - before
    exchange(net, sends, receives)
    used = memory_kib() - before
    say(f"{connections} connections in {took:.1f} s: {cpu / connections * 1e6:.0f} us of CPU and "
        f"{grown / connections:.1f} KiB each; with a message through each {used / connections:.1f} "
        f"KiB; {len(os.listdir('/proc/self/fd'))} descriptors, "
        f"{len(os.listdir('/proc/self/task'))} threads")
    write_atomically(f"{folder}/done{own}", b"")
    await_file(f"{folder}/done{other}", 120)
    for verb, comms in (("closeSend", sends), ("closeRecv", receives), ("closeListen", listeners)):
        for comm in comms:
            net.call(verb, comm)
    say("finished")


def run(connections):
    raise_limit(connections + OTHERS)
    with Fabric(2, topology="mesh") as fabric:
        without_a_config(fabric)
        both = [fabric.start(f"end{i}", [sys.executable, __file__, "end", fabric.folder, str(i),
                                         str(connections)],
                             env={**ASKED, "LOCAL_WORLD_SIZE": "2"}) for i in range(2)]
        for process in both:
            status = process.wait(280)
            check(status == 0 and "finished" in process.output(),
                  f"{process.name} ended with {status}: {process.output()}")
            print(process.output())


def ten_thousand():
    run(CONNECTIONS)


def thousand():
    """The same with 1000 connections, in a few seconds."""
    run(CONNECTIONS // 10)


def few_descriptors():
    """More than half of the soft limit: connections may use all of it but a reserve."""
    _, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (1000, hard))
    run(700)


if __name__ == "__main__":
    if sys.argv[1:2] == ["end"]:
        end(sys.argv[2], int(sys.argv[3]), int(sys.argv[4]))
    else:
        with contextlib.suppress(BrokenPipeError):
            main({f.__name__: f for f in (thousand, ten_thousand, few_descriptors)})
