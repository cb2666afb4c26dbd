#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
# Copyright the ztcp authors
"""Runs the commands of packaging/container/Containerfile in bare roots instead of images.

  containerfile_test.py FOREIGN      a shared library with the SONAME libnccl-net.so

Without root a user namespace gives the right to chroot; without either the test is skipped.
try_tarball runs the recipe once more, in a Debian with the real tarball.
"""
import io
import os
import pathlib
import re
import shutil
import subprocess
import sys
import tarfile
import tempfile
import unittest

PACKAGING = pathlib.Path(__file__).resolve().parents[2] / "packaging"
RECIPE = (PACKAGING / "container/Containerfile").read_text()
FOREIGN = pathlib.Path(sys.argv.pop())
PATH = "/usr/sbin:/usr/bin:/sbin:/bin"
PROGRAMS = "sh tar gzip sed grep ls mv cp rm mkdir cat cut sort find dirname readlink sha256sum".split()
OURS = b"\x7fELF, as far as anybody looks"
LEND = [] if os.geteuid() == 0 else ["unshare", "--user", "--map-root-user"]
SKIP = 77


def recipe():
    """(pattern of the copied file, its place, defaults of the arguments, the commands of RUN)"""
    pattern, place = re.search(r"^COPY (\S+) (\S+)$", RECIPE, re.M).groups()
    arguments = dict(re.findall(r'^ARG (\w+)="?([^"\n]*)"?$', RECIPE, re.M))
    run, = re.findall(r"^RUN ((?:.*\\\n)*.*)$", RECIPE, re.M)
    return pattern, place, arguments, run.replace("\\\n", "")


