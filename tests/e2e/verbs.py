#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
# Copyright the ztcp authors
"""The built plugin over RDMA between processes: libibverbs.so.1 is one of software NICs (tests/support/verbs/soft_nic)."""
import glob
import json
import os
import re
import signal
import sys
import time

from fabric import PLUGIN, Fabric, check, free_port, main, wait_until
from transfer import rows_are_right

SOFT_NIC = os.environ["E2E_SOFT_NIC"]
PAPER_GPU = os.environ["E2E_PAPER_GPU"]
PEER = os.path.join(os.path.dirname(os.path.abspath(__file__)), "peer.py")
EXIT_PLUGIN_ERROR = 7
# Of one element some ranks send nothing; the largest sizes find no room in an immediate.
SWEEP = ["--min", "4", "--max", "32M", "--factor", "9", "--iters", "2", "--warmup", "1", "--check"]
SHORT = ["--min", "8", "--max", "4M", "--factor", "16", "--iters", "3", "--warmup", "1", "--check"]
# The peer's own word tells of a death; half a second more for the NICs, the rest for a busy machine.
TOLD_BOUND_S = 5


class SoftFabric(Fabric):
    """No NIC of ztcp.conf, but RDMA devices that the library shows."""

    def __init__(self, ranks=2):
        super().__init__(ranks, topology="mesh")
        os.remove(self.config)

    def __exit__(self, kind, value, traceback):
        misused = [process.name for process in self.processes if "soft NIC: misused" in process.output()]
        super().__exit__(kind or (AssertionError if misused else None), value, traceback)
        check(kind or not misused, f"misused the verbs, as it says above: {misused}")

    def environment(self, faults="", **more):
        return {"LD_LIBRARY_PATH": os.path.dirname(SOFT_NIC), "SOFT_NIC_FOLDER": self.folder, "SOFT_NIC_FAULTS": faults,
                "ZTCP_TRANSPORT": "verbs", "NCCL_SOCKET_IFNAME": "lo", "ZTCP_CONFIG": self.config, **more}

    def perf(self, *arguments, faults="", timeout_s=200, **more):
        rows_are_right(self.run_perf(*arguments, timeout_s=timeout_s, env=self.environment(faults, **more)))

    def peer(self, role, *arguments, faults="", **more):
        return self.start(role, [sys.executable, PEER, role, self.folder, *arguments],
                          {"E2E_PLUGIN": PLUGIN, **self.environment(faults, **more)})

    def counted(self):
        """Of all processes that ended by themselves, added up."""
        out = {}
        for path in glob.glob(os.path.join(self.folder, "counted.*.json")):
            with open(path, encoding="utf-8") as file:
                for name, value in json.load(file).items():
                    if name != "misuse":  # Which fails the test at its end.
                        out[name] = out.get(name, 0) + value
        check(out, "no process counted anything: was the library of software NICs loaded?")
        return out


def operations():
    with SoftFabric(3) as fabric:
        for op in ("all_reduce", "all_to_all", "sendrecv"):
            fabric.perf("--op", op, *SWEEP)
        counted = fabric.counted()
        check(counted["messages"] > 0 and counted["failed"] == 0, counted)
        check("soft0: RDMA verbs, soft0 port 1, InfiniBand LID 1" in fabric.log(), "no init line")


def tags():
    """Groups of receives; and each rank has a device of its own."""
    with SoftFabric(3) as fabric:
        for op in ("all_reduce", "all_to_all"):
            fabric.perf("--op", op, "--tags", "8", *SHORT, SOFT_NIC_DEVICES="3")
        fabric.counted()
        said(fabric, "soft2: RDMA verbs, soft2 port 1")


def queue_pairs():
    with SoftFabric() as fabric:
        fabric.perf("--op", "all_reduce", *SWEEP, NCCL_IB_QPS_PER_CONNECTION="8")
        fabric.counted()


def disordered():
    """Queue pairs overtake each other, packets are lost, and receives are seen late."""
    with SoftFabric() as fabric:
        for seed in range(3):
            fabric.perf("--op", "all_reduce", "--tags", "4", *SHORT, NCCL_IB_QPS_PER_CONNECTION="4", NCCL_IB_TIMEOUT="15",
                        faults=f"seed={seed},drop=80,rnr=10,delay=2000@5")
        counted = fabric.counted()
        for what in ("dropped", "sent_again", "not_ready", "delayed"):
            check(counted[what] > 0, f"nothing was {what}: {counted}")


