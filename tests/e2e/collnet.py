#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
# Copyright the ztcp authors
"""The three operations of the built plugin's CollNet, each rank as a host, every element compared."""
import os
import signal
import time

from fabric import Fabric, check, free_port, main, wait_until
from many_cpus import need_no_limit
from soft_fabric import SoftFabric
from sockets import write_config
from transfer import SWEEP, rows_are_right

ON = {"ZTCP_COLLNET": "1"}
BF16 = {**ON, "ZTCP_COLLNET_WIRE": "bf16"}
FP8 = {**ON, "ZTCP_COLLNET_WIRE": "fp8"}
SOCKETS = {"ZTCP_TRANSPORT": "sockets", "NCCL_SOCKET_IFNAME": "lo"}
COLLNET = ("--op", "collnet", *SWEEP)
# Its two halves.
WINDOWED = ("collnet_all_gather", "collnet_reduce_scatter")


def kernel_sockets():
    with Fabric(4, topology="mesh") as fabric:
        rows_are_right(fabric.run_perf(*COLLNET, env=SOCKETS | ON, timeout_s=240))
        check("CollNet is on" in fabric.log() and "no sum is rounded" in fabric.log(), "the init log does not say it")
        check("the tuner offers CollNet for no size: over kernel sockets" in fabric.log(), fabric.log())


def userspace_tcp():
    with Fabric(3, topology="mesh") as fabric:
        rows_are_right(fabric.run_perf(*COLLNET, env=ON, timeout_s=240))


def rounded():
    """With the values of ztcp_perf contributions are exact as bf16; only the sum of three is rounded."""
    with Fabric(3, topology="mesh") as fabric:
        rows_are_right(fabric.run_perf(*COLLNET, "--tolerance", "0.004", env=SOCKETS | BF16, timeout_s=240))
        check("travel as bf16 and are rounded" in fabric.log(), "the init log does not say it")
    with Fabric(2, topology="mesh") as fabric:
        rows_are_right(fabric.run_perf(*COLLNET, env=BF16))


def speeds():
    """The tuner offers CollNet by the speed of the NICs. So hosts whose sizes differ refuse each other."""
    with Fabric(2, topology="mesh") as fabric:
        first = free_port()
        write_config(fabric, "127.0.0.1/8", first, min(first + 15, 65535), "speed_mbps = 25000\nnccl_devices = 1\n")
        other = fabric.copy_config("other.conf")

        def ranks(mbps):
            fabric.set("speed_mbps", mbps, other)
            return fabric.start_ranks(*COLLNET, configs={1: other}, env=BF16, prefix=f"at{mbps}-")

        for rank in ranks(10000):
            check(rank.wait(120) == 0, f"{rank.name} failed")
        said = "the tuner offers CollNet for all-reduces of 64 KiB to 128 KiB, 1 MiB and more between 2 hosts"
        for mbps in (10000, 25000):
            check(f"{said} with a rank each: NICs of {mbps} Mb/s together" in fabric.log(), fabric.log())

        for rank in ranks(100000):
            check(rank.wait(60) != 0, f"{rank.name} reduces with a host that has other sizes")
        log = fabric.log()
        check("64 KiB to 128 KiB between 2 hosts with a rank each: NICs of 100000 Mb/s" in log, log)
        check(any(f"have {theirs} Mb/s together, this host's {ours}, and by that the tuner offers CollNet for different sizes" in log
                  for ours, theirs in ((25000, 100000), (100000, 25000))), log)


def rounded_in_blocks():
    with Fabric(3, topology="mesh") as fabric:
        rows_are_right(fabric.run_perf(*COLLNET, "--tolerance", "0.13", env=SOCKETS | FP8, timeout_s=240))
        check("travel as fp8 and are rounded" in fabric.log(), "the init log does not say it")
    with Fabric(2, topology="mesh") as fabric:
        rows_are_right(fabric.run_perf(*COLLNET, "--tolerance", "0.0625", env=FP8))
        rows_are_right(fabric.run_perf("--op", "collnet_reduce_scatter", *SWEEP, "--tolerance", "0.0625", env=FP8))
        # They are rounded indeed.
        perf = fabric.start_perf(*COLLNET, env=FP8)
        check(perf.wait(240) != 0, "sums as fp8 are exact")


