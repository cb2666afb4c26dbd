#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
# Copyright the ztcp authors
"""ztcp_perf check-job with the built plugin, started as launchers start it."""
import json
import os
import re
import signal
import time

from fabric import PERF, PLUGIN, Fabric, check, free_port, main
from namespaces import Hosts, enter, ip

QUICK = ["--seconds", "0.5"]
SOCKETS = {"ZTCP_TRANSPORT": "sockets", "NCCL_SOCKET_IFNAME": "lo"}
MINE = {"NCCL_NET_PLUGIN": PLUGIN}
STOPPED = 3  # Exit status of a rank that another one stopped.
LAUNCHERS = ("RANK", "WORLD_SIZE", "LOCAL_RANK", "MASTER_", "OMPI_", "PMI_", "SLURM_", "TORCHELASTIC_", "NCCL_", "ZTCP_")


def torchrun(rank, ranks, port):
    return {"RANK": str(rank), "WORLD_SIZE": str(ranks), "LOCAL_RANK": str(rank), "LOCAL_WORLD_SIZE": str(ranks),
            "MASTER_ADDR": "127.0.0.1", "MASTER_PORT": str(port)}


def mpirun(rank, ranks, port):
    return {"OMPI_COMM_WORLD_RANK": str(rank), "OMPI_COMM_WORLD_SIZE": str(ranks),
            "OMPI_COMM_WORLD_LOCAL_RANK": str(rank), "OMPI_COMM_WORLD_LOCAL_SIZE": str(ranks), "MASTER_PORT": str(port)}


def srun(rank, ranks, port):
    return {"SLURM_PROCID": str(rank), "SLURM_NTASKS": str(ranks), "SLURM_LOCALID": str(rank),
            "SLURM_STEP_NODELIST": "localhost", "MASTER_PORT": str(port)}


class Job(Fabric):
    """Ranks on loopback, each with the variables of a launcher."""

    def __init__(self, launcher=torchrun, ranks=2):
        super().__init__(2, topology="mesh")
        os.remove(self.config)
        self.launcher, self.ranks, self.port = launcher, ranks, free_port()

    def begin(self, *arguments, skip=(), each=lambda rank: {}):
        return [self.start(f"rank{rank}", [PERF, "check-job", "--size", "256K", *(arguments or QUICK)],
                           {**self.launcher(rank, self.ranks, self.port), **SOCKETS, **MINE, **each(rank)})
                for rank in range(self.ranks) if rank not in skip]

    def run(self, *arguments, status=0, **options):
        started = self.begin(*arguments, **options)
        for one in started:
            ended = one.wait(60)
            check(ended == status, f"{one.name} ended with {ended}:\n{one.output()}")
        return started


def is_healthy(output, ranks):
    lines = output.splitlines()
    check(len(lines) <= 10, f"more than ten lines:\n{output}")
    check(f"{ranks} ranks on" in lines[0], lines[0])
    check(f"NCCL will use {PLUGIN}, ncclNetPlugin_v" in output, output)
    check(re.search(r"ztcp +[0-9.]+ GB/s", output) and re.search(r"plain sockets +[0-9.]+ GB/s", output), output)
    check(lines[-1].startswith("verdict: "), lines[-1])


def launchers():
    for launcher in (torchrun, mpirun, srun):
        with Job(launcher, 3) as job:
            first, *others = job.run()
            is_healthy(first.output(), 3)
            check("(ranks 0-2): kernel sockets on lo: ZTCP_TRANSPORT=sockets; NCCL_SOCKET_IFNAME=lo" in first.output(),
                  first.output())
            check(all(one.output() == "" for one in others), "a rank other than 0 wrote something")


def torchrun_with_its_store():
    """torchrun listens at MASTER_PORT itself."""
    with Job() as job:
        is_healthy(job.run(each=lambda rank: {"TORCHELASTIC_USE_AGENT_STORE": "True"})[0].output(), 2)


def without_a_launcher():
    with Job(launcher=lambda *_: {}, ranks=1) as job:
        is_healthy(job.run()[0].output(), 2)


def document():
    with Job() as job:
        path = os.path.join(job.folder, "report.json")
        job.run("--json", path)
        with open(path, encoding="utf-8") as file:
            report = json.load(file)
        check(report["good"] and report["verdict"], report)
        check([rank["transport"] for rank in report["ranks"]] == ["kernel sockets"] * 2, report["ranks"])
        check(report["ring"]["ratio"] > 0 and len(report["ring"]["ztcp_busbw_gb_per_s"]["turns"]) == 5, report["ring"])