def streams(fabric, faults="", victim="send", **more):
    """A transfer between two peers; the faults are the victim's."""
    peers = [fabric.peer(role, faults=faults if role == victim else "", **more) for role in ("recv", "send")]
    return peers if victim == "recv" else peers[::-1]


def done_count(process):
    counts = re.findall(r"(?m)^done (\d+)$", process.output())
    return int(counts[-1]) if counts else 0


def ends_with_error(process, bound_s):
    started = time.monotonic()
    status = process.wait(60)
    took = time.monotonic() - started
    check(status == EXIT_PLUGIN_ERROR, f"{process.name} ended with {status}:\n{process.output()[-800:]}")
    check(took <= bound_s, f"{process.name} heard of it after {took:.1f} s, not {bound_s}")
    print(f"{process.name} ended after {took:.2f} s")


def said(fabric, *wanted):
    log = fabric.log()
    for what in wanted:
        check(re.search(what, log), f"no line says '{what}'")


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
    """A data loader that outlives its rank keeps nothing that would hide its death."""
    with SoftFabric() as fabric:
        receiver = fabric.peer("recv")
        sender = fabric.peer("fork-and-die")
        wait_until(lambda: "child " in sender.output() and "ready" in receiver.output(), 30, "the fork")
        child = int(re.search(r"child (\d+)", sender.output()).group(1))
        sender.send(signal.SIGKILL)
        try:
            ends_with_error(receiver, TOLD_BOUND_S)
            os.kill(child, 0)  # It does live on.
        finally:
            os.kill(child, signal.SIGKILL)


def sender_exits():
    """Without closing anything, with messages under way."""
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
    """The library stays when NCCL unloads the plugin, and serves it again."""
    with SoftFabric() as fabric:
        peer = fabric.peer("reload", "--count", "20")
        check(peer.wait(60) == 0, f"the second load failed:\n{peer.output()}")
        check(peer.output().count("finished 20") == 2, peer.output())


def statuses():
    """Each error that a queue pair can end with: told by name here, and to the peer."""
    for status, name in ((1, "LOC_LEN"), (4, "LOC_PROT"), (8, "LOC_ACCESS"), (9, "REM_INV_REQ"), (10, "REM_ACCESS"),
                         (11, "REM_OP"), (12, "RETRY_EXC"), (13, "RNR_RETRY_EXC"), (19, "FATAL"), (20, "RESP_TIMEOUT")):
        with SoftFabric() as fabric:
            broken, peer = streams(fabric, faults=f"fail={status}@500")
            ends_with_error(broken, 30)
            ends_with_error(peer, TOLD_BOUND_S)
            said(fabric, rf"sending to .* over soft0 port 1 failed: .*IBV_WC_{name}_ERR.*queue pair 0x\w+ to 0x\w+ of soft0")
            check(fabric.counted()["failed"] == 1, "another work request failed, too")


def port_down():
    """The device tells, and nothing is answered any more."""
    with SoftFabric() as fabric:
        down, peer = streams(fabric, faults="down=500", NCCL_IB_TIMEOUT="14")
        ends_with_error(down, 30)
        ends_with_error(peer, TOLD_BOUND_S)
        said(fabric, r"IBV_WC_RETRY_EXC_ERR.*port 1 of soft0 is down")


def receivers_port_down():
    """Who receives has nothing under way that could fail; its peer has, and tells it."""
    with SoftFabric() as fabric:
        down, peer = streams(fabric, faults="down=500", victim="recv", NCCL_IB_TIMEOUT="14")
        ends_with_error(peer, 30)
        ends_with_error(down, TOLD_BOUND_S)
        said(fabric, r"port 1 of soft0 is down \(port error\)", r"sending to .*IBV_WC_RETRY_EXC_ERR")


def port_briefly_down():
    """Shorter than queue pairs try again: the job goes on, and the log says what was."""
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


def gpu_streams(fabric, sender_gpu=True, receiver_gpu=True, senders="", receivers="", **more):
    """A receiver and a sender, with the faults of each."""
    arguments = ["--count", "300", "--size", "300000"]
    return [fabric.peer(role, *arguments, *(["--gpu"] if is_gpu else []), faults=faults, E2E_PAPER_GPU=PAPER_GPU, **more)
            for role, is_gpu, faults in (("recv", receiver_gpu, receivers), ("send", sender_gpu, senders))]


