#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
# Copyright the ztcp authors
"""tests/chaos/faults.py: a rank dies only while another waits for its data."""
import dataclasses
import signal
import sys
import threading
import unittest
from unittest import mock

sys.dont_write_bytecode = True
import faults  # noqa: E402
from plan import plan_of  # noqa: E402


class Rank:
    """A rank that keeps its signals. `polls`: the answer for each time that it is asked, the last one for ever."""

    def __init__(self, *polls: bool) -> None:
        self.polls = list(polls)
        self.signals: list[int] = []

    def send(self, number: int) -> None:
        self.signals.append(number)

    def is_polling(self, samples: int, step_s: float) -> bool:
        del samples, step_s
        return self.polls.pop(0) if len(self.polls) > 1 else self.polls[0]


class Muted:
    """A relay that keeps the signals that the victim had when it was muted."""

    def __init__(self, victim: Rank) -> None:
        self.victim = victim
        self.before: list[int] | None = None

    def mute(self, rank: int) -> None:
        del rank
        self.before = list(self.victim.signals)


@dataclasses.dataclass
class Job:
    """The part of a job that kill() and leave() use."""
    ranks: list[Rank]
    relay: Muted
    plan: object
    cancelled: threading.Event = dataclasses.field(default_factory=threading.Event)


def job_of(*survivors: Rank, seed: int = 1) -> Job:
    victim = Rank(True)
    plan = dataclasses.replace(plan_of(seed), victim=0, ranks=1 + len(survivors))
    return Job([victim, *survivors], Muted(victim), plan)


@mock.patch.object(faults, "SETTLED_S", 0)
class Deaths(unittest.TestCase):
    def test_a_rank_dies_stopped_or_just_continued_while_another_waits_for_it(self):
        ends = set()
        for seed in range(20):
            job = job_of(Rank(True), seed=seed)
            faults.kill(job)
            ends.add(tuple(job.ranks[0].signals))
        stop, cont, kill = signal.SIGSTOP, signal.SIGCONT, signal.SIGKILL
        self.assertEqual(ends, {(stop, kill, cont), (stop, cont, kill, cont)})

    def test_a_rank_runs_on_until_another_waits_for_it(self):
        job = job_of(Rank(False, False, True), Rank(False))
        faults.leave(job)
        stop, cont = signal.SIGSTOP, signal.SIGCONT
        self.assertEqual(job.relay.before, [stop, cont, stop, cont, stop])
        self.assertIn(signal.SIGTERM, job.ranks[0].signals)

    def test_survivors_are_not_signalled(self):
        job = job_of(Rank(False, True), Rank(True))
        faults.kill(job)
        self.assertEqual([rank.signals for rank in job.ranks[1:]], [[], []])


if __name__ == "__main__":
    unittest.main()
