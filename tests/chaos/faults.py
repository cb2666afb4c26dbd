# SPDX-License-Identifier: Apache-2.0
# Copyright the ztcp authors
"""Injects a fault into a running job. Each function returns when its fault is over.

The faults of plan.BY_ENVIRONMENT are not here: processes are started with them.
"""
from __future__ import annotations

import random
import signal
import threading
import time
from typing import Protocol

from plan import Plan
from processes import Process, wait_until
from relay import Relay
from worlds import World

SMALLER_MTUS = (576, 800, 1280)
# Added to the MTU of the hosts, but not of the switch.
RAISED_MTU_BYTES = 2000
# By then the survivors of a stopped rank have done all they can without it.
SETTLED_S = 0.06


class Running(Protocol):
    """The part of a Job that faults use."""
    plan: Plan
    world: World
    ranks: list[Process]
    cancelled: threading.Event

    @property
    def relay(self) -> Relay:
        """The relay of --rendezvous."""

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


def stop_in_exchange(job: Running) -> None:
    """Stops the victim while a survivor waits for its data: only then the plugin of the survivor can report its death.

    Survivors that need nothing of the victim sleep soon after it is stopped, because they wait for all ranks in ztcp_perf.
    """
    victim = job.ranks[job.plan.victim]
    survivors = [rank for rank in job.ranks if rank is not victim]

    def is_waited_for() -> bool:
        victim.send(signal.SIGSTOP)
        time.sleep(SETTLED_S)
        if any(rank.is_polling(samples=5, step_s=0.004) for rank in survivors):
            return True
        victim.send(signal.SIGCONT)
        return False
    wait_until(is_waited_for, 10, job.cancelled, step_s=0.005)


def kill(job: Running) -> None:
    stop_in_exchange(job)
    end_in_exchange(job, signal.SIGKILL)


def leave(job: Running) -> None:
    stop_in_exchange(job)
    end_in_exchange(job, signal.SIGTERM)


def end_in_exchange(job: Running, number: int) -> None:
    """The victim dies at once or, in half of the jobs, after a moment in which data moves again."""
    victim = job.ranks[job.plan.victim]
    job.relay.mute(job.plan.victim)
    if draw(job).random() < 0.5:
        victim.send(signal.SIGCONT)
        time.sleep(0.0002)
    victim.send(number)
    victim.send(signal.SIGCONT)


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
