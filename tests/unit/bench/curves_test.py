#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
# Copyright the ztcp authors
"""bench/gpu/curves: medians over rounds and files, and the comparison of ours with others."""
import importlib.machinery
import importlib.util
import sys
import unittest

sys.dont_write_bytecode = True
loader = importlib.machinery.SourceFileLoader("curves", sys.argv.pop(1))
curves = importlib.util.module_from_spec(importlib.util.spec_from_loader("curves", loader))
loader.exec_module(curves)


def sweep(network, times, note="default", error=None, wrong=0):
    rows = [{"op": "all_reduce", "size_bytes": size, "time_us": time, "busbw_gb_per_s": size / time / 1e3, "wrong": wrong}
            for size, time in times.items()]
    return {"part": "sweep", "network": network, "ranks": 2, "note": note, "error": error,
            "ranks_results": [{"rows": rows, "cpu_s": 1.0}, {"rows": rows, "cpu_s": 2.0}] if not error else [None]}


def run(*records):
    # One file for each record, because a long run is made in parts.
    return curves.Run([{"results": [record]} for record in records])


def with_spread(record, **of_all):
    for row in record["ranks_results"][0]["rows"] + record["ranks_results"][1]["rows"]:
        row["iteration_us"] = {"min": 1.0, "p50": 10.0, "p99": 20.0, "p99.9": None, "max": 30.0, "mean": 12.0,
                               "cv": 0.5} | of_all
    return record


KEY = (2, "all_reduce")


class Curves(unittest.TestCase):
    def test_takes_medians_over_files(self):
        found = run(*(sweep("ztcp-sockets", {8: time}) for time in [30.0, 10.0, 11.0]))
        self.assertEqual(found.median(KEY, 8, "ztcp-sockets"), 11.0)
        self.assertEqual(found.cpu_s[2, "ztcp-sockets"], [3.0, 3.0, 3.0])

    def test_takes_the_rank_that_took_longest(self):
        record = sweep("ztcp", {8: 5.0, 64: 7.0})
        record["ranks_results"][1] = sweep("ztcp", {8: 9.0, 64: 6.0})["ranks_results"][1]
        found = run(record)
        self.assertEqual([found.median(KEY, size, "ztcp") for size in [8, 64]], [9.0, 7.0])
        self.assertEqual(found.median(KEY, 8, "ztcp", "busbw_gb_per_s"), 8 / 9.0 / 1e3)

    def test_leaves_out_failures_and_other_protocols(self):
        found = run(sweep("ztcp", {8: 1.0}, note="LL"), sweep("ztcp", {}, error="hung"), sweep("ztcp", {8: 5.0}))
        self.assertEqual(found.values(KEY, 8, "ztcp", "time_us"), [5.0])

    def test_compares_nothing_with_wrong_bytes(self):
        with self.assertRaisesRegex(curves.WrongBytes, "ztcp, 2 ranks, all_reduce of 8 B: 3 wrong elements"):
            run(sweep("ztcp", {8: 5.0}, wrong=3), sweep("socket-stock", {8: 6.0}))

    def test_compares_with_each_and_with_the_best_peer_of_each_size(self):
        gib = 1 << 30
        found = run(sweep("ztcp-sockets", {8: 10.0, gib: 100.0}), sweep("ztcp", {8: 1.0, gib: 1.0}),
                    sweep("socket-stock", {8: 20.0, gib: 400.0}), sweep("socket-tuned", {8: 40.0, gib: 100.0}))
        rows = {row[0]: row[1:] for row in curves.comparison(found, KEY, "ztcp-sockets")}
        self.assertEqual(rows["socket-stock"], ["2.83", "2.00 at 8 B", "2.00", "4.00 at 1 GiB"])
        self.assertEqual(rows["socket-tuned"], ["2.00", "1.00 at 1 GiB", "4.00", "1.00 at 1 GiB"])
        # Our own shared memory is no peer.
        self.assertEqual(rows["**the best of the peers at each size**"], ["1.41", "1.00 at 1 GiB", "2.00", "1.00 at 1 GiB"])

    def test_reports_single_iterations_and_compares_their_99th_percentiles(self):
        found = run(with_spread(sweep("ztcp-sockets", {8: 10.0}), **{"p99.9": 25.0}),
                    with_spread(sweep("ztcp-sockets", {8: 10.0}), p99=40.0, **{"p99.9": 45.0}),
                    with_spread(sweep("socket-stock", {8: 20.0}), p99=45.0))
        self.assertEqual(found.median(KEY, 8, "ztcp-sockets", "p99"), 30.0)
        text = curves.report(found, "ztcp-sockets")
        self.assertIn("| 8 B | 10.0 / 30.0 / 35.0 / 30.0, 50 % | 10.0 / 45.0 / - / 30.0, 50 % |", text)
        self.assertIn("p99 of the other over that of ztcp-sockets:", text)
        self.assertIn("1.50 at 8 B", text)

    def test_reports_the_size_with_the_tail_farthest_above_its_median(self):
        record = with_spread(sweep("ztcp-sockets", {8: 10.0, 64: 10.0, 4 << 20: 10.0}))
        for rows in (one["rows"] for one in record["ranks_results"]):
            rows[1]["iteration_us"] = rows[1]["iteration_us"] | {"p99": 25.0}
            # Too large to be compared.
            rows[2]["iteration_us"] = rows[2]["iteration_us"] | {"p99": 1e6}
        self.assertEqual(curves.tail_rows(run(record), KEY),
                         [["ztcp-sockets", "2.50 at 64 B", "3.00 at 8 B", "1.20 at 8 B"]])

    def test_leaves_single_iterations_out_where_none_were_timed(self):
        record = sweep("ztcp-sockets", {8: 10.0})
        for row in record["ranks_results"][0]["rows"]:
            row["iteration_us"] = None
        self.assertNotIn("one by one", curves.report(run(record), "ztcp-sockets"))

    def test_holds_the_largest_size_against_bare_sockets(self):
        ceiling = {"part": "ceiling", "rows": [{"sockets": 1, "gb_per_s_each_way": 4.0},
                                               {"sockets": 4, "gb_per_s_each_way": 10.0}]}
        found = run(ceiling, sweep("ztcp-sockets", {8: 10.0, 1 << 30: (1 << 30) / 9e3}))
        self.assertIn("9.0 GB/s bus, 0.90 of the most", curves.report(found, "ztcp-sockets"))


if __name__ == "__main__":
    unittest.main()
