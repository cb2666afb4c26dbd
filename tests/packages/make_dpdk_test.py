#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
# Copyright the ztcp authors
"""packaging/make-dpdk with a stand-in for apt-get, which hands out a small package."""
import os
import pathlib
import platform
import shutil
import subprocess
import tempfile
import unittest

SCRIPT = pathlib.Path(__file__).resolve().parents[2] / "packaging/make-dpdk"
ARCH = platform.machine()
LIBDIR = f"usr/lib/{ARCH}-linux-gnu"
SOURCE = """long __isoc23_strtol(const char*, char**, int);
unsigned long __strlcpy_chk(char*, const char*, unsigned long, unsigned long);
long call(char* text) { return __isoc23_strtol(text, 0, 0) + (long)__strlcpy_chk(text, text, 1, 1); }
"""
PC = """prefix=/usr
libdir=${prefix}/lib
Name: DPDK
Description: stand-in
Version: 24.11.99
Requires.private: libmana
"""
# Writes down the sources that `update` gets and the package that is asked for.
APT_GET = """#!/bin/sh
echo "$*" >>"$FAKE_LOG"
case "$*" in
  indextargets*) printf '%s\n' ${FAKE_MIRROR-http://mirror.invalid/debian} ;;
  *update) cp "$APT_CONFIG" "$FAKE_LOG.conf"; cp apt/sources.list "$FAKE_LOG.sources"
    [ -z "${FAKE_UNSIGNED:-}" ] || { echo "E: The repository is not signed."; exit 100; } ;;
  *download*) cp "$FAKE_DEB" . ;;
esac
"""


def run(*command, **more):
    return subprocess.run(command, check=True, capture_output=True, text=True, **more).stdout


@unittest.skipUnless(pathlib.Path("/usr/share/keyrings/debian-archive-keyring.gpg").exists(),
                     "this is not Debian")
