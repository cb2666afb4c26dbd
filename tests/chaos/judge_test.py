#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
# Copyright the ztcp authors
"""tests/chaos/judge.py: the verdict on synthetic evidence."""
import sys
import unittest

sys.dont_write_bytecode = True
from judge import GOOD, Evidence, RankEnd, Verdict, judge  # noqa: E402
from plan import Expect  # noqa: E402

DIED = "2026-11-25T08:40:29.692Z [11] WARN nic0: receiving from 10.66.0.2:40876 failed: the peer refused"
RAIL = ("2026-11-25T08:46:58.148Z [11] WARN ib0: the rail over soft0 port 1 has failed to 10.66.0.2: its port is down; "
        "messages go over the other 1 meanwhile")
DAMAGED = "2026-11-25T08:33:55.128Z [11] WARN ztcp1: dropped 18 frames with a bad checksum in 1 s"
TOLD = "ztcp_perf: rank 2: rank 1 (host, pid 7): receive 3 from rank 0 failed: ncclRemoteError"


def ended(*statuses, **more):
    """One rank per status, without output."""
    return [RankEnd(rank, status, **more) for rank, status in enumerate(statuses)]


def failed(rank, status=1):
    return RankEnd(rank, status, plugin_lines=[DIED], own_lines=[TOLD])


def killed(rank, status=-9):
    return RankEnd(rank, status, is_victim=True)


