#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
# Copyright the ztcp authors
"""The built plugin over RDMA between processes (soft_fabric.py)."""
import os
import re
import signal

from fabric import check, main, wait_until
from soft_fabric import (SHORT, SOCKET_NIC, SWEEP, TOLD_BOUND_S, VERBS_NIC, SoftFabric, by_config, done_count,
                         ends_with_error, gpu_streams, refused_at_both_ends, said, streams, write_config)
from transfer import rows_are_right


def operations():
    with SoftFabric(3) as fabric:
        for op in ("all_reduce", "all_to_all", "sendrecv"):
            fabric.perf("--op", op, *SWEEP)
        counted = fabric.counted()
        check(counted["messages"] > 0 and counted["failed"] == 0, counted)
        check("soft0: RDMA verbs, soft0 port 1, InfiniBand LID 1" in fabric.log(), "no init line")


def tags():
    """Groups of receives; each rank uses another device."""
    with SoftFabric(3) as fabric:
        for op in ("all_reduce", "all_to_all"):
            fabric.perf("--op", op, "--tags", "8", *SHORT, SOFT_NIC_DEVICES="3")
        fabric.counted()
        said(fabric, "soft2: RDMA verbs, soft2 port 1")


def queue_pairs():
    """Large messages take the queue pairs in turn, or are split over all of them."""
    with SoftFabric() as fabric:
        for split in ("0", "1"):
            fabric.perf("--op", "all_reduce", *SWEEP, NCCL_IB_QPS_PER_CONNECTION="8", NCCL_IB_SPLIT_DATA_ON_QPS=split)
        fabric.counted()


def disordered():
    """Queue pairs overtake each other, packets are lost, and receives are seen late."""
    with SoftFabric() as fabric:
        for seed in range(3):
            fabric.perf("--op", "all_reduce", "--tags", "4", *SHORT, NCCL_IB_QPS_PER_CONNECTION="4", NCCL_IB_TIMEOUT="15",
                        NCCL_IB_SPLIT_DATA_ON_QPS=str(seed % 2), faults=f"seed={seed},drop=80,rnr=10,delay=2000@5")
        counted = fabric.counted()
        for what in ("dropped", "sent_again", "not_ready", "delayed"):
            check(counted[what] > 0, f"nothing was {what}: {counted}")


def killed(victim):
    with SoftFabric() as fabric:
        dead, survivor = streams(fabric, victim=victim)
        wait_until(lambda: done_count(dead) > 0 and done_count(survivor) > 0, 30, "first messages")
        dead.send(signal.SIGKILL)
        ends_with_error(survivor, TOLD_BOUND_S)
        said(fabric, r"(sending to|receiving from) 127\.0\.0\.1:\d+ over soft0 port 1 failed: .*its process ended without a word")


def sender_killed():
    killed("send")


def receiver_killed():
    killed("recv")


def killed_beside_its_child():
    """A data loader that outlives its rank keeps nothing that would hide the rank's death."""
    with SoftFabric() as fabric:
        receiver = fabric.peer("recv")
        sender = fabric.peer("fork-and-die")
        wait_until(lambda: "child " in sender.output() and "ready" in receiver.output(), 30, "the fork")
        child = int(re.search(r"child (\d+)", sender.output()).group(1))
        sender.send(signal.SIGKILL)
        try:
            ends_with_error(receiver, TOLD_BOUND_S)
            os.kill(child, 0)  # It is still alive.
        finally:
            os.kill(child, signal.SIGKILL)


def sender_exits():
    """The sender exits without closing anything, with messages in flight."""
    with SoftFabric() as fabric:
        receiver = fabric.peer("recv")
        sender = fabric.peer("send", "--exit-after", "500")
        check(sender.wait(30) == 0, "the sender did not just end")
        ends_with_error(receiver, TOLD_BOUND_S)