class Containerfile(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory(prefix="ztcp-root-")
        self.addCleanup(folder.cleanup)
        self.root = pathlib.Path(folder.name)
        for name in ("bin", "sbin", "lib", "lib64"):
            (self.root / "usr" / name).mkdir(parents=True)
            (self.root / name).symlink_to(f"usr/{name}")
        for name in ("tmp", "dev", "etc", "usr/local/lib", "usr/lib/x86_64-linux-gnu"):
            (self.root / name).mkdir(parents=True)
        (self.root / "dev/null").touch()
        (self.root / "etc/ld.so.conf").write_text("/usr/local/lib\n")
        for name in PROGRAMS:
            program = shutil.which(name, path=PATH)
            shutil.copy(program, self.root / "usr/bin" / name)
            listed = subprocess.run(["ldd", program], capture_output=True, text=True, check=False).stdout
            for library in re.findall(r"(/\S+)", listed):
                (self.root / library[1:]).parent.mkdir(parents=True, exist_ok=True)
                shutil.copy(library, self.root / library[1:])
        # /sbin/ldconfig may be a script around the real one.
        shutil.copy(shutil.which("ldconfig.real", path=PATH) or shutil.which("ldconfig", path=PATH),
                    self.root / "usr/sbin/ldconfig")
        self.pattern, self.place, self.arguments, self.run_line = recipe()
        self.inside("ldconfig")

    def inside(self, command, **environment):
        return subprocess.run(
            [*LEND, shutil.which("chroot", path=PATH), self.root, "/bin/sh", "-c", command],
            env={"PATH": PATH, **environment}, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
            check=False)

    def build(self, content=OURS, **environment):
        """Does COPY and RUN with a tarball of the real installer and a few stand-ins."""
        with tarfile.open(self.root / self.place[1:], "w:gz") as tarball:
            for name, data, mode in (("install", (PACKAGING / "tarball/install").read_bytes(), 0o755),
                                     ("lib/libnccl-net.so", content, 0o755), ("bin/ztcp_perf", b"", 0o755),
                                     ("sbin/ztcp_setup", b"", 0o755), ("share/doc/ztcp-tools/README.md", b"", 0o644)):
                entry = tarfile.TarInfo(f"ztcp-1.2.3-linux-x86_64/{name}")
                entry.size, entry.mode = len(data), mode
                tarball.addfile(entry, io.BytesIO(data))
        return self.inside(self.run_line, **self.arguments | environment)

    def place_foreign(self, path):
        (self.root / path[1:]).parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(FOREIGN, self.root / path[1:])
        self.inside("ldconfig")

    def library(self, path="/usr/lib/x86_64-linux-gnu/libnccl-net.so"):
        return (self.root / path[1:]).read_bytes()

    def loader_finds(self):
        return re.findall(r"^\s*libnccl-net\.so .*=> (.*)$", self.inside("ldconfig && ldconfig -p").stdout, re.M)

    def refused(self, naming, **environment):
        done = self.build(**environment)
        self.assertNotEqual(done.returncode, 0, done.stdout)
        self.assertIn(f'--build-arg SWITCH_OFF="{naming}"', done.stdout)
        self.assertFalse((self.root / "usr/bin/ztcp_perf").exists())
        shutil.rmtree(self.root / "tmp/ztcp")  # Leftovers of a failed build are in no image.

    def test_installs_where_nccl_images_look_and_leaves_nothing_else(self):
        done = self.build()
        self.assertEqual(done.returncode, 0, done.stdout)
        self.assertEqual(self.library(), OURS)
        self.assertTrue((self.root / "usr/bin/ztcp_perf").exists())
        self.assertEqual(list((self.root / "tmp").iterdir()), [])

    def test_the_library_can_go_to_another_folder(self):
        done = self.build(LIBDIR="/usr/lib64")
        self.assertEqual(done.returncode, 0, done.stdout)
        self.assertEqual(self.library("/usr/lib64/libnccl-net.so"), OURS)

    def test_a_plugin_in_the_loaders_path_stops_it_until_it_is_switched_off(self):
        other = "/usr/local/lib/libnccl-net.so"
        self.place_foreign(other)
        self.refused(other)
        done = self.build(SWITCH_OFF=other)
        self.assertEqual(done.returncode, 0, done.stdout)
        self.assertEqual(self.library(), OURS)
        # ldconfig makes a link of the SONAME's name to any lib*.so*, libnccl-net.so_bak included.
        self.assertNotIn(other, self.loader_finds())
        self.assertFalse((self.root / other[1:]).exists())

    def test_a_plugin_in_the_librarys_place_stops_it_until_it_is_switched_off(self):
        other = "/usr/lib/x86_64-linux-gnu/libnccl-net.so"
        self.place_foreign(other)
        self.refused(other)
        done = self.build(SWITCH_OFF=other)
        self.assertEqual(done.returncode, 0, done.stdout)
        self.assertEqual(self.library(), OURS)

    def test_plugins_in_ld_library_path_are_named_once(self):
        first, second = "/opt/hpcx/lib/libnccl-net.so", "/usr/local/lib/libnccl-net.so"
        for other in (first, second):
            self.place_foreign(other)
        folders = "/opt/hpcx/lib:/none:/usr/local/lib"
        self.refused(f"{first} {second}", LD_LIBRARY_PATH=folders)
        done = self.build(SWITCH_OFF=f"{first} {second}", LD_LIBRARY_PATH=folders)
        self.assertEqual(done.returncode, 0, done.stdout)
        self.assertEqual(self.library(), OURS)

    def test_a_newer_ztcp_replaces_the_one_of_an_image(self):
        self.assertEqual(self.build(FOREIGN.read_bytes()).returncode, 0)
        self.assertEqual(len(self.loader_finds()), 1)
        done = self.build()
        self.assertEqual(done.returncode, 0, done.stdout)
        self.assertEqual(self.library(), OURS)

    def test_copies_the_file_that_build_tarball_makes(self):
        made = re.search(r"^name=(\S+)$", (PACKAGING / "build-tarball").read_text(), re.M).group(1)
        for arch in (self.arguments["ARCH"], "aarch64"):
            name = made.replace("$version", "1.2.3").replace("$arch", arch) + ".tar.gz"
            self.assertTrue(pathlib.PurePath(name).match(self.pattern.replace("${ARCH}", arch)))


if __name__ == "__main__":
    if LEND and subprocess.run([*LEND, "true"], capture_output=True, check=False).returncode != 0:
        print("neither root nor user namespaces: no right to chroot")
        sys.exit(SKIP)
    unittest.main()