def windows():
    for ranks in (2, 4):
        with Fabric(ranks, topology="mesh") as fabric:
            for op in WINDOWED:
                rows_are_right(fabric.run_perf("--op", op, *SWEEP, env=SOCKETS | ON, timeout_s=240))
                rows_are_right(fabric.run_perf("--op", op, *SWEEP, env=ON, timeout_s=240))


def windows_rounded():
    """No sum is rounded, and contributions are exact as bf16."""
    with Fabric(3, topology="mesh") as fabric:
        for op in WINDOWED:
            rows_are_right(fabric.run_perf("--op", op, *SWEEP, env=SOCKETS | BF16, timeout_s=240))


def windows_older_tables():
    with Fabric(2, topology="mesh") as fabric:
        for op in WINDOWED:
            for abi in ("8", "10", "11"):
                rows_are_right(fabric.run_perf("--op", op, *SWEEP, "--abi", abi, env=ON))
            perf = fabric.start_perf("--op", op, *SWEEP, "--abi", "7", env=ON)
            check(perf.wait(60) != 0, "v7 has it")
            check("give --abi 8 or more" in perf.output(), perf.output())


def workers():
    """The processes see 16 CPUs."""
    need_no_limit()
    with Fabric(2, topology="mesh") as fabric:
        for wire in (ON, BF16):
            rows_are_right(fabric.run_perf(*COLLNET, env=SOCKETS | wire | {"LD_PRELOAD": os.environ["E2E_MANY_CPUS"]},
                                           timeout_s=240))
            for op in WINDOWED:
                rows_are_right(fabric.run_perf("--op", op, *SWEEP, timeout_s=240,
                                               env=SOCKETS | wire | {"LD_PRELOAD": os.environ["E2E_MANY_CPUS"]}))
        check("workers for the sums of a group: 3" in fabric.log(), fabric.log())


def older_tables():
    with Fabric(2, topology="mesh") as fabric:
        for abi in ("6", "8", "10", "11"):
            rows_are_right(fabric.run_perf(*COLLNET, "--abi", abi, env=ON))


def configured():
    with Fabric(2, topology="mesh") as fabric:
        fabric.set("enabled", "true")
        fabric.set("wire", '"bf16"')
        rows_are_right(fabric.run_perf(*COLLNET))
        check("travel as bf16 and are rounded" in fabric.log(), "the init log does not say it")


def switched_off():
    with Fabric(2, topology="mesh") as fabric:
        perf = fabric.start_perf(*COLLNET)
        check(perf.wait(60) != 0, "it ran without being switched on")
        check("the plugin offers no CollNet" in perf.output(), perf.output())
        check("CollNet" not in fabric.log(), "the log has CollNet")


def misspelt():
    with Fabric(2, topology="mesh") as fabric:
        perf = fabric.start_perf(*COLLNET, env={"ZTCP_COLLNET": "yes"})
        check(perf.wait(60) != 0, "it ran with an unknown value")
        check("ZTCP_COLLNET=yes is neither on (1) nor off (0)" in fabric.log(), fabric.log())


def verbs():
    with SoftFabric(3) as fabric:
        for op in ("collnet", *WINDOWED):
            fabric.perf("--op", op, *SWEEP, **ON)


def rank_killed(op="collnet"):
    """The other ranks get an error, in time, though no rank tells them."""
    with Fabric(3, topology="mesh") as fabric:
        ranks = fabric.start_ranks("--op", op, "--min", "8M", "--max", "8M", "--iters", "1000000", "--warmup", "1",
                                   "--json", os.path.join(fabric.folder, "report.json"), env=ON)
        wait_until(lambda: fabric.log().count(": a mesh of 2") == 3, 30, "the ranks' start")
        # So that the vectors are on their way. Before the rank is connected, on a slow machine, the
        # others end by the connect timeout, 20 s.
        time.sleep(2)
        ranks[1].send(signal.SIGKILL)
        for rank in (ranks[0], ranks[2]):
            check(rank.wait(45) != 0, f"{rank.name} ended well")


def windows_rank_killed():
    for op in WINDOWED:
        rank_killed(op)


if __name__ == "__main__":
    main({f.__name__: f for f in (kernel_sockets, userspace_tcp, rounded, rounded_in_blocks, speeds, windows, windows_rounded, windows_older_tables,
                                  workers, older_tables, configured, switched_off, misspelt, verbs, rank_killed, windows_rank_killed)})