def loopback():
    """A device joined to itself, as NCCL does on hosts with one."""
    with SoftFabric() as fabric:
        peer = fabric.peer("loop", "--count", "50", "--size", "300000")
        check(peer.wait(60) == 0, f"the loop failed:\n{peer.output()}")
        fabric.counted()


def reload():
    """The library stays loaded when NCCL unloads the plugin, and is used again."""
    with SoftFabric() as fabric:
        peer = fabric.peer("reload", "--count", "20")
        check(peer.wait(60) == 0, f"the second load failed:\n{peer.output()}")
        check(peer.output().count("finished 20") == 2, peer.output())


def statuses():
    """Each error that a queue pair can end with is named in this end's log and reported to the
    peer."""
    for status, name in ((1, "LOC_LEN"), (4, "LOC_PROT"), (8, "LOC_ACCESS"), (9, "REM_INV_REQ"), (10, "REM_ACCESS"),
                         (11, "REM_OP"), (12, "RETRY_EXC"), (13, "RNR_RETRY_EXC"), (19, "FATAL"), (20, "RESP_TIMEOUT")):
        with SoftFabric() as fabric:
            broken, peer = streams(fabric, faults=f"fail={status}@500")
            ends_with_error(broken, 30)
            ends_with_error(peer, TOLD_BOUND_S)
            said(fabric, rf"sending to .* over soft0 port 1 failed: .*IBV_WC_{name}_ERR.*queue pair 0x\w+ to 0x\w+ of soft0")
            check(fabric.counted()["failed"] == 1, "another work request failed, too")


def port_down():
    """The device reports the port, and the peer does not answer any more."""
    with SoftFabric() as fabric:
        down, peer = streams(fabric, faults="down=500", NCCL_IB_TIMEOUT="14")
        ends_with_error(down, 30)
        ends_with_error(peer, TOLD_BOUND_S)
        said(fabric, r"IBV_WC_RETRY_EXC_ERR.*port 1 of soft0 is down")


def receivers_port_down():
    """A receiver has nothing in flight that could fail; its peer has, and notifies it."""
    with SoftFabric() as fabric:
        down, peer = streams(fabric, faults="down=500", victim="recv", NCCL_IB_TIMEOUT="14")
        ends_with_error(peer, 30)
        ends_with_error(down, TOLD_BOUND_S)
        said(fabric, r"port 1 of soft0 is down \(port error\)", r"sending to .*IBV_WC_RETRY_EXC_ERR")


def port_briefly_down():
    """Shorter than the queue pairs' retries: the job goes on, and the log reports the outage."""
    with SoftFabric() as fabric:
        fabric.perf("--op", "sendrecv", *SHORT, faults="down=20,up=300", NCCL_IB_TIMEOUT="16")
        said(fabric, r"WARN soft0: .*port 1", r"INFO soft0: .*port 1")
        check(fabric.counted()["sent_again"] > 0, "nothing was lost meanwhile")


def device_lost():
    with SoftFabric() as fabric:
        lost, peer = streams(fabric, faults="fatal=500")
        ends_with_error(lost, TOLD_BOUND_S)
        ends_with_error(peer, TOLD_BOUND_S)
        said(fabric, r"local catastrophic error")


def registration_refused():
    with SoftFabric() as fabric:
        broken, peer = streams(fabric, faults="refuse=12@4")
        ends_with_error(broken, 30)
        said(fabric, r"registering 65536 bytes of host memory .*raise ulimit -l")
        ends_with_error(peer, TOLD_BOUND_S)


def gpu_memory():
    """By DMA-BUF at an offset, with descriptors that are closed at once; visible only after the
    flush."""
    for sender_gpu, receiver_gpu in ((True, True), (True, False), (False, True)):
        with SoftFabric() as fabric:
            for peer in gpu_streams(fabric, sender_gpu, receiver_gpu, receivers="hold"):
                check(peer.wait(60) == 0, f"{peer.name} failed:\n{peer.output()}")
            counted = fabric.counted()
            check(counted["dmabuf_registrations"] == 8 * (sender_gpu + receiver_gpu), counted)
            check(counted["gpu_read_bytes"] >= 300 * 300000 * sender_gpu, counted)
            check(counted["gpu_written_bytes"] == 300 * 300000 * receiver_gpu, counted)
            check(counted["reads"] == 300 * receiver_gpu and (counted["held_writes"] > 0) == receiver_gpu, counted)


