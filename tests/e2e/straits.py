#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
# Copyright the ztcp authors
"""Processes with little stack, few descriptors or no standard streams work as others do."""
import json
import os

from fabric import PERF, PLUGIN, Fabric, check, main
from sockets import ASKED, without_a_config
from transfer import SWEEP, rows_are_right


def carries(begins):
    """ztcp_perf over kernel sockets, started by a shell that runs `begins` first."""
    with Fabric(2, topology="mesh") as fabric:
        without_a_config(fabric)
        report = os.path.join(fabric.folder, "report.json")
        perf = fabric.start("perf", ["sh", "-c", begins + '"$@"', "sh", PERF, "--plugin", PLUGIN, "--op", "all_reduce", *SWEEP,
                                     "--json", report], env=ASKED)
        check((status := perf.wait(120)) == 0, f"ztcp_perf ended with {status}")
        with open(report, encoding="utf-8") as file:
            rows_are_right(json.load(file))


def small_stack():
    carries("ulimit -s 64; exec ")


def few_descriptors():
    carries("ulimit -n 24; exec ")


def closed_streams():
    """The first sockets must not get the streams' numbers: printed text would go to them."""
    carries("exec <&- >&- 2>&-; exec ")


if __name__ == "__main__":
    main({f.__name__: f for f in (small_stack, few_descriptors, closed_streams)})
