# SPDX-License-Identifier: Apache-2.0
# Copyright the ztcp authors
"""One run: a flow alone, or two at the same bottleneck."""
import dataclasses

import shares
from flows import Flow, Kind
from network import Cell, Network

SETTLE_S = 1  # A flow's start, not counted.
HEAD_START_S = 3  # The first of two flows is alone for this time.
CONVERGE_S = 2  # After the newcomer's first bytes; not counted for fairness.
WINDOW_S = 0.5
SHARE = 0.8  # With this part of the fair share the newcomer has arrived.
TCP_IP_HEADER_BYTES = 52  # With timestamps.
ETHERNET_HEADER_BYTES = 14


@dataclasses.dataclass(frozen=True)
class Task:
    cell: Cell
    kinds: tuple[Kind, ...]  # One, or the first and the newcomer.
    round: int
    seconds: float

    @property
    def title(self):
        return f"{self.cell.title}: {' then '.join(map(str, self.kinds))}, round {self.round + 1}"


def payload_mbit(cell):
    """The most that a flow can carry over the cell without loss."""
    return cell.rate_mbit * (cell.mtu - TCP_IP_HEADER_BYTES) / (cell.mtu + ETHERNET_HEADER_BYTES)


def wait(cancelled, seconds):
    if cancelled.wait(seconds):
        raise KeyboardInterrupt


def alone(build, task, slot, cancelled):
    """Userspace TCP is at both ends of a flow of ztcp, Linux's TCP at both of Linux."""
    (kind,) = task.kinds
    with_ports = {kind.tcp: ("sender", "receiver")}
    network = Network(build, task.cell, slot, task.round + 1, bottlenecks=("receiver",), **with_ports)
    try:
        flow = Flow(network, build, kind, "flow", "sender", "receiver", task.seconds + SETTLE_S)
        flow.wait_until_moving(cancelled)
        wait(cancelled, task.seconds)
        network.stop()
        series = flow.series()
        began = series[0][0]
        # A flow that stood still in the end keeps its time.
        return {"goodput_mbit": shares.goodput_mbit(series, began + SETTLE_S, began + task.seconds),
                "switch": network.read("switch")}
    finally:
        network.close()


def beside(build, task, slot, cancelled):
    """Both flows end at one host of Linux, whose port is the bottleneck."""
    network = Network(build, task.cell, slot, task.round + 1, linux=("receiver", *linux_senders(task)),
                      ztcp=tuple(f"sender{i}" for i, kind in enumerate(task.kinds) if kind.tcp == "ztcp"),
                      bottlenecks=("receiver",))
    try:
        flows = []
        for i, kind in enumerate(task.kinds):
            seconds = task.seconds + (HEAD_START_S if i == 0 else 0) + SETTLE_S
            flows.append(Flow(network, build, kind, f"flow{i}", f"sender{i}", "receiver", seconds))
            flows[-1].wait_until_moving(cancelled)
            wait(cancelled, HEAD_START_S if i == 0 else task.seconds)
        network.stop()
        return result_of_two(task, [flow.series() for flow in flows]) | {"switch": network.read("switch")}
    finally:
        network.close()


def linux_senders(task):
    return tuple(f"sender{i}" for i, kind in enumerate(task.kinds) if kind.tcp == "linux")


def result_of_two(task, series):
    newcomer = series[1][0][0]
    end = newcomer + task.seconds
    counted = (newcomer + CONVERGE_S, end)
    indices = shares.jain_of_windows(series, *counted, WINDOW_S)
    fair_mbit = payload_mbit(task.cell) / 2
    return {"goodput_mbit": [shares.goodput_mbit(one, *counted) for one in series],
            "jain": shares.jain([shares.goodput_mbit(one, *counted) for one in series]),
            "jain_windows": indices,
            "time_to_share_s": shares.time_to_share_s(series[1], SHARE * fair_mbit, end),
            "windows_mbit": [[round(shares.goodput_mbit(one, *window), 1)
                              for window in shares.windows(newcomer - 1, end, 0.1)] for one in series]}