def gpu_memory():
    """By DMA-BUF, from its offset on, of descriptors that are closed at once; seen after the flush alone."""
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
    """Its driver knows DMA-BUFs and refuses one; or knows none, and the init line says so."""
    with SoftFabric() as fabric:
        receiver, sender = gpu_streams(fabric, receiver_gpu=False, senders="refuse=22@5")
        ends_with_error(sender, 30)
        said(fabric, r"registering 300000 bytes of GPU memory .* by DMA-BUF failed: .*\(Invalid argument\), at ibv_reg_dmabuf_mr;.*"
                     "NCCL_NET_GDR_LEVEL=LOC")
        ends_with_error(receiver, TOLD_BOUND_S)
    with SoftFabric() as fabric:
        receiver, sender = gpu_streams(fabric, receiver_gpu=False, senders="no-dmabuf")
        ends_with_error(sender, 30)
        said(fabric, r"GPUDirect RDMA (off: its driver registers no DMA-BUF|on \(nv)", r"ptrSupport says what this device moves")
        ends_with_error(receiver, TOLD_BOUND_S)


VERBS_NIC = """[[nic]]
name = "{name}"
driver = "verbs"
device = "{device}"
address = "127.0.0.1/8"
{more}"""
SOCKET_NIC = """[[nic]]
name = "lo0"
driver = "socket"
interface = "lo"
address = "127.0.0.1/8"
"""


def write_config(fabric, *nics):
    """Returns the first of the ports of each."""
    ports = []
    with open(fabric.config, "w", encoding="utf-8") as file:
        file.write("schema = 1\n")
        for nic in nics:
            ports.append(free_port())
            file.write(f"{nic}first_port = {ports[-1]}\nlast_port = {last_port(ports[-1])}\n")
    return ports


def last_port(first):
    return min(first + 7, 65535)


def by_config(fabric, faults="", **more):
    return {**fabric.environment(faults, **more), "ZTCP_TRANSPORT": ""}


def configured():
    """RDMA and TCP devices in one fabric, and a device that is gone: the others serve all the same."""
    with SoftFabric() as fabric:
        write_config(fabric, VERBS_NIC.format(name="rail0", device="soft0", more=""), SOCKET_NIC, VERBS_NIC.format(name="rail1", device="soft7", more=""))
        for device in ("0", "1"):
            rows_are_right(fabric.run_perf("--op", "all_reduce", "--device", device, *SHORT, env=by_config(fabric)))
        said(fabric, r"rail0: RDMA verbs, soft0 port 1.*chosen by .*ztcp\.conf", "lo0: kernel sockets",
             "rail1: .*refuses all connections: no RDMA device soft7 is here; this host has soft0")
        perf = fabric.start_perf("--op", "sendrecv", "--device", "2", env=by_config(fabric))
        check(perf.wait(60) != 0, "a device that is gone was used")
        said(fabric, "rail1: no connection over it: no RDMA device soft7 is here")


def merge_two(fabric):
    write_config(fabric, *(VERBS_NIC.format(name=f"rail{i}", device=f"soft{i}", more='merge = "ib0"\n') for i in range(2)))


def both_carried(fabric):
    counted = fabric.counted()
    check(all(counted[f"sent_bytes_of_soft{i}"] > counted["sent_bytes"] / 4 for i in range(2)), f"one carried little: {counted}")


def merged():
    """One device of two NICs; and everything in disorder."""
    with SoftFabric() as fabric:
        merge_two(fabric)
        for faults in ("", "drop=80,rnr=10,delay=2000@5"):
            rows_are_right(fabric.run_perf("--op", "all_reduce", "--tags", "2", *SHORT,
                                           env=by_config(fabric, faults, SOFT_NIC_DEVICES="2", NCCL_IB_TIMEOUT="15")))
        both_carried(fabric)


def merged_gpu_memory():
    """What each NIC wrote shows after a read of that one alone."""
    with SoftFabric() as fabric:
        merge_two(fabric)
        for peer in gpu_streams(fabric, receivers="hold", ZTCP_TRANSPORT="", SOFT_NIC_DEVICES="2"):
            check(peer.wait(60) == 0, f"{peer.name} failed:\n{peer.output()}")
        both_carried(fabric)