class Judge(unittest.TestCase):
    def verdict(self, wanted, ranks, expect=Expect.FINISH, **more):
        judgement = judge(Evidence(expect, ranks, **more))
        self.assertEqual(judgement.verdict, wanted, judgement.reason)
        self.assertTrue(judgement.reason)
        return judgement.reason

    # --- Jobs that must finish
    # ---------------------------------------------------------------------
    def test_a_job_that_finishes_is_ok(self):
        for expect in (Expect.FINISH, Expect.EITHER):
            self.verdict(Verdict.OK, ended(0, 0, 0), expect)

    def test_a_failure_of_a_job_that_must_finish_is_reported(self):
        self.assertIn("the peer refused", self.verdict(Verdict.FAILED, [failed(0), failed(1)]))
        self.verdict(Verdict.FAILED, [*ended(0), failed(1)])

    def test_warnings_of_a_job_that_finishes_are_ignored(self):
        self.verdict(Verdict.OK, ended(0, 0, plugin_lines=[DAMAGED]))

    # --- Jobs that must fail
    # -----------------------------------------------------------------------
    def test_survivors_that_fail_with_a_cause_are_as_expected(self):
        self.assertIn("the peer refused", self.verdict(Verdict.FAILED_AS_EXPECTED, [failed(0), killed(1)], Expect.FAIL))
        self.verdict(Verdict.FAILED_AS_EXPECTED, [failed(0), failed(1)], Expect.EITHER)

    def test_a_survivor_that_ztcp_perf_notified_needs_no_plugin_line(self):
        told = RankEnd(2, 3, own_lines=[TOLD])
        self.verdict(Verdict.FAILED_AS_EXPECTED, [failed(0), killed(1), told], Expect.FAIL)

    def test_survivors_that_finish_beside_a_dead_rank_are_reported(self):
        self.verdict(Verdict.FAILED, [*ended(0), killed(1)], Expect.FAIL)

    def test_a_victim_may_exit_instead_of_dying(self):
        self.verdict(Verdict.FAILED_AS_EXPECTED, [failed(0), killed(1, status=3)], Expect.FAIL)

    # --- Hangs
    # -------------------------------------------------------------------------------------
    def test_a_rank_that_still_runs_at_the_bound_is_a_hang(self):
        for expect in Expect:
            self.assertIn("rank 1 had not ended after 61 s",
                          self.verdict(Verdict.HANG, [failed(0), RankEnd(1, None)], expect, seconds=61))

    def test_a_victim_that_still_runs_at_the_bound_is_a_hang(self):
        self.verdict(Verdict.HANG, [failed(0), killed(1, status=None)], Expect.FAIL)

    def test_a_stall_timeout_of_ztcp_perf_is_a_hang(self):
        for line in ("ztcp_perf: rank 0: nothing moved for 60 s: waiting for message 3 of 8 from rank 1",
                     "ztcp_perf: rank 0: rank 1 has said nothing for 60 s"):
            stalled = RankEnd(0, 1, plugin_lines=[DIED], own_lines=[line])
            self.verdict(Verdict.HANG, [stalled, killed(1)], Expect.FAIL)

    # --- Bytes
    # -------------------------------------------------------------------------------------
    def test_wrong_elements_are_reported_however_the_job_ended(self):
        for expect in Expect:
            self.verdict(Verdict.WRONG, ended(0, 0), expect, wrong_elements=1)
            self.verdict(Verdict.WRONG, [failed(0), killed(1)], expect, wrong_elements=7, met=False)

    def test_the_exit_status_for_wrong_data_is_enough(self):
        self.verdict(Verdict.WRONG, ended(4, 4))

    def test_a_message_of_the_wrong_size_is_reported(self):
        line = "ztcp_perf: rank 0: receive 3 from rank 1: the plugin says 12 bytes came, 16 were sent"
        self.verdict(Verdict.WRONG, [RankEnd(0, 1, plugin_lines=[DIED], own_lines=[line]), failed(1)], Expect.EITHER)

    # --- Crashes
    # -----------------------------------------------------------------------------------
    def test_a_signal_that_the_harness_did_not_send_is_a_crash(self):
        for number in (6, 7, 8, 11):
            for expect in Expect:
                self.assertIn(f"signal {number}", self.verdict(Verdict.CRASH, [failed(0), *ended(0, -number)[1:]], expect))

    def test_a_survivor_that_is_killed_is_a_crash(self):
        """For example by the kernel when memory is short."""
        self.verdict(Verdict.CRASH, [RankEnd(0, -9), killed(1)], Expect.FAIL)

    def test_a_victim_that_dies_of_another_signal_is_a_crash(self):
        self.verdict(Verdict.CRASH, [failed(0), killed(1, status=-11)], Expect.FAIL)

    def test_a_crash_is_reported_before_a_hang(self):
        self.verdict(Verdict.CRASH, [RankEnd(0, -6), RankEnd(1, None)])

    def test_a_sanitizer_report_is_a_crash(self):
        line = "==7==ERROR: AddressSanitizer: heap-use-after-free"
        self.verdict(Verdict.CRASH, [RankEnd(0, 1, plugin_lines=[DIED], own_lines=[line]), failed(1)], Expect.EITHER)

    def test_a_switch_that_dies_is_a_crash(self):
        self.assertIn("switch0", self.verdict(Verdict.CRASH, ended(0, 0), unexpected_ends=["switch0 ended with -11"]))

    # --- Silence
    # ------------------------------------------------------------------------------------
    def test_a_failure_without_a_plugin_line_is_silent(self):
        for expect in Expect:
            self.verdict(Verdict.SILENT, [RankEnd(0, 1, own_lines=[TOLD]), killed(1)], expect)

    def test_a_warning_that_explains_no_failure_is_no_cause(self):
        for line in (DAMAGED, RAIL):
            self.verdict(Verdict.SILENT, [RankEnd(0, 1, plugin_lines=[line], own_lines=[TOLD]), killed(1)], Expect.FAIL)

    def test_a_survivor_without_any_line_is_silent(self):
        self.assertIn("rank 2", self.verdict(Verdict.SILENT, [failed(0), killed(1), RankEnd(2, 1)], Expect.FAIL))

    # --- Faults without effect
    # ----------------------------------------------------------------------
    def test_a_fault_without_effect_is_unmet_and_not_ok(self):
        for expect in Expect:
            self.verdict(Verdict.UNMET, ended(0, 0), expect, met=False)

    def test_a_death_without_a_request_in_flight_is_unmet_unless_worse(self):
        told = RankEnd(0, 3, own_lines=[TOLD])
        self.verdict(Verdict.UNMET, [told, killed(1)], Expect.FAIL, no_request_in_flight=True)
        self.verdict(Verdict.HANG, [RankEnd(0, None), killed(1)], Expect.FAIL, no_request_in_flight=True)
        self.verdict(Verdict.CRASH, [RankEnd(0, -11), killed(1)], Expect.FAIL, no_request_in_flight=True)

    def test_a_failure_before_the_fault_is_reported(self):
        for expect in Expect:
            self.verdict(Verdict.FAILED, [failed(0), failed(1)], expect, met=False)

    def test_a_hang_before_the_fault_is_reported(self):
        self.verdict(Verdict.HANG, ended(None, None), Expect.EITHER, met=False)

    def test_all_other_verdicts_fail_the_run(self):
        self.assertEqual([verdict.value for verdict in GOOD], ["ok", "failed-as-expected", "unmet"])


if __name__ == "__main__":
    unittest.main()
