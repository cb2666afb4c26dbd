# SPDX-License-Identifier: Apache-2.0
# Copyright the ztcp authors
"""Injects a fault into a running job. Each function returns when its fault is over.

The faults of plan.BY_ENVIRONMENT are not here: processes are started with them.
"""
from __future__ import annotations

import random
import signal
import threading
from typing import Protocol

from plan import Plan
from processes import Process, wait_until
from relay import Relay
from worlds import World

SMALLER_MTUS = (576, 800, 1280)
# Added to the MTU of the hosts, but not of the switch.
RAISED_MTU_BYTES = 2000


class Running(Protocol):
    """The part of a Job that faults use."""
    plan: Plan
    world: World
    ranks: list[Process]
    cancelled: threading.Event

    @property
    def relay(self) -> Relay:
        """Of --rendezvous."""

    def pause(self, seconds: float) -> None:
        """Waits, but not longer than ranks run."""


def stop(job: Running) -> None:
    halt(job, job.ranks[job.plan.victim])


def stop_switch(job: Running) -> None:
    halt(job, job.world.switches[0])


def halt(job: Running, process: Process) -> None:
    process.send(signal.SIGSTOP)
    try:
        job.pause(job.plan.duration_s)
    finally:
        process.send(signal.SIGCONT)


def wait_for_exchange(job: Running) -> None:
    """Returns while all ranks have requests in flight: only then the plugin of a peer can report the death of the victim."""
    wait_until(lambda: all(rank.is_polling(samples=3, step_s=0.002) for rank in job.ranks), 10, job.cancelled, step_s=0.002)


def kill(job: Running) -> None:
    wait_for_exchange(job)
    job.relay.mute(job.plan.victim)
    job.ranks[job.plan.victim].send(signal.SIGKILL)


def leave(job: Running) -> None:
    wait_for_exchange(job)
    job.relay.mute(job.plan.victim)
    job.ranks[job.plan.victim].send(signal.SIGTERM)


def kill_switch(job: Running) -> None:
    job.world.switches[0].end()


def restart_switch(job: Running) -> None:
    kill_switch(job)
    job.pause(draw(job).choice((0.1, 1, 3)))
    job.world.restart_switch()


def partition(job: Running) -> None:
    host = job.world.hosts[job.plan.victim]
    host.set_link("down")
    job.pause(job.plan.duration_s)
    host.set_link("up")


def flap(job: Running) -> None:
    host = job.world.hosts[job.plan.victim]
    times = draw(job)
    for _ in range(6):
        host.set_link("down")
        job.pause(times.uniform(0.05, 0.6))
        host.set_link("up")
        job.pause(times.uniform(0.05, 0.7))


def blackhole(job: Running) -> None:
    host = job.world.hosts[job.plan.victim]
    peers = [other for other in job.world.hosts if other is not host]
    host.blackhole_peers(peers)
    job.pause(job.plan.duration_s)
    host.restore_peers(peers)


def kill_sockets(job: Running) -> None:
    for _ in range(3):
        job.world.kill_sockets()
        job.pause(1.2)


def shrink_mtu(job: Running) -> None:
    job.world.hosts[job.plan.victim].set_mtu(draw(job).choice(SMALLER_MTUS))


def mtu_hole(job: Running) -> None:
    """Connections keep the MSS of their handshake, so they are destroyed and must be made again with the larger MTU."""
    before = sum(host.sent_again() for host in job.world.hosts)
    for host in job.world.hosts:
        host.set_mtu(job.plan.mtu + RAISED_MTU_BYTES)
    job.world.kill_sockets()
    job.pause(job.plan.duration_s)
    job.world.has_lost_segments = sum(host.sent_again() for host in job.world.hosts) > before
    for host in job.world.hosts:
        host.set_mtu(job.plan.mtu)


def draw(job: Running) -> random.Random:
    return random.Random(f"fault of {job.plan.seed}")


INJECT = {
    "stop": stop, "kill": kill, "exit": leave, "switch-stop": stop_switch, "switch-kill": kill_switch,
    "switch-restart": restart_switch, "partition": partition, "flap": flap, "blackhole": blackhole,
    "sockets-kill": kill_sockets, "mtu-shrink": shrink_mtu, "mtu-hole": mtu_hole,
}