def merged_peers(fabric, faults, victim, *arguments):
    """A receiver and a sender over two NICs, of which one of the victim's fails. The time that queue pairs try again is the usual one:
    what a busy machine does to a peer's threads is no failure of the other NIC."""
    merge_two(fabric)
    return [fabric.peer(role, "--size", "300000", *arguments, faults=faults if role == victim else "", ZTCP_TRANSPORT="",
                        SOFT_NIC_DEVICES="2") for role in ("recv", "send")]


def rail_comes_back(victim):
    """A port goes down in mid-transfer and up again: the other NIC carries on, then both; however fast the machine is."""
    with SoftFabric() as fabric:
        peers = merged_peers(fabric, "down=300,up=100", victim)
        wait_until(lambda: "is back" in fabric.log() or not all(peer.running() for peer in peers), 40, "the rail being back")
        before = done_count(peers[0])
        wait_until(lambda: done_count(peers[0]) > before + 100 or not all(peer.running() for peer in peers), 30, "more messages")
        check(all(peer.running() for peer in peers), "a peer ended")
        said(fabric, r"ib0: the rail over soft\d port 1 has failed to .*: its port is down; messages go over the other 1 meanwhile",
             r"ib0: the rail over soft\d port 1 has failed to .*: the peer says so", r"ib0: the rail over soft\d port 1 to .* is back")


def rail_back():
    rail_comes_back("send")


def receivers_rail_back():
    """The receiver asks for the rail once its port is up, and the sender offers it."""
    rail_comes_back("recv")


def rail_lost():
    """A device dies, or a message fails: the rest goes over the other."""
    for faults, victim in (("fatal=300", "send"), ("fatal=300", "recv"), ("fail=12@300", "send")):
        with SoftFabric() as fabric:
            for peer in merged_peers(fabric, faults, victim, "--count", "1500"):
                check(peer.wait(90) == 0, f"{peer.name} failed:\n{peer.output()}")
            fabric.counted()
            said(fabric, r"ib0: the rail over soft\d port 1 has failed")


def merge_tcp(fabric):
    """An RDMA device and the kernel's TCP. Returns the first port of the latter."""
    return write_config(fabric, VERBS_NIC.format(name="rail0", device="soft0", more='merge = "ib0"\nspeed_mbps = 10000\n'),
                        SOCKET_NIC + 'merge = "ib0"\nspeed_mbps = 40000\n')[1]


def bytes_by_tcp(fabric, sent_bytes):
    """What the software NICs did not carry of what was sent."""
    counted = fabric.counted()
    check(counted["sent_bytes"] > 0, f"RDMA carried nothing: {counted}")
    return sent_bytes - counted["sent_bytes"]


def tcp_merged():
    """One device of RDMA and TCP: every size, groups, and in disorder."""
    with SoftFabric() as fabric:
        merge_tcp(fabric)
        rows_are_right(fabric.run_perf("--op", "all_reduce", *SWEEP, env=by_config(fabric)))
        rows_are_right(fabric.run_perf("--op", "all_to_all", "--tags", "4", *SHORT,
                                       env=by_config(fabric, "drop=80,rnr=10,delay=2000@5", NCCL_IB_TIMEOUT="15")))
        said(fabric, r"ib0: RDMA verbs and TCP over 2 rails that .*ztcp\.conf merges: soft0 port 1, .*; TCP, of host memory alone, on lo 127")
    with SoftFabric() as fabric:
        merge_tcp(fabric)
        for peer in [fabric.peer(role, "--size", "4000000", "--count", "200", ZTCP_TRANSPORT="") for role in ("recv", "send")]:
            check(peer.wait(90) == 0, f"{peer.name} failed:\n{peer.output()}")
        by_tcp = bytes_by_tcp(fabric, 200 * 4000000)
        check(by_tcp > 10 * 4000000, f"TCP carried {by_tcp} bytes")


def tcp_merged_gpu_memory():
    """None of it goes over TCP."""
    with SoftFabric() as fabric:
        merge_tcp(fabric)
        for peer in gpu_streams(fabric, receivers="hold", ZTCP_TRANSPORT=""):
            check(peer.wait(60) == 0, f"{peer.name} failed:\n{peer.output()}")
        check(fabric.counted()["gpu_written_bytes"] == 300 * 300000, f"not all of it: {fabric.counted()}")


