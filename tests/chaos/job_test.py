#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
# Copyright the ztcp authors
"""tests/chaos/job.py: whether a fault met its job."""
import dataclasses
import pathlib
import sys
import tempfile
import threading
import unittest
from unittest import mock

sys.dont_write_bytecode = True
import faults  # noqa: E402
import job as jobs  # noqa: E402
from plan import plan_of  # noqa: E402
from worlds import Tools  # noqa: E402


class Rank:
    """A rank that runs, polls or has ended."""

    def __init__(self, status=None, polls=False):
        self.ended_with = status
        self.polls = polls

    def status(self):
        return self.ended_with

    def running(self):
        return self.ended_with is None

    def is_polling(self):
        return self.polls


class Jobs(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = pathlib.Path(folder.name)

    def job(self, *ranks, **more):
        """Rank 0 is the victim."""
        plan = dataclasses.replace(plan_of(1), transport="mesh", ranks=len(ranks), victim=0, **more)
        nowhere = self.folder / "none"
        job = jobs.Job(plan, Tools(*[nowhere] * 5), self.folder, 0, 1, threading.Event())
        job.ranks = list(ranks)
        job._relay = mock.Mock()
        return job

    # --- Survivors of a dead rank
    # ------------------------------------------------------------------
    def test_survivors_that_all_wait_in_ztcp_perf_had_no_request_in_flight(self):
        job = self.job(Rank(-9), Rank(), Rank())
        job._end_idle_survivors()
        self.assertTrue(job.no_request_in_flight)
        job.relay.end_muted.assert_called_once()

    def test_a_survivor_that_failed_before_had_a_request_in_flight(self):
        job = self.job(Rank(-9), Rank(), Rank(1))
        job._end_idle_survivors()
        self.assertFalse(job.no_request_in_flight)
        job.relay.end_muted.assert_called_once()

    def test_survivors_that_wait_for_the_plugin_run_on(self):
        job = self.job(Rank(-9), Rank(), Rank(polls=True))
        job._end_idle_survivors()
        self.assertFalse(job.no_request_in_flight)
        job.relay.end_muted.assert_not_called()

    # --- Faults that software NICs and switches count
    # ----------------------------------------------
    def test_a_fault_of_a_nic_needs_no_row_of_results(self):
        for fault, is_met in (("device-lost", True), ("loss", False)):
            job = self.job(Rank(1), Rank(3), fault=fault)
            job.world.was_met = lambda: True
            with mock.patch.object(job, "_row_count", return_value=0):
                self.assertIs(job._was_met(was_injected=False, rows_before=0, ends=[]), is_met)

    # --- Faults of jobs that end well
    # --------------------------------------------------------------
    def injected(self, seconds, *ranks):
        times = iter((0.0, seconds))
        job = self.job(*ranks, fault="stop")
        with mock.patch.dict(faults.INJECT, stop=lambda _: None), mock.patch.object(jobs.time, "monotonic", lambda: next(times)):
            return job._inject()

    def test_a_fault_after_the_end_came_too_late(self):
        self.assertFalse(self.injected(0.1, Rank(0), Rank(0)))

    def test_a_fault_is_met_if_the_job_outlived_it_or_ran_a_second_in_it(self):
        self.assertTrue(self.injected(0.1, Rank(0), Rank()))
        self.assertTrue(self.injected(20, Rank(0), Rank(0)))


if __name__ == "__main__":
    unittest.main()