class MakeDpdk(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.made = tempfile.TemporaryDirectory()
        cls.addClassCleanup(cls.made.cleanup)
        made = pathlib.Path(cls.made.name)
        libdir = made / "package" / LIBDIR
        (libdir / "pkgconfig").mkdir(parents=True)
        (made / "call.c").write_text(SOURCE)
        run("cc", "-c", "-fno-builtin", "call.c", cwd=made)
        run("ar", "rcD", libdir / "librte_eal.a", "call.o", cwd=made)
        for name in ("libdpdk", "libdpdk-libs"):
            (libdir / f"pkgconfig/{name}.pc").write_text(PC)
        debian = run("dpkg", "--print-architecture").strip()
        (made / "package/DEBIAN").mkdir()
        (made / "package/DEBIAN/control").write_text(
            f"Package: libdpdk-dev\nSource: dpdk\nVersion: 24.11.99-1\nArchitecture: {debian}\n"
            "Maintainer: nobody <nobody@invalid>\nDescription: stand-in\n")
        cls.deb = made / f"libdpdk-dev_24.11.99-1_{debian}.deb"
        run("dpkg-deb", "--root-owner-group", "--build", made / "package", cls.deb)

    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.tree = pathlib.Path(folder.name).resolve()
        (self.tree / "packaging").mkdir()
        shutil.copy(SCRIPT, self.tree / "packaging")
        (self.tree / "bin").mkdir()
        (self.tree / "bin/apt-get").write_text(APT_GET)
        (self.tree / "bin/apt-get").chmod(0o755)
        self.log = self.tree / "log"

    def make(self, *arguments, **variables):
        environment = {**os.environ, "PATH": f"{self.tree}/bin:{os.environ['PATH']}", "FAKE_LOG": str(self.log),
                       "FAKE_DEB": str(self.deb), **variables}
        return subprocess.run([self.tree / "packaging/make-dpdk", *arguments], env=environment, text=True,
                              capture_output=True, timeout=120, check=False)

    def left(self):
        return {path.name for path in self.tree.iterdir()} - {"packaging", "bin"} - {
            path.name for path in self.tree.glob("log*")}

    def test_makes_archives_that_the_older_c_library_can_link(self):
        done = self.make()
        self.assertEqual(done.returncode, 0, done.stderr)
        folder = self.tree / "build-dpdk"
        self.assertEqual(done.stdout, f"{folder}/{LIBDIR}/pkgconfig\n")
        called = run("nm", "-u", "--format=just-symbols", folder / LIBDIR / "librte_eal.a").split()
        self.assertLessEqual({"strtol", "strlcpy"}, set(called))
        self.assertEqual([name for name in called if name.startswith(("__isoc23", "__strlcpy"))], [])
        self.assertTrue((folder / LIBDIR / "libbsd.a").exists())

    def test_pkg_config_finds_it_without_what_it_requires(self):
        found = self.make().stdout.strip()
        told = run("pkg-config", "--modversion", "libdpdk", env={**os.environ, "PKG_CONFIG_PATH": found})
        self.assertEqual(told, "24.11.99\n")
        told = run("pkg-config", "--variable=libdir", "libdpdk", env={**os.environ, "PKG_CONFIG_PATH": found})
        self.assertEqual(told, f"{self.tree}/build-dpdk/usr/lib\n")

    def test_records_the_package_of_each_file(self):
        self.make()
        lines = (self.tree / "build-dpdk/files").read_text().splitlines()
        self.assertIn(f"{LIBDIR}/librte_eal.a\tlibdpdk-dev\tdpdk\t24.11.99-1", lines)

    def test_takes_the_release_that_was_asked_for_with_the_keys_of_debian(self):
        self.make()
        self.assertIn("download libdpdk-dev=24.11.*\n", self.log.read_text())
        line = pathlib.Path(f"{self.log}.sources").read_text()
        self.assertRegex(line, r"^deb \[arch=\w+ signed-by=/usr/share/keyrings/debian-archive-keyring\.gpg\] "
                               r"http://mirror\.invalid/debian trixie main\n$")
        self.assertIn('Dir::Etc::sourceparts "/dev/null";', pathlib.Path(f"{self.log}.conf").read_text())

    def test_takes_security_updates_from_their_mirror_if_apt_has_one(self):
        self.make(FAKE_MIRROR="http://mirror.invalid/debian http://other.invalid/debian-security")
        lines = pathlib.Path(f"{self.log}.sources").read_text().splitlines()
        self.assertEqual([line.partition("] ")[2] for line in lines],
                         ["http://mirror.invalid/debian trixie main",
                          "http://other.invalid/debian-security trixie-security main"])

    def test_the_second_call_fetches_nothing(self):
        first = self.make()
        self.log.unlink()
        second = self.make()
        self.assertEqual((second.returncode, second.stdout, second.stderr), (0, first.stdout, ""))
        self.assertFalse(self.log.exists())

    def test_a_changed_recipe_makes_it_anew(self):
        self.make()
        self.log.unlink()
        with open(self.tree / "packaging/make-dpdk", "a", encoding="ascii") as script:
            script.write("# changed\n")
        self.assertEqual(self.make().returncode, 0)
        self.assertIn("download", self.log.read_text())

    def test_a_mirror_that_apt_refuses_leaves_nothing_behind(self):
        done = self.make(FAKE_UNSIGNED="yes")
        self.assertEqual(done.returncode, 1)
        self.assertIn("E: The repository is not signed.", done.stderr)
        self.assertIn("packaging/make-dpdk: apt-get update failed", done.stderr)
        self.assertEqual(self.left(), set())

    def test_without_a_debian_mirror_it_says_so(self):
        done = self.make(FAKE_MIRROR="http://mirror.invalid/ubuntu")
        self.assertEqual(done.returncode, 1)
        self.assertIn("apt is set up with no Debian mirror", done.stderr)
        self.assertEqual(self.left(), set())

    def test_refuses_architectures_that_ztcp_does_not_have(self):
        done = self.make("--arch", "riscv64")
        self.assertEqual(done.returncode, 1)
        self.assertIn("--arch riscv64: wanted x86_64 or aarch64", done.stderr)


if __name__ == "__main__":
    unittest.main()
