# SPDX-License-Identifier: Apache-2.0
# Copyright the ztcp authors
"""A network that chooses the receive queue of a flow by its ports, as NICs do, and not as a veth
does: its other end sends a frame of AF_XDP on the queue of the socket. And the XDP program that
processes of a host share."""
import ctypes
import os
import socket
import struct
import subprocess

PIN_XDP = os.environ["E2E_PIN_XDP"]
SYS_BPF = 321
PROG_LOAD, OBJ_PIN = 5, 6
SCHED_CLS = 3
# linux/bpf.h: of struct __sk_buff.
QUEUE_MAPPING, DATA, DATA_END = 12, 76, 80
REDIRECT = 23
LDX_H, LDX_W, STX_W = 0x69, 0x61, 0x63
MOV_X, MOV_K, ADD_X, ADD_K, MUL_K, RSH_K, MOD_K = 0xBF, 0xB7, 0x0F, 0x07, 0x27, 0x77, 0x97
JGT_X, JNE_K, CALL, EXIT = 0x2D, 0x55, 0x85, 0x95


def bpf(command, attributes):
    result = ctypes.CDLL(None, use_errno=True).syscall(SYS_BPF, command,
                                                       ctypes.create_string_buffer(attributes, 128), 128)
    if result < 0:
        raise OSError(ctypes.get_errno(), f"bpf command {command}")
    return result


def spread_program(to_interface, queues, factors):
    """Sends each frame out of `to_interface`; TCP over IPv4 on the queue that a hash of its ports
    gives. Ports are read in the host's byte order: any hash will do."""
    def one(code, to=0, of=0, offset=0, number=0):
        return struct.pack("<BBhi", code, to | of << 4, offset, number)

    tail = [one(MOV_K, 1, number=to_interface), one(MOV_K, 2), one(CALL, number=REDIRECT), one(EXIT)]
    body = [one(LDX_H, 5, 2, 12), None,  # IPv4?
            one(0x71, 5, 2, 23), None,   # TCP?
            one(LDX_H, 4, 2, 34), one(LDX_H, 5, 2, 36),
            one(MUL_K, 4, number=factors[0]), one(MUL_K, 5, number=factors[1]), one(ADD_X, 4, 5),
            one(RSH_K, 4, number=9), one(MOD_K, 4, number=queues), one(ADD_K, 4, number=1),
            one(STX_W, 6, 4, QUEUE_MAPPING)]  # One more than the queue: 0 is none.
    body[1] = one(JNE_K, 5, offset=len(body) - 2, number=0x0008)
    body[3] = one(JNE_K, 5, offset=len(body) - 4, number=6)
    head = [one(MOV_X, 6, 1), one(LDX_W, 2, 1, DATA), one(LDX_W, 3, 1, DATA_END), one(MOV_X, 4, 2),
            one(ADD_K, 4, number=38), one(JGT_X, 4, 3, len(body))]
    return b"".join(head + body + tail)


def pin_filter(path, code):
    code_at, licence_at = ctypes.create_string_buffer(code), ctypes.create_string_buffer(b"GPL")
    program = bpf(PROG_LOAD, struct.pack("IIQQIIQII16s", SCHED_CLS, len(code) // 8, ctypes.addressof(code_at),
                                         ctypes.addressof(licence_at), 0, 0, 0, 0, 0, b"spread"))
    path_at = ctypes.create_string_buffer(path.encode())
    bpf(OBJ_PIN, struct.pack("QI", ctypes.addressof(path_at), program))
    os.close(program)


def join_by_hash(hosts, queues):
    """`data` of both hosts, and between them two interfaces of the test's own namespace."""
    def command(*words):
        subprocess.run(words, check=True, timeout=30)

    command("mount", "-t", "bpf", "bpf", "/sys/fs/bpf")
    several = ("numrxqueues", str(queues), "numtxqueues", str(queues))
    for end in "ab":
        command("ip", "link", "add", f"data-{end}", *several, "type", "veth", "peer", "name", f"mid-{end}", *several)
        command("ip", "link", "set", f"mid-{end}", "mtu", str(hosts.mtu), "up")
        hosts.move("ab".index(end), f"data-{end}", "data", hosts.mtu)
    # Different hashes each way, as of two NICs with keys of their own.
    for end, other, factors in (("a", "b", (40503, 30011)), ("b", "a", (52711, 60493))):
        pin_filter(f"/sys/fs/bpf/from-{end}", spread_program(socket.if_nametoindex(f"mid-{other}"), queues, factors))
        command("tc", "qdisc", "add", "dev", f"mid-{end}", "clsact")
        command("tc", "filter", "add", "dev", f"mid-{end}", "ingress", "bpf", "direct-action", "object-pinned",
                f"/sys/fs/bpf/from-{end}")


def pin_program(hosts, host, processes):
    hosts.on(host, "sh", "-c", "mount -t tmpfs tmpfs /run; mkdir /run/ztcp-bpf; mount -t bpf bpf /run/ztcp-bpf")
    hosts.on(host, PIN_XDP, "data", hosts.address(host).split("/")[0], "7471", "61000", "65535", str(processes))
