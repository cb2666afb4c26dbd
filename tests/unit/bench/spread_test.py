#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
# Copyright the ztcp authors
"""bench/gpu/spread.py, and the table that bench/gpu/run makes of all ranks' times."""
import importlib.machinery
import importlib.util
import os
import sys
import unittest

sys.dont_write_bytecode = True
RUN = sys.argv.pop(1)
sys.path.insert(0, os.path.dirname(RUN))
import spread  # noqa: E402
from sweep_table import sweep_table, take_together  # noqa: E402

loader = importlib.machinery.SourceFileLoader("gpu_run", RUN)
run = importlib.util.module_from_spec(importlib.util.spec_from_loader("gpu_run", loader))
loader.exec_module(run)


class Summary(unittest.TestCase):
    def test_percentiles_are_nearest_ranks(self):
        found = spread.summarise(range(100, 0, -1))
        self.assertEqual([found[name] for name in ("min", "p50", "p99", "max", "mean")],
                         [1, 50, 99, 100, 50.5])

    def test_the_99_9th_percentile_needs_a_thousand_samples(self):
        self.assertIsNone(spread.summarise(range(1, 1000))["p99.9"])
        self.assertEqual(spread.summarise(range(1, 1001))["p99.9"], 999)
        self.assertEqual(spread.summarise(range(1, 2001))["p99.9"], 1998)

    def test_the_variation_is_that_of_a_sample(self):
        self.assertAlmostEqual(spread.variation([2, 4, 4, 4, 5, 5, 7, 9]), 2.13809 / 5, 5)
        self.assertEqual(spread.variation([3]), 0)
        self.assertIsNone(spread.variation([]))

    def test_the_slowest_rank_of_each_iteration_counts(self):
        self.assertEqual(spread.slowest([[1, 9, 3], [4, 2, 3]]), [4, 9, 3])
        with self.assertRaises(ValueError):
            spread.slowest([[1, 2], [1]])


def results(*of_ranks):
    return [{"cpu_s": 1.0, "rows": [{"op": "reduce_scatter", "size_bytes": 1 << 30, "time_us": 123456.789,
                                     "algbw_gb_per_s": 8.7, "busbw_gb_per_s": 8.7, "wrong": 0,
                                     "one_by_one_us": times}]} for times in of_ranks]


class Sweep(unittest.TestCase):
    def test_a_row_of_every_rank_has_the_spread_of_the_slowest(self):
        found = results([10.0] * 1000, [5.0] * 999 + [4000.0])
        take_together(found)
        for result in found:
            row, = result["rows"]
            self.assertNotIn("one_by_one_us", row)
            self.assertEqual([row["iteration_us"][name] for name in ("samples", "p50", "p99.9", "max")],
                             [1000, 10, 10, 4000])

    def shown(self, found):
        take_together(found)
        return sweep_table("ztcp, 2 ranks", found).splitlines()

    def test_the_table_is_aligned_and_fits_120_columns(self):
        lines = self.shown(results([9e6] * 3, [5.0] * 3))
        self.assertLessEqual(max(map(len, lines)), 120)
        names, units, row = lines[3:6]
        self.assertEqual(len({len(line) for line in (names, row)}), 1)
        self.assertEqual(row.split()[5:11], ["9000000", "9000000", "9000000", "-", "9000000", "0.0"])
        self.assertEqual(units.split().count("us"), 6)

    def test_without_samples_the_spread_is_left_out(self):
        self.assertEqual(self.shown(results([], []))[5].split()[5:11], ["-"] * 6)


class Sizes(unittest.TestCase):
    def test_sizes_may_have_units(self):
        self.assertEqual([run.size_bytes(text) for text in ("8", "32K", "2m", "1G")], [8, 32 << 10, 2 << 20, 1 << 30])
        for text in ("2X", "", "K", "-8", "1.5M"):
            with self.assertRaises(run.argparse.ArgumentTypeError):
                run.size_bytes(text)


if __name__ == "__main__":
    unittest.main()
