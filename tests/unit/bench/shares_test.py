#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
# Copyright the ztcp authors
"""shares.py: goodput, fairness and the time to a share. Argument: the file."""
import pathlib
import sys
import unittest

sys.dont_write_bytecode = True
SHARES = pathlib.Path(sys.argv.pop(1))
sys.path.insert(0, str(SHARES.parent))

import shares  # noqa: E402


def line(from_s, to_s, mbit, step_s=0.01):
    """What a receiver prints at a steady rate."""
    count = round((to_s - from_s) / step_s)
    return [(from_s + i * step_s, round(i * step_s * mbit * 1e6 / 8)) for i in range(count + 1)]


class Shares(unittest.TestCase):
    def test_goodput_counts_in_proportion_between_records(self):
        series = [(10.0, 0), (11.0, 1_000_000)]
        self.assertAlmostEqual(shares.goodput_mbit(series, 10.25, 10.75), 8)
        self.assertAlmostEqual(shares.goodput_mbit(series, 10.0, 12.0), 4)  # It stood still.

    def test_jain(self):
        self.assertEqual(shares.jain([5, 5]), 1)
        self.assertEqual(shares.jain([5, 0]), 0.5)
        self.assertIsNone(shares.jain([0, 0]))

    def test_windows_cover_the_span(self):
        self.assertEqual(len(shares.windows(2, 7, 0.5)), 10)
        indices = shares.jain_of_windows([line(0, 7, 100), line(0, 7, 100)], 2, 7, 0.5)
        self.assertEqual(len(indices), 10)
        self.assertGreater(min(indices), 0.999)

    def test_time_to_share_counts_from_the_first_bytes(self):
        slow, fast = line(3, 3.5, 10), line(3.5, 5, 200)
        series = slow + [(when, slow[-1][1] + count) for when, count in fast[1:]]
        self.assertAlmostEqual(shares.time_to_share_s(series, 150, 5), 0.58, delta=0.021)
        self.assertIsNone(shares.time_to_share_s(series, 250, 5))
        self.assertIsNone(shares.time_to_share_s([], 1, 5))


if __name__ == "__main__":
    unittest.main()