def missing_rank():
    with Job(ranks=3) as job:
        began = time.monotonic()
        first, other = job.begin("--connect-timeout", "3", skip=(1,))
        check(first.wait(60) == 1, first.output())
        check(other.wait(60) == STOPPED, other.output())
        check(time.monotonic() - began < 20, "the wait had no bound")
        for rank in (first, other):
            check("missing: rank 1" in rank.output(), rank.output())


def variable_not_passed_on():
    """mpirun passes on only the variables that -x names."""
    with Job() as job:
        output = job.run(status=1, each=lambda rank: {} if rank == 0 else {"NCCL_NET_PLUGIN": "", "LD_LIBRARY_PATH": ""})[0].output()
        check("(rank 1) will not use ztcp: NCCL_NET_PLUGIN is not set and the library path has no libnccl-net.so; "
              "set NCCL_NET_PLUGIN" in output, output)
        check("rank 0: NCCL_NET_PLUGIN=" in output and "rank 1: NCCL_NET_PLUGIN not set" in output, output)


def other_network():
    with Job() as job:
        output = job.run(status=1, each=lambda rank: {"NCCL_NET": "Socket"})[0].output()
        check("will not use ztcp: NCCL_NET=Socket chooses another network; unset NCCL_NET" in output, output)


def no_transport():
    with Job() as job:
        output = job.run(status=1, each=lambda rank: {"ZTCP_TRANSPORT": "", "ZTCP_CONFIG": "/nonexistent.conf"})[0].output()
        check("verdict: NCCL of" in output and "no fabric config at /nonexistent.conf" in output, output)


def interrupted():
    with Job(launcher=lambda *_: {}, ranks=1) as job:
        one, = job.begin("--seconds", "600")
        deadline = time.monotonic() + 30
        while "NCCL will use" not in one.output() and time.monotonic() < deadline:
            time.sleep(0.05)
        one.send(signal.SIGINT)
        check(one.wait(15) == 130, one.output())
        left = [pid for pid in os.listdir("/proc") if pid.isdigit() and is_of(pid, job.folder)]
        check(not left, f"processes are left: {left}")


def is_of(pid, folder):
    try:
        with open(f"/proc/{pid}/environ", encoding="utf-8", errors="replace") as file:
            return f"ZTCP_LOG={folder}/" in file.read()
    except OSError:
        return False


def in_namespaces(hosts, *arguments, status=0):
    port = free_port()
    ranks = [hosts.start(f"rank{rank}", [PERF, "check-job", "--ranks", "2", "--rank", str(rank), "--rendezvous",
                                         f"10.67.0.1:{port}", "--size", "256K", *QUICK, *arguments],
                         {**MINE, "ZTCP_LOCAL_RANK": str(rank), "NCCL_SOCKET_IFNAME": "boot"})
             for rank in range(2)]
    for rank in ranks:
        ended = rank.wait(60)
        check(ended == status, f"{rank.name} ended with {ended}:\n{rank.output()}")
    return ranks[0].output()


def two_hosts():
    with Hosts() as hosts:
        output = in_namespaces(hosts)
        is_healthy(output, 2)
        check("2 ranks on 2 hosts" in output and "between ranks of one host" not in output, output)
        check("boot, by NCCL_SOCKET_IFNAME=boot" in output, output)
        check("kernel sockets on ztcp0" in output, output)


def mixed_transports():
    with Hosts(bypassing=(1,)) as hosts:
        output = in_namespaces(hosts)
        is_healthy(output, 2)
        check(re.search(r"\(rank 0\): kernel sockets on ztcp0: .*host0\.conf", output), output)
        check(re.search(r"\(rank 1\): userspace TCP on ztcp0: .*host1\.conf", output), output)


def cut_network():
    """The reason that the plugin logs is part of the failure."""
    with Hosts() as hosts:
        hosts.on(1, "ip", "link", "set", "data", "down")
        output = in_namespaces(hosts, "--connect-timeout", "8", status=1)
        check("rank 0" in output, output)


if __name__ == "__main__":
    for name in list(os.environ):
        if name.startswith(LAUNCHERS):
            del os.environ[name]
    enter()
    ip("link", "set", "lo", "up")
    main({f.__name__: f for f in (launchers, torchrun_with_its_store, without_a_launcher, document, missing_rank,
                                  variable_not_passed_on, other_network, no_transport, interrupted, two_hosts,
                                  mixed_transports, cut_network)})
