#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""NCCL_NET=ztcp in /etc/nccl.conf: written on request, removed with the package, and never at the
cost of another line. The packages' scripts run with other paths in place of the host's.
"""
import os
import pathlib
import shutil
import subprocess
import tempfile
import unittest

PACKAGING = pathlib.Path(__file__).resolve().parents[2] / "packaging"
SCRIPT = PACKAGING / "nccl-conf"
LINE = "NCCL_NET=ztcp"
# The part of debconf's protocol that the scripts use: answers in files.
CONFMODULE = """
db_get() { RET=$(cat "$ANSWERS/${1##*/}"); }
db_set() { printf %s "$2" >"$ANSWERS/${1##*/}"; }
db_input() { echo "$1 ${2##*/}" >>"$ANSWERS/asked"; return 30; }
db_go() { :; }
db_stop() { :; }
"""


def variables(text):
    """As NCCL reads the file: the first line that names a variable counts; old releases know no
    comments."""
    found = {}
    for line in text.splitlines():
        name, equals, value = line.partition("=")
        if equals:
            found.setdefault(name, value)
    return found


class NcclConf(unittest.TestCase):
    def setUp(self):
        self.folder = pathlib.Path(tempfile.mkdtemp())
        self.addCleanup(shutil.rmtree, self.folder)
        self.file = self.folder / "nccl.conf"

    def run_script(self, action, status=0, path=""):
        done = subprocess.run([SCRIPT, action, self.file], capture_output=True, text=True, check=False,
                              env=os.environ | {"PATH": f"{path}:{os.environ['PATH']}"})
        self.assertEqual(done.returncode, status, done.stderr)
        self.assertEqual([p.name for p in self.folder.iterdir() if p.name.endswith("-new")], [])
        return done.stdout + done.stderr

    def test_writes_one_line_and_takes_it_away(self):
        self.run_script("demand")
        self.run_script("demand")
        self.assertEqual(variables(self.file.read_text()), {"NCCL_NET": "ztcp"})
        self.assertEqual(self.file.read_text().count(LINE), 1)
        self.assertEqual(self.file.stat().st_mode & 0o777, 0o644)
        self.run_script("release")
        self.assertFalse(self.file.exists())
        self.run_script("release")

    def test_other_lines_stay_as_they_are(self):
        before = "# site\n\nNCCL_DEBUG=WARN\n NCCL_NET=x\nNCCL_SOCKET_IFNAME=eth0\n"
        self.file.write_text(before)
        self.file.chmod(0o640)
        self.run_script("demand")
        self.assertEqual(variables(self.file.read_text()),
                         variables(before) | {"NCCL_NET": "ztcp"})
        self.assertEqual(self.file.stat().st_mode & 0o777, 0o640)
        self.file.write_text(self.file.read_text() + "NCCL_IB_DISABLE=1\n")
        self.run_script("release")
        self.assertEqual(self.file.read_text(), before + "NCCL_IB_DISABLE=1\n")
        self.assertEqual(self.file.stat().st_mode & 0o777, 0o640)

    def test_a_last_line_without_an_end(self):
        self.file.write_text("NCCL_DEBUG=WARN")
        self.run_script("demand")
        self.assertEqual(variables(self.file.read_text()), {"NCCL_DEBUG": "WARN", "NCCL_NET": "ztcp"})
        self.run_script("release")
        self.assertEqual(self.file.read_text(), "NCCL_DEBUG=WARN\n")

    def test_a_line_of_the_users_own_stays(self):
        for own, status in ((LINE, 0), ("NCCL_NET=Socket", 1)):
            self.file.write_text(f"{own}\n")
            said = self.run_script("demand", status)
            self.assertTrue(status == 0 or own in said, said)
            self.run_script("release")
            self.assertEqual(self.file.read_text(), f"{own}\n")

    def test_a_line_that_was_changed_since_stays(self):
        self.run_script("demand")
        self.file.write_text(self.file.read_text().replace(LINE, "NCCL_NET=IB"))
        self.run_script("release")
        self.assertEqual(self.file.read_text(), "NCCL_NET=IB\n")

    def test_a_link_stays_a_link(self):
        real = self.folder / "site.conf"
        real.write_text("NCCL_DEBUG=WARN\n")
        self.file.symlink_to(real)
        self.run_script("demand")
        self.run_script("release")
        self.assertTrue(self.file.is_symlink())
        self.assertEqual(real.read_text(), "NCCL_DEBUG=WARN\n")

    def test_a_path_that_is_no_file_is_refused(self):
        os.mkfifo(self.file)
        self.assertIn("is no file", self.run_script("demand", 1))
        self.assertIn("is no file", self.run_script("release", 1))


    def test_a_file_that_can_not_be_rewritten_stays(self):
        broken = self.folder / "bin"
        broken.mkdir()
        (broken / "awk").write_text("#!/bin/sh\nexit 3\n")
        (broken / "awk").chmod(0o755)
        self.file.write_text("NCCL_DEBUG=WARN\n")
        self.run_script("demand", 3, broken)
        self.assertEqual(self.file.read_text(), "NCCL_DEBUG=WARN\n")
        self.run_script("demand")
        before = self.file.read_text()
        self.run_script("release", 3, broken)
        self.assertEqual(self.file.read_text(), before)

    def test_a_file_at_the_temporary_name_is_not_written_to(self):
        other = self.folder / "other"
        other.write_text("theirs")
        (self.folder / "nccl.conf.ztcp-new").symlink_to(other)
        self.run_script("demand")
        self.assertEqual(other.read_text(), "theirs")
        self.assertEqual(variables(self.file.read_text()), {"NCCL_NET": "ztcp"})


class Debian(unittest.TestCase):
    """The maintainer scripts, with debconf's answers in files."""

    def setUp(self):
        self.folder = pathlib.Path(tempfile.mkdtemp())
        self.addCleanup(shutil.rmtree, self.folder)
        self.file = self.folder / "nccl.conf"
        self.answers = self.folder / "answers"
        self.answers.mkdir()
        for name in ("demand", "demanded"):
            (self.answers / name).write_text("false")
        (self.folder / "confmodule").write_text(CONFMODULE)
        script = SCRIPT.read_text().replace("/etc/nccl.conf", str(self.file))
        (self.folder / "nccl-conf").write_text(script)
        (self.folder / "nccl-conf").chmod(0o755)

    def run_script(self, name, *arguments, **variables):
        text = (PACKAGING / f"debian/libnccl-net-ztcp.{name}").read_text()
        for path, other in (("/usr/share/debconf/confmodule", self.folder / "confmodule"),
                            ("/usr/share/libnccl-net-ztcp/nccl-conf", self.folder / "nccl-conf"),
                            ("/usr/lib/x86_64-linux-gnu", self.folder)):
            text = text.replace(path, str(other))
        done = subprocess.run(["/bin/sh", "-s", *arguments], input=text, text=True, check=False,
                              capture_output=True,
                              env=os.environ | {"ANSWERS": str(self.answers)} | variables)
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertEqual(done.stdout, "", "stdout is debconf's")

    def answer(self, demand):
        (self.answers / "demand").write_text("true" if demand else "false")

    def install(self, old=""):
        self.run_script("config", "configure", old)
        self.run_script("postinst", "configure", old)

    def demanded(self):
        return self.file.exists() and variables(self.file.read_text()).get("NCCL_NET") == "ztcp"

    def test_asks_and_writes_nothing_by_itself(self):
        self.install()
        # By default debconf shows questions of priority high and above.
        self.assertEqual((self.answers / "asked").read_text(), "high demand\n")
        self.assertFalse(self.file.exists())
        for field in ("Type: boolean", "Default: false"):
            self.assertIn(field, (PACKAGING / "debian/libnccl-net-ztcp.templates").read_text())

    def test_the_answer_yes_writes_the_line_until_the_package_is_removed(self):
        self.file.write_text("NCCL_DEBUG=WARN\n")
        self.answer(True)
        self.install()
        self.assertTrue(self.demanded())
        self.run_script("prerm", "upgrade", "2")
        self.install("1")
        self.assertTrue(self.demanded())
        self.run_script("prerm", "remove")
        self.assertEqual(self.file.read_text(), "NCCL_DEBUG=WARN\n")
        self.install("1")
        self.assertTrue(self.demanded(), "installed again the answer holds again")
        self.answer(False)
        self.install("1")
        self.assertFalse(self.demanded())

    def test_later_changes_of_the_administrator_are_kept(self):
        self.answer(True)
        self.install()
        self.file.write_text("# no\n")
        self.install("1")
        self.assertEqual(self.file.read_text(), "# no\n", "a line taken out by hand stays out")
        self.answer(False)
        self.install("1")
        self.file.write_text(f"{LINE}\n")
        self.install("1")
        self.run_script("prerm", "remove")
        self.assertEqual(self.file.read_text(), f"{LINE}\n", "a line put in by hand stays in")

    def test_reconfiguring_with_the_same_answer_writes_the_line_again(self):
        self.answer(True)
        self.install()
        self.file.unlink()
        self.run_script("postinst", "configure", "1", DEBCONF_RECONFIGURE="1")
        self.assertTrue(self.demanded())

    def test_a_line_of_the_users_own_does_not_stop_an_installation(self):
        self.file.write_text("NCCL_NET=Socket\n")
        self.answer(True)
        self.install()
        self.assertEqual(self.file.read_text(), "NCCL_NET=Socket\n")