def tcp_rail_cut():
    """The stream is cut twice, at either end, and dialled again."""
    for victim in ("send", "recv"):
        with SoftFabric() as fabric:
            first = merge_tcp(fabric)
            cut = ["--cut-watches-after", "50", "--cut-ports", str(first), str(last_port(first))]
            peers = [fabric.peer(role, "--size", "1000000", *(cut if role == victim else []), ZTCP_TRANSPORT="") for role in ("recv", "send")]
            wait_until(lambda: "is back" in fabric.log() or not all(peer.running() for peer in peers), 40, "the rail being back")
            before = done_count(peers[0])
            wait_until(lambda: done_count(peers[0]) > before + 50 or not all(peer.running() for peer in peers), 30, "more messages")
            check(all(peer.running() for peer in peers), "a peer ended")
            said(fabric, r"ib0: the rail over TCP on lo has failed to .*; messages go over the other 1 meanwhile", r"ib0: the rail over TCP on lo to .* is back")


def tcp_carries_on():
    """The RDMA NIC's port goes down, and up again: TCP carries on, then both. GPU memory has nothing else."""
    with SoftFabric() as fabric:
        merge_tcp(fabric)
        peers = [fabric.peer(role, "--size", "300000", faults="down=300,up=100" if role == "send" else "", ZTCP_TRANSPORT="")
                 for role in ("recv", "send")]
        wait_until(lambda: "is back" in fabric.log() or not all(peer.running() for peer in peers), 40, "the rail being back")
        before = done_count(peers[0])
        wait_until(lambda: done_count(peers[0]) > before + 100 or not all(peer.running() for peer in peers), 30, "more messages")
        check(all(peer.running() for peer in peers), "a peer ended")
        said(fabric, r"ib0: the rail over soft0 port 1 has failed to .*: its port is down; messages go over the other 1 meanwhile",
             r"ib0: the rail over soft0 port 1 to .* is back")
    with SoftFabric() as fabric:
        merge_tcp(fabric)
        receiver, sender = gpu_streams(fabric, senders="down=300", ZTCP_TRANSPORT="")
        ends_with_error(sender, 30)
        ends_with_error(receiver, TOLD_BOUND_S)
        said(fabric, r"sending to .* failed: .*GPU memory with no RDMA rail left: TCP carries host memory alone.*NCCL_NET_GDR_LEVEL=LOC")


def without_rdma():
    """The RDMA device of one host is gone: its connections go over TCP, and a line says so."""
    with SoftFabric() as fabric:
        merge_tcp(fabric)
        receiver = fabric.peer("recv", "--size", "300000", "--count", "300", ZTCP_TRANSPORT="")
        sender = fabric.peer("send", "--size", "300000", "--count", "300", ZTCP_TRANSPORT="", NCCL_IB_DISABLE="1")
        for peer in (receiver, sender):
            check(peer.wait(60) == 0, f"{peer.name} failed:\n{peer.output()}")
        said(fabric, r"ib0: goes without rail0, over the rest of its rails alone: NCCL_IB_DISABLE=1 forbids")


def mismatched():
    """NCCL pairs devices by their order: one of RDMA and one of TCP don't meet, and the line says so."""
    with SoftFabric() as fabric:
        write_config(fabric, VERBS_NIC.format(name="rail0", device="soft0", more=""), SOCKET_NIC)
        perf = fabric.start_perf("--op", "sendrecv", env=by_config(fabric))
        check(perf.wait(60) != 0, "they met")
        said(fabric, r"connecting from (rail0|lo0) failed: it carries \w+.*, the peer listens with \w+")


def no_device():
    """The library is there, and shows none."""
    with SoftFabric() as fabric:
        perf = fabric.start_perf("--op", "sendrecv", env=fabric.environment(SOFT_NIC_DEVICES="0"))
        check(perf.wait(60) != 0, "it ran all the same")
        said(fabric, r"this host has no RDMA device \(ibv_devices lists none\)")


if __name__ == "__main__":
    main({f.__name__: f for f in (operations, tags, queue_pairs, disordered, sender_killed, receiver_killed,
                                  killed_beside_its_child, sender_exits, loopback, reload, statuses, port_down,
                                  receivers_port_down, port_briefly_down, device_lost, registration_refused, gpu_memory,
                                  gpu_memory_refused, configured, merged, merged_gpu_memory, rail_back, receivers_rail_back,
                                  rail_lost, tcp_merged, tcp_merged_gpu_memory, tcp_rail_cut, tcp_carries_on, without_rdma,
                                  mismatched, no_device)})
