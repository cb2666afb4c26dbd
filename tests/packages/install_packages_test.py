#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
# Copyright the ztcp authors
"""tools/install-packages with stand-ins for apt-get, dpkg-query, sudo and id: the commands it runs
and its output."""
import os
import pathlib
import subprocess
import tempfile
import unittest

SCRIPT = pathlib.Path(__file__).resolve().parents[2] / "tools/install-packages"
PROGRAMS = {
    "dpkg-query": "exit 1",  # No package is installed.
    "id": 'echo "${FAKE_UID:-0}"',
    "sudo": '[ "${FAKE_SUDO:-ok}" = ok ] || { echo "user is not in the sudoers file" >&2; exit 1; }; exec "$@"',
    # Without a network `update` succeeds unless told not to, as apt's does.
    "apt-get": """echo "$*" >>"$FAKE_LOG"
case "$*" in
  *update*)
    sleep "${FAKE_UPDATE_TAKES:-0}"
    [ -z "${FAKE_OFFLINE:-}" ] || { echo "Could not resolve 'deb.debian.org'"; case "$*" in *Error-Mode=any*) exit 100 ;; esac; } ;;
  *install*) echo "Get:1 g++"; sleep "${FAKE_TAKES:-0}" ;;
esac""",
}


class InstallPackages(unittest.TestCase):
    def setUp(self):
        self.folder = tempfile.TemporaryDirectory()
        self.addCleanup(self.folder.cleanup)
        for name, text in PROGRAMS.items():
            path = pathlib.Path(self.folder.name, name)
            path.write_text("#!/bin/sh\n" + text + "\n")
            path.chmod(0o755)
        self.log = pathlib.Path(self.folder.name, "log")
        self.log.touch()

    def install(self, *arguments, **env):
        env = {**os.environ, "PATH": f"{self.folder.name}:/usr/bin:/bin", "FAKE_LOG": str(self.log), **env}
        return subprocess.run([SCRIPT, *(arguments or ["build"])], env=env, text=True, capture_output=True, timeout=120, check=False)

    def test_missing_packages_are_installed(self):
        result = self.install()
        self.assertEqual(result.returncode, 0, result.stderr)
        self.assertRegex(self.log.read_text(), r"update\n.*install -y --no-install-recommends g\+\+ meson")
        self.assertRegex(result.stdout, r"apt-get .*update \.\.\.\n.*install .*\.\.\.\ninstalled \d+ packages")

    def test_a_list_is_printed_and_nothing_is_installed(self):
        result = self.install("cross", "--list")
        self.assertEqual(result.returncode, 0, result.stderr)
        self.assertLess({"libdpdk-dev", "g++-aarch64-linux-gnu", "qemu-user"}, set(result.stdout.split()))
        self.assertEqual(self.log.read_text(), "")

    def test_without_a_network_it_ends_with_the_error_of_apt(self):
        result = self.install(FAKE_OFFLINE="yes")
        self.assertEqual(result.returncode, 1)
        self.assertNotIn("install", self.log.read_text())
        self.assertIn("Could not resolve 'deb.debian.org'", result.stderr)
        self.assertRegex(result.stderr, r"failed: apt-get .*update")
        self.assertRegex(result.stderr, r"missing: g\+\+ meson .*\n.*\n.*tools/quickstart --no-install")

    def test_a_network_that_answers_nothing_is_not_waited_for_long(self):
        result = self.install(FAKE_UPDATE_TAKES="50", ZTCP_PACKAGES_LIMIT="1")
        self.assertEqual(result.returncode, 1)
        self.assertIn("no end within 1 s\nfailed: apt-get", result.stderr)
        self.assertIn("Acquire::http::Timeout=15", result.stderr)

    def test_a_user_without_sudo_is_given_the_administrators_line(self):
        result = self.install(FAKE_UID="1000", FAKE_SUDO="no")
        self.assertEqual(result.returncode, 1)
        self.assertEqual(self.log.read_text(), "")
        self.assertIn("only root can install them:\n  apt-get install --no-install-recommends g++", result.stderr)

    def test_a_long_installation_shows_its_progress(self):
        result = self.install(FAKE_TAKES="3", ZTCP_PACKAGES_TICK="0.5")
        self.assertEqual(result.returncode, 0, result.stderr)
        self.assertIn("in progress: Get:1 g++", result.stdout)


if __name__ == "__main__":
    unittest.main()
