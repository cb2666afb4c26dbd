# SPDX-License-Identifier: Apache-2.0
# Copyright the ztcp authors
"""RDMA between processes: libibverbs.so.1 has software NICs (tests/support/verbs/soft_nic)."""
import glob
import json
import os
import re
import sys
import time

from fabric import PLUGIN, Fabric, check, free_port
from transfer import rows_are_right

SOFT_NIC = os.environ["E2E_SOFT_NIC"]
PAPER_GPU = os.environ["E2E_PAPER_GPU"]
PEER = os.path.join(os.path.dirname(os.path.abspath(__file__)), "peer.py")
EXIT_PLUGIN_ERROR = 7
# With one element some ranks send nothing; the largest sizes do not fit an immediate.
SWEEP = ["--min", "4", "--max", "32M", "--factor", "9", "--iters", "2", "--warmup", "1", "--check"]
SHORT = ["--min", "8", "--max", "4M", "--factor", "16", "--iters", "3", "--warmup", "1", "--check"]
# The peer's own notice reports a death; half a second is for the NICs, the rest for a busy machine.
TOLD_BOUND_S = 5


class SoftFabric(Fabric):
    """A fabric with RDMA devices of the library instead of the NICs of ztcp.conf."""

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
        """The sums over all processes that ended by themselves."""
        out = {}
        for path in glob.glob(os.path.join(self.folder, "counted.*.json")):
            with open(path, encoding="utf-8") as file:
                for name, value in json.load(file).items():
                    if name != "misuse":  # Misuse fails the test at its end.
                        out[name] = out.get(name, 0) + value
        check(out, "no process counted anything: was the library of software NICs loaded?")
        return out


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
    check(took <= bound_s, f"{process.name} got the error after {took:.1f} s, not {bound_s}")
    print(f"{process.name} ended after {took:.2f} s")


def said(fabric, *wanted):
    log = fabric.log()
    for what in wanted:
        check(re.search(what, log), f"no line says '{what}'")


def gpu_streams(fabric, sender_gpu=True, receiver_gpu=True, senders="", receivers="", **more):
    """A receiver and a sender, with the faults of each."""
    arguments = ["--count", "300", "--size", "300000"]
    return [fabric.peer(role, *arguments, *(["--gpu"] if is_gpu else []), faults=faults, E2E_PAPER_GPU=PAPER_GPU, **more)
            for role, is_gpu, faults in (("recv", receiver_gpu, receivers), ("send", sender_gpu, senders))]


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


def write_config(fabric, *nics, path=None):
    """Returns the first port of each NIC."""
    ports = []
    with open(path or fabric.config, "w", encoding="utf-8") as file:
        file.write("schema = 1\n")
        for nic in nics:
            ports.append(free_port())
            file.write(f"{nic}first_port = {ports[-1]}\nlast_port = {last_port(ports[-1])}\n")
    return ports


def last_port(first):
    return min(first + 7, 65535)


def refused_at_both_ends(fabric, device, carries="RDMA verbs"):
    """The config has one host show `device`, of RDMA; the other host has kernel TCP only. Each host
    connects, as NCCL has it do, and each is refused at once, with the reason and the remedy."""
    sockets = os.path.join(fabric.folder, "sockets.conf")
    write_config(fabric, SOCKET_NIC, path=sockets)
    started = time.monotonic()
    for rank in fabric.start_ranks("--op", "sendrecv", configs={1: sockets}, env=by_config(fabric)):
        check(rank.wait(60) != 0, f"{rank.name} ended well")
    took = time.monotonic() - started
    check(took < 15, f"it took {took:.1f} s")
    for name, ours, theirs in ((device, carries, "kernel sockets"), ("lo0", "kernel sockets", "RDMA verbs or merged NICs")):
        said(fabric, f"connecting from {name}(#\\d)? failed: it carries {ours}, the peer listens with {theirs}, which no NIC of this host carries;"
                     r".* give both hosts' ztcp\.conf NICs of the same drivers in the same order")


def by_config(fabric, faults="", **more):
    return {**fabric.environment(faults, **more), "ZTCP_TRANSPORT": ""}