def gpu_memory_refused():
    """The driver supports DMA-BUF and refuses one; or does not support it, and the init line says
    so."""
    with SoftFabric() as fabric:
        receiver, sender = gpu_streams(fabric, receiver_gpu=False, senders="refuse=22@5")
        ends_with_error(sender, 30)
        said(fabric, r"registering 300000 bytes of GPU memory .* by DMA-BUF failed: .*\(Invalid argument\), at ibv_reg_dmabuf_mr;.*"
                     "NCCL_NET_GDR_LEVEL=LOC")
        ends_with_error(receiver, TOLD_BOUND_S)
    with SoftFabric() as fabric:
        receiver, sender = gpu_streams(fabric, receiver_gpu=False, senders="no-dmabuf")
        ends_with_error(sender, 30)
        said(fabric, r"GPUDirect RDMA (off: its driver registers no DMA-BUF|on \(nv)", r"ptrSupport lists the memory this device moves")
        ends_with_error(receiver, TOLD_BOUND_S)


def configured():
    """RDMA and TCP devices in one fabric, and a device that is gone: the others still serve."""
    with SoftFabric() as fabric:
        write_config(fabric, VERBS_NIC.format(name="rail0", device="soft0", more=""), SOCKET_NIC, VERBS_NIC.format(name="rail1", device="soft7", more=""))
        for device in ("0", "1"):
            rows_are_right(fabric.run_perf("--op", "all_reduce", "--device", device, *SHORT, env=by_config(fabric)))
        said(fabric, r"rail0: RDMA verbs, soft0 port 1.*chosen by .*ztcp\.conf", "lo0: kernel sockets",
             "rail1: .*refuses all connections: no RDMA device soft7 is here; this host has soft0")
        perf = fabric.start_perf("--op", "sendrecv", "--device", "2", env=by_config(fabric))
        check(perf.wait(60) != 0, "a device that is gone was used")
        said(fabric, "rail1: no connection over it: no RDMA device soft7 is here")


def mismatched():
    """NCCL pairs devices by their order: an RDMA and a TCP device don't match, and the line says
    so."""
    with SoftFabric() as fabric:
        write_config(fabric, VERBS_NIC.format(name="rail0", device="soft0", more=""), SOCKET_NIC)
        perf = fabric.start_perf("--op", "sendrecv", env=by_config(fabric))
        check(perf.wait(60) != 0, "they met")
        said(fabric, r"connecting from (rail0|lo0)(#\d)? failed: it carries \w+.*, the peer listens with \w+")


def host_without_rdma():
    """A host with kernel TCP only, beside one with RDMA only."""
    with SoftFabric() as fabric:
        write_config(fabric, VERBS_NIC.format(name="rail0", device="soft0", more=""))
        refused_at_both_ends(fabric, "rail0")


def no_device():
    """The library is there and lists no device."""
    with SoftFabric() as fabric:
        perf = fabric.start_perf("--op", "sendrecv", env=fabric.environment(SOFT_NIC_DEVICES="0"))
        check(perf.wait(60) != 0, "it ran without a device")
        said(fabric, r"this host has no RDMA device \(ibv_devices lists none\)")


if __name__ == "__main__":
    main({f.__name__: f for f in (operations, tags, queue_pairs, disordered, sender_killed, receiver_killed,
                                  killed_beside_its_child, sender_exits, loopback, reload, statuses,
                                  port_down, receivers_port_down, port_briefly_down, device_lost,
                                  registration_refused, gpu_memory, gpu_memory_refused, configured,
                                  mismatched, host_without_rdma, no_device)})
