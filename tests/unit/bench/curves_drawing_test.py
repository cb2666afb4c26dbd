#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
# Copyright the ztcp authors
"""bench/gpu/curves --svg: the drawing of a file that bench/gpu/run wrote."""
import json
import pathlib
import re
import subprocess
import sys
import tempfile
import unittest
import xml.etree.ElementTree

CURVES = sys.argv.pop(1)
TITLES = {"ztcp": "ztcp, shared memory", "ztcp-sockets": "ztcp, kernel sockets", "socket-stock": "NCCL's sockets, stock"}
SIZES = [8 << 3 * i for i in range(10)]
MOST_BYTES = 150 << 10
SINGLE = "single iterations: p50, shaded to p99"


def document(networks, rounds, has_spread=False):
    results = []
    for number in range(rounds):
        for place, network in enumerate(networks):
            rows = [{"op": op, "size_bytes": size, "time_us": (20 + size / 5e3) * (1 + place) * (1 + number / 10),
                     "busbw_gb_per_s": size / (20 + size / 5e3) / 1e3, "wrong": 0}
                    for op in ("all_reduce", "sendrecv") for size in SIZES]
            for row in rows if has_spread else []:
                row["iteration_us"] = {"p50": row["time_us"], "p99": 3 * row["time_us"], "p99.9": None,
                                       "max": 9 * row["time_us"], "mean": row["time_us"], "cv": 0.1}
            results.append({"part": "sweep", "network": network, "title": TITLES.get(network, network), "ranks": 2,
                            "note": "default", "error": None, "ranks_results": [{"rows": rows, "cpu_s": 1.0}] * 2})
    return {"command": "bench/gpu/run", "results": results}


def drawn(networks, rounds=3, has_spread=False):
    with tempfile.TemporaryDirectory() as folder:
        file = pathlib.Path(folder) / "run.json"
        file.write_text(json.dumps(document(networks, rounds, has_spread)))
        subprocess.run([sys.executable, CURVES, str(file), "--svg", folder], check=True, stdout=subprocess.DEVNULL,
                       timeout=120)
        return {path.name: path.read_text() for path in pathlib.Path(folder).glob("*.svg")}


class Drawing(unittest.TestCase):
    def test_draws_every_network_of_every_operation(self):
        found = drawn(list(TITLES))
        self.assertEqual(sorted(found), ["all_reduce-2.svg", "sendrecv-2.svg"])
        for text in found.values():
            words = "".join(xml.etree.ElementTree.fromstring(text).itertext())
            for wanted in [*TITLES.values(), "medians of 3 rounds", "100 us", "1 ms", "bus bandwidth, GB/s", "8 B",
                           "128 MiB"]:
                self.assertIn(wanted, words)
            self.assertNotIn(SINGLE, words)

    def test_single_iterations_have_a_panel_where_they_were_timed(self):
        for text in drawn(list(TITLES), has_spread=True).values():
            self.assertIn(SINGLE, "".join(xml.etree.ElementTree.fromstring(text).itertext()))
            self.assertLess(len(text), MOST_BYTES)

    def test_is_small_and_has_no_background(self):
        networks = [*TITLES, *(f"peer{i}" for i in range(5))]
        for text in drawn(networks).values():
            self.assertLess(len(text), MOST_BYTES)
            self.assertFalse(re.search(r"fill: (#ffffff|white)", text), "a white field shows on a dark page")
            self.assertFalse(re.search(r"(fill|stroke): (#000000|black)", text), "black is invisible on a dark page")

    def test_the_same_run_gives_the_same_file(self):
        self.assertEqual(drawn(list(TITLES)), drawn(list(TITLES)))


try:
    import matplotlib
except ImportError:
    print("no matplotlib for", sys.executable)
    sys.exit(77)
if __name__ == "__main__":
    unittest.main()
