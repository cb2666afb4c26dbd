#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
# Copyright the ztcp authors
"""Strangers on our ports while ranks are busy: no data is lost and no rank dies."""
import os
import re

from fabric import QUICK_TIMERS, Fabric, check, main

INTRUDER = os.environ["E2E_INTRUDER"]


def intrude(seed):
    # Two ranks, and a third port for the intruder.
    with Fabric(3, settings=QUICK_TIMERS) as fabric:
        fabric.start_switch()
        ranks = fabric.start_ranks("--op", "sendrecv", "--min", "64", "--max", "1M", "--factor",
                                   "4", "--iters", "2000", "--time-budget", "6", "--check",
                                   ranks=2)
        intruder = fabric.start("intruder", [INTRUDER, fabric.config, "0", "5", str(seed)])
        check(intruder.wait(30) == 0, "the intruder failed")
        for rank in ranks:
            check(rank.wait(90) == 0, f"{rank.name} failed")
        told = re.search(r"connections (\d+) answers (\d+) frames (\d+)", intruder.output())
        connections, answers, frames = (int(n) for n in told.groups())
        check(connections > 20, f"only {connections} connections were made")
        check(answers > 10, f"only {answers} strangers were rejected")
        check(frames > 1000, f"only {frames} frames were sent")
        print(told.group(0))


main({"intrude": lambda: intrude(11)})
