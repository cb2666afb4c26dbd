#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
# Copyright the ztcp authors
"""Data through the built plugin, every byte compared."""
import json
import os
import signal

from fabric import Fabric, check, main

SWEEP = ["--min", "8", "--max", "4M", "--factor", "16", "--iters", "3", "--warmup", "1", "--check"]


def rows_are_right(report):
    rows = report["results"]
    check(rows, "the report has no rows")
    for row in rows:
        check(row["wrong"] == 0, f"wrong elements: {row}")


def pair():
    with Fabric(2, topology="mesh") as fabric:
        rows_are_right(fabric.run_perf("--op", "all_reduce", *SWEEP))


def pair_small_mtu():
    with Fabric(2, topology="mesh", mtu=1500) as fabric:
        rows_are_right(fabric.run_perf("--op", "sendrecv", *SWEEP))


def pair_large_mtu():
    with Fabric(2, topology="mesh", mtu=65000) as fabric:
        rows_are_right(fabric.run_perf("--op", "sendrecv", *SWEEP))


def dedicated():
    with Fabric(2, topology="mesh", settings={"mode": '"dedicated"'}) as fabric:
        rows_are_right(fabric.run_perf("--op", "all_reduce", *SWEEP))


def mesh():
    with Fabric(4, topology="mesh") as fabric:
        for op in ("all_reduce", "all_to_all"):
            rows_are_right(fabric.run_perf("--op", op, *SWEEP, timeout_s=240))


# As NCCL shares connections: several tags on each, groups of receives.
def tags():
    with Fabric(3, topology="mesh") as fabric:
        for op in ("all_reduce", "all_to_all"):
            rows_are_right(fabric.run_perf("--op", op, "--tags", "8", *SWEEP, timeout_s=240))


def mesh_with_queues():
    with Fabric(3, topology="mesh", arguments=["--queues", "3"]) as fabric:
        for op in ("all_reduce", "all_to_all"):
            rows_are_right(fabric.run_perf("--op", op, *SWEEP, timeout_s=240))
        check("exposed to NCCL as 4 devices" in fabric.log(), "each NIC is one device")


def pair_with_queues():
    with Fabric(2, topology="mesh", arguments=["--queues", "4"]) as fabric:
        rows_are_right(fabric.run_perf("--op", "sendrecv", *SWEEP, env={"ZTCP_TUNER": "off"}))
        check("ZTCP_TUNER=off: NCCL chooses its channels" in fabric.log(), "the log does not name NCCL as chooser")
        check("exposed to NCCL as" not in fabric.log(), "a NIC is several devices without the tuner")
        rows_are_right(fabric.run_perf("--op", "sendrecv", *SWEEP))
        check("exposed to NCCL as 8 devices" in fabric.log(), "each NIC is one device")


def through_switch(loss_percent, *arguments):
    with Fabric(4) as fabric:
        fabric.start_switch(*(["--loss", str(loss_percent / 100), "--seed", "7"]
                              if loss_percent else []))
        rows_are_right(fabric.run_perf(*arguments, timeout_s=240))


def switch_loss_0():
    through_switch(0, "--op", "all_reduce", *SWEEP)


def switch_loss_0_1():
    through_switch(0.1, "--op", "all_reduce", *SWEEP)


def switch_loss_1():
    through_switch(1, "--op", "all_reduce", *SWEEP)


def switch_loss_5():
    through_switch(5, "--op", "all_reduce", "--min", "8", "--max", "1M", "--factor", "32",
                   "--iters", "2", "--warmup", "1", "--check")


def marked(control):
    """Slow ports that mark packets early: the switch marks them, and the ranks slow down before its queue is full."""
    with Fabric(4, settings={"congestion_control": f'"{control}"'}) as fabric:
        report = os.path.join(fabric.folder, "switch.json")
        switch = fabric.start_switch("--rate", "1Gbit", "--ecn-mark", "64K", "--queue", "1M", "--json", report)
        rows_are_right(fabric.run_perf("--op", "all_to_all", "--min", "4M", "--max", "4M", "--iters", "10",
                                       "--warmup", "1", "--check", timeout_s=240))
        switch.send(signal.SIGTERM)
        switch.wait(10)
        with open(report, encoding="utf-8") as file:
            ports = json.load(file)["ports"]
        check(sum(port["impaired_ecn"] for port in ports) > 0, f"no packet was marked: {ports}")
        dropped = sum(port["drop_queue_full"] for port in ports)
        frames = sum(port["tx_frames"] for port in ports)
        print(f"{control}: {dropped} of {frames} frames dropped")
        check(dropped * 100 < frames, f"{dropped} of {frames} frames dropped")


def switch_marks_cubic():
    marked("cubic")


def switch_marks_dctcp():
    marked("dctcp")


def all_to_all():
    through_switch(0, "--op", "all_to_all", *SWEEP)


def over_ipv6(loss_percent, *arguments):
    """The switch carries neighbour discovery, and each rank finds the others by it."""
    with Fabric(4, mtu=1500) as fabric:
        fabric.use_ipv6()
        fabric.start_switch(*(["--loss", str(loss_percent / 100), "--seed", "7"]
                              if loss_percent else []))
        rows_are_right(fabric.run_perf(*arguments, timeout_s=240))
        check("[fd00::" in fabric.log() or " fd00::" in fabric.log(), "no IPv6 address in the log")


def mesh_over_ipv6(ranks, *arguments):
    with Fabric(ranks, topology="mesh", arguments=arguments) as fabric:
        fabric.use_ipv6()
        for op in ("all_reduce", "all_to_all"):
            rows_are_right(fabric.run_perf("--op", op, *SWEEP, timeout_s=240))
        check(" fd00::" in fabric.log(), "no IPv6 address in the log")


def mesh_ipv6():
    mesh_over_ipv6(4)


def mesh_ipv6_with_queues():
    mesh_over_ipv6(3, "--queues", "3")


def switch_ipv6():
    over_ipv6(0, "--op", "all_to_all", *SWEEP)


def switch_ipv6_loss_1():
    over_ipv6(1, "--op", "all_reduce", *SWEEP)


if __name__ == "__main__":
    main({f.__name__: f for f in (pair, pair_small_mtu, pair_large_mtu, mesh, tags, mesh_with_queues, pair_with_queues, dedicated, switch_loss_0,
                                  switch_loss_0_1, switch_loss_1, switch_loss_5, switch_marks_cubic, switch_marks_dctcp, all_to_all, switch_ipv6, switch_ipv6_loss_1, mesh_ipv6,
                                  mesh_ipv6_with_queues)})