class Tarball(unittest.TestCase):
    def test_installs_the_line_only_when_asked(self):
        folder = pathlib.Path(tempfile.mkdtemp())
        self.addCleanup(shutil.rmtree, folder)
        conf = folder / "nccl.conf"
        conf.write_text("NCCL_DEBUG=WARN\n")
        unpacked, prefix = folder / "ztcp", folder / "prefix"
        for name in ("lib/libnccl-net.so", "bin/ztcp_perf", "sbin/ztcp_setup", "share/doc/ztcp-tools/README.md"):
            (unpacked / name).parent.mkdir(parents=True, exist_ok=True)
            (unpacked / name).write_text(name)
        script = unpacked / "share/libnccl-net-ztcp/nccl-conf"
        script.parent.mkdir(parents=True)
        script.write_text(SCRIPT.read_text().replace("/etc/nccl.conf", str(conf)))
        script.chmod(0o755)
        shutil.copy(PACKAGING / "tarball/install", unpacked / "install")

        def install(*options):
            subprocess.run([unpacked / "install", "--prefix", prefix, *options], check=True, capture_output=True)

        install()
        self.assertEqual(conf.read_text(), "NCCL_DEBUG=WARN\n")
        install("--demand")
        self.assertEqual(variables(conf.read_text()).get("NCCL_NET"), "ztcp")
        install()
        self.assertEqual(variables(conf.read_text()).get("NCCL_NET"), "ztcp", "an upgrade changes nothing")
        install("--remove")
        self.assertEqual(conf.read_text(), "NCCL_DEBUG=WARN\n")
        self.assertFalse((prefix / "share/libnccl-net-ztcp").exists())


if __name__ == "__main__":
    unittest.main()
