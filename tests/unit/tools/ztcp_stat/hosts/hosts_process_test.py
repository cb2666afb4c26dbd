#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
# Copyright the ztcp authors
"""ztcp_stat hosts over reports that ztcp_setup writes here.

Usage: hosts_process_test.py ZTCP_STAT ZTCP_SETUP
"""
import json
import os
import subprocess
import sys
import tempfile
import unittest

STAT, SETUP = sys.argv[1:3]


def run(*words, **env):
    return subprocess.run(words, text=True, capture_output=True, timeout=60, check=False, env={**os.environ, **env})


class Reports(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = folder.name
        fabric = os.path.join(self.folder, "fabric")
        self.assertEqual(run(SETUP, "--local", "2", "--dir", fabric).returncode, 0)
        self.config = os.path.join(fabric, "ztcp.conf")
        for host in ("a", "b", "c"):
            self.write(host, self.check())

    def check(self):
        return run(SETUP, "--check", "--json", ZTCP_CONFIG=self.config).stdout

    def path(self, host):
        return os.path.join(self.folder, host + ".json")

    def write(self, host, text):
        with open(self.path(host), "w") as file:
            file.write(text)

    def merge(self, *more):
        return run(STAT, "hosts", *map(self.path, "abc"), *more)

    def test_equal_reports_exit_with_0(self):
        result = self.merge()
        self.assertEqual(result.returncode, 0, result)
        self.assertRegex(result.stdout, r"\n3 hosts, \d+ checks: all are equal\n$")

    def test_reports_that_differ_exit_with_1(self):
        report = json.loads(self.check())
        report["checks"][0]["severity"] = "fault"
        self.write("b", json.dumps(report))
        result = self.merge()
        self.assertEqual(result.returncode, 1, result)
        self.assertIn("\n  b ", result.stdout)
        self.assertRegex(result.stdout, r"checks: 1 differs\n$")
        merged = json.loads(self.merge("--json").stdout)
        self.assertEqual(merged["differences"][0]["values"][1]["hosts"], ["b"])

    def test_a_host_without_a_config_differs(self):
        os.remove(self.config)
        self.write("c", self.check())
        result = self.merge()
        self.assertEqual(result.returncode, 1, result)
        self.assertIn("problem", result.stdout)

    def test_bad_files_are_named_and_the_others_are_compared(self):
        self.write("b", "")
        result = self.merge(self.path("missing"))
        self.assertEqual(result.returncode, 2, result)
        self.assertIn("b.json: it is empty", result.stderr)
        self.assertIn("missing.json: No such file or directory", result.stderr)
        self.assertIn("\n2 hosts, ", result.stdout)

    def test_no_file_is_a_usage_error(self):
        self.assertEqual(run(STAT, "hosts").returncode, 2)
        self.assertEqual(run(STAT, "hosts", "--help").returncode, 0)

    def test_a_full_disk_is_said(self):
        with open("/dev/full", "w") as full:
            result = subprocess.run([STAT, "hosts", self.path("a")], stdout=full, stderr=subprocess.PIPE, text=True,
                                    timeout=60, check=False)
        self.assertEqual(result.returncode, 1, result)


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1], verbosity=2)
