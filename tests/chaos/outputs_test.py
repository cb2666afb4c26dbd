#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
# Copyright the ztcp authors
"""tests/chaos/outputs.py: rows, wrong elements, errors and warnings in the output of a rank."""
import sys
import unittest

sys.dont_write_bytecode = True
from outputs import other_lines, rows, warnings, wrong_elements  # noqa: E402

OUTPUT = """\
# ztcp_perf 0.1.0: all_reduce over 2 ranks, plugin ztcp (v12) ./libnccl-net.so
#   rank  0 on vm pid 7066, device 0 ztcp0, 10000 Mb/s, no PCI path
#
#   float, sum; time is of all iterations together (the rank that took longest)
#
#      size       time   algbw   busbw      min      p50      p99      max     CV  #wrong   iters
#       (B)       (us)  (GB/s)  (GB/s)     (us)     (us)     (us)     (us)    (%)
       4096   21307.29   0.000   0.000    21308    21308    21308    21308    0.0       0       1
       4100   13788.09   0.000   0.000    33.53   5034.2    17674    17674  341.2       3      12
       4104   20281.15   0.000   0.000    20282    20282    20282    20282    0.0      40       1
"""
ERROR = "ztcp_perf: rank 0: receive 3 from rank 1 failed: ncclRemoteError"
LOG = """\
2026-11-25T08:33:53.943Z [30439] INFO this process may take 36 MiB of memory for its NICs, without hugepages
2026-11-25T08:33:55.128Z [30439] WARN ztcp1: dropped 18 frames with a bad checksum in 1 s
"""


class Outputs(unittest.TestCase):
    def test_counts_complete_rows(self):
        self.assertEqual(len(rows(OUTPUT)), 3)
        self.assertEqual(len(rows(OUTPUT[:-1])), 2)
        self.assertEqual(rows(""), [])

    def test_sums_wrong_elements(self):
        self.assertEqual(wrong_elements(OUTPUT), 43)
        self.assertEqual(wrong_elements(OUTPUT.replace("      40 ", "     N/A ")), 3)
        self.assertEqual(wrong_elements(""), 0)

    def test_an_error_is_no_row_and_a_row_is_no_error(self):
        self.assertEqual(other_lines(OUTPUT), [])
        self.assertEqual(other_lines(f"{OUTPUT}{ERROR}\n"), [ERROR])
        self.assertEqual(len(rows(f"{OUTPUT}{ERROR}\n")), 3)

    def test_finds_warnings(self):
        self.assertEqual(warnings(LOG), [LOG.splitlines()[1]])


if __name__ == "__main__":
    unittest.main()
