#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
# Copyright the ztcp authors
"""tests/chaos/plan.py: plans that follow from the seed, coverage of all pairs, and expected ends."""
import sys
import unittest

sys.dont_write_bytecode = True
from faults import INJECT  # noqa: E402
from plan import (  # noqa: E402
    BY_ENVIRONMENT, DEFAULT_TIMERS, FAULTS, NICS, SHORT_TIMERS, SWITCHED, TRANSPORTS, Expect, expected, faults_of,
    pairs, plan_of)


class Plans(unittest.TestCase):
    def test_a_seed_has_one_plan(self):
        self.assertEqual([plan_of(seed) for seed in range(50)], [plan_of(seed) for seed in range(50)])

    def test_each_round_of_seeds_has_every_pair_once(self):
        for turn in (0, 1, 7):
            seeds = range(turn * len(pairs()), (turn + 1) * len(pairs()))
            self.assertEqual(sorted((plan.transport, plan.fault) for plan in map(plan_of, seeds)), sorted(pairs()))

    def test_rounds_differ_in_order(self):
        first, second = ([plan_of(turn * len(pairs()) + i).fault for i in range(len(pairs()))] for turn in (0, 1))
        self.assertNotEqual(first, second)

    def test_every_fault_has_a_transport_and_an_injection(self):
        self.assertEqual({fault for _, fault in pairs()}, set(FAULTS))
        self.assertEqual({transport for transport, _ in pairs()}, set(TRANSPORTS))
        self.assertEqual(set(INJECT) | set(BY_ENVIRONMENT) | {"none"}, set(FAULTS))
        self.assertFalse(set(INJECT) & set(BY_ENVIRONMENT))

    def test_drawn_values_fit_the_job(self):
        for plan in map(plan_of, range(1000)):
            self.assertLess(plan.victim, plan.ranks)
            self.assertEqual(bool(plan.nic_faults), plan.fault in NICS)
            if plan.fault in ("loss", "duplicate", "reorder", "corrupt"):
                self.assertEqual(list(plan.impairments), [plan.fault])
            if plan.fault == "none" or plan.transport not in SWITCHED:
                self.assertEqual(plan.impairments, {})
            if plan.expect is Expect.FAIL:
                self.assertGreater(plan.budget_s, plan.before_s + 15)
            if plan.fault == "mtu-hole":
                self.assertGreaterEqual(plan.size_kib, 256)
            self.assertTrue(plan.describe())


class Expectations(unittest.TestCase):
    def test_a_dead_rank_fails_the_job_on_every_transport(self):
        for transport in TRANSPORTS:
            for fault in ("kill", "exit"):
                self.assertIs(expected(transport, fault, 0, DEFAULT_TIMERS), Expect.FAIL)

    def test_short_outages_must_be_survived_and_long_ones_may_be(self):
        for transport, fault in pairs():
            if fault in ("stop", "partition", "blackhole", "switch-stop"):
                self.assertIs(expected(transport, fault, 1, DEFAULT_TIMERS), Expect.FINISH)
        for transport in ("rdma", "rdma-merged", "rdma-tcp"):  # 60 % of 34 s.
            self.assertIs(expected(transport, "stop", 15, SHORT_TIMERS), Expect.FINISH)
        self.assertIs(expected("sockets", "stop", 30, SHORT_TIMERS), Expect.FINISH)
        for transport, fault in (("sockets", "partition"), ("memif", "switch-stop"), ("mesh", "stop"), ("rdma", "stop")):
            self.assertIs(expected(transport, fault, 30, DEFAULT_TIMERS), Expect.EITHER)

    def test_the_limit_follows_from_the_timers(self):
        """60 % of 7.5 s + 7 s, and of 2.6 s + 5 s."""
        self.assertIs(expected("sockets", "partition", 8, DEFAULT_TIMERS), Expect.FINISH)
        self.assertIs(expected("sockets", "partition", 8, SHORT_TIMERS), Expect.EITHER)

    def test_a_merged_device_survives_faults_of_one_rail(self):
        for transport in ("sockets-merged", "rdma-merged", "rdma-tcp"):
            for fault in set(faults_of(transport)) - {"stop", "kill", "exit"}:
                self.assertIs(expected(transport, fault, 30, SHORT_TIMERS), Expect.FINISH)

    def test_the_loss_of_the_only_path_fails_the_job(self):
        for transport, fault in (("memif", "switch-kill"), ("sockets", "switch-kill"), ("rdma", "device-lost"),
                                 ("rdma", "port-down"), ("rdma", "message-fail")):
            self.assertIs(expected(transport, fault, 0, DEFAULT_TIMERS), Expect.FAIL)

    def test_impairments_must_be_survived(self):
        for transport, fault in pairs():
            if fault in ("none", "loss", "duplicate", "reorder", "corrupt", "disorder", "flap", "port-flap", "mtu-shrink",
                         "sockets-kill"):
                self.assertIs(expected(transport, fault, 0, SHORT_TIMERS), Expect.FINISH)


if __name__ == "__main__":
    unittest.main()
