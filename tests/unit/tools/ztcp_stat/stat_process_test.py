#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
# Copyright the ztcp authors
"""ztcp_stat beside a real job over kernel sockets: views, verdicts, a stopped and a killed rank.

Usage: stat_process_test.py ZTCP_STAT ZTCP_PERF PLUGIN
"""
import fcntl
import json
import os
import pathlib
import pty
import select
import signal
import subprocess
import sys
import tempfile
import termios
import time
import unittest

STAT, PERF, PLUGIN = sys.argv[1:4]
LIMIT_S = 60
OTHER_CONFIG = '''schema = 1

[[nic]]
name = "lo0"
driver = "socket"
interface = "lo"
address = "127.0.0.1/8"
'''
RANKS = 3


def stat(*arguments, **more):
    return subprocess.run([STAT, *arguments], text=True, capture_output=True, timeout=LIMIT_S,
                          check=False, **more)


def wait_until(condition):
    deadline = time.monotonic() + LIMIT_S
    while not condition():
        if time.monotonic() > deadline:
            raise AssertionError("waited too long")
        time.sleep(0.05)


class Job:
    """Ranks that exchange messages until the end of the test."""

    def __enter__(self):
        self.home = tempfile.TemporaryDirectory()
        self.folder = pathlib.Path(self.home.name) / "ztcp"
        clean = {k: v for k, v in os.environ.items() if not k.startswith(("ZTCP_", "NCCL_", "SLURM_", "OMPI_"))}
        self.perf = subprocess.Popen(
            [PERF, "--plugin", PLUGIN, "--op", "all_to_all", "--ranks", str(RANKS), "--min", "64K",
             "--max", "64K", "--iters", "10000000"],
            env={**clean, "XDG_RUNTIME_DIR": self.home.name, "ZTCP_CONFIG": self.home.name + "/no.conf",
                 "ZTCP_TRANSPORT": "sockets", "NCCL_SOCKET_IFNAME": "lo"},
            stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        wait_until(lambda: len(self.pages()) == RANKS or self.perf.poll() is not None)
        return self

    def __exit__(self, *_):
        for pid in self.ranks():
            os.kill(pid, signal.SIGKILL)
        self.perf.kill()
        self.perf.wait()
        self.home.cleanup()

    def ranks(self):
        try:
            with open(f"/proc/{self.perf.pid}/task/{self.perf.pid}/children") as file:
                return [int(child) for child in file.read().split()]
        except FileNotFoundError:
            return []

    def pages(self):
        return sorted(self.folder.glob("*.page"))

    def document(self):
        result = stat("--once", "--json", "--folder", self.folder)
        assert result.returncode == 0, result.stderr
        return json.loads(result.stdout)

    def why(self):
        result = stat("why", "--json", "--seconds", "1", "--folder", self.folder)
        return result.returncode, json.loads(result.stdout)["findings"]


class Views(unittest.TestCase):
    def test_a_running_job(self):
        with Job() as job:
            processes = job.document()["processes"]
            self.assertEqual({p["pid"] for p in processes}, set(job.ranks()))
            self.assertTrue(all(p["running"] and not p["stopped"] for p in processes))
            self.assertEqual({p["rank"] for p in processes}, set(range(RANKS)))
            self.assertEqual({p["ranks"] for p in processes}, {RANKS})
            text = stat("--once", "--folder", job.folder).stdout
            self.assertIn(f"{RANKS} processes", text)
            self.assertNotIn("\033", text, "colour outside a terminal")
            one = job.ranks()[0]
            only = stat("--once", "--json", "--folder", job.folder, "--pid", str(one))
            self.assertEqual([p["pid"] for p in json.loads(only.stdout)["processes"]], [one])

    def test_metrics_of_selected_processes(self):
        with Job() as job:
            one = job.ranks()[0]
            for words, wanted in (((), RANKS), (("--pid", str(one)), 1)):
                self.assertEqual(stat("--prometheus", job.home.name, "--folder", job.folder, *words).returncode, 0)
                text = (pathlib.Path(job.home.name) / "ztcp.prom").read_text()
                running = [line for line in text.splitlines() if line.startswith("ztcp_process_running{")]
                self.assertEqual(len(running), wanted, text[:2000])
                self.assertTrue(any(f'pid="{one}"' in line for line in running), running)

    def test_metrics_of_one_config(self):
        with Job() as job:
            # A config that the job has not read: its processes are left out.
            other = pathlib.Path(job.home.name) / "other.conf"
            other.write_text(OTHER_CONFIG)
            written = stat("--prometheus", job.home.name, "--config", other,
                           env={**os.environ, "XDG_RUNTIME_DIR": job.home.name})
            self.assertEqual(written.returncode, 0, written.stderr)
            self.assertNotIn("ztcp_process_running{", (pathlib.Path(job.home.name) / "ztcp.prom").read_text())

    def test_watch_prints_a_line_for_each_look(self):
        with Job() as job, subprocess.Popen([STAT, "--json", "--watch", "0.2", "--folder", job.folder],
                                            stdout=subprocess.PIPE, text=True) as watch:
            for _ in range(3):
                self.assertEqual(len(json.loads(watch.stdout.readline())["processes"]), RANKS)
            watch.send_signal(signal.SIGINT)
            rest = watch.stdout.read()
            self.assertEqual(watch.wait(LIMIT_S), -signal.SIGINT)
            self.assertTrue(rest == "" or rest.endswith("}\n"), "a view was cut off")

    def test_a_view_is_whole_after_an_interrupted_write(self):
        with Job() as job, subprocess.Popen([STAT, "--json", "--watch", "0.1", "--folder", job.folder],
                                            stdout=subprocess.PIPE, text=True) as watch:
            # The pipe, of 4 KiB, is full after the first view.
            fcntl.fcntl(watch.stdout, fcntl.F_SETPIPE_SZ, 4096)
            time.sleep(1)
            watch.send_signal(signal.SIGINT)
            time.sleep(0.2)
            lines = watch.stdout.read().splitlines()
            self.assertGreaterEqual(len(lines), 1)
            for line in lines:
                self.assertEqual(len(json.loads(line)["processes"]), RANKS)

    def test_a_reader_that_has_gone_ends_it_quietly(self):
        with Job() as job, subprocess.Popen([STAT, "--json", "--watch", "0.2", "--folder", job.folder],
                                            stdout=subprocess.PIPE, stderr=subprocess.PIPE) as watch:
            watch.stdout.close()
            self.assertEqual(watch.wait(LIMIT_S), 0)
            self.assertEqual(watch.stderr.read(), b"")

    def test_a_damaged_page_is_listed(self):
        with Job() as job:
            (job.folder / "0.page").write_bytes(b"no page" * 1000)
            document = job.document()
            self.assertEqual(len(document["processes"]), RANKS)
            self.assertEqual([pathlib.Path(d["file"]).name for d in document["damaged"]], ["0.page"])

    def test_live_view_gives_the_terminal_back(self):
        for end in (b"q", b"\x03"):
            with self.subTest(end), Job() as job:
                master, slave = pty.openpty()
                before = termios.tcgetattr(slave)
                live = subprocess.Popen([STAT, "--folder", job.folder], stdin=slave, stdout=slave, stderr=slave,
                                        env={**os.environ, "TERM": "xterm", "NO_COLOR": "1"}, start_new_session=True)
                seen = b""
                deadline = time.monotonic() + LIMIT_S
                while b"processes" not in seen and time.monotonic() < deadline:
                    if select.select([master], [], [], 1)[0]:
                        seen += os.read(master, 65536)
                self.assertIn(b"\033[?1049h", seen)
                self.assertNotIn(b"\033[1m", seen, "colour despite NO_COLOR")
                if end == b"q":
                    os.write(master, end)
                else:
                    live.send_signal(signal.SIGINT)
                while live.poll() is None:
                    if select.select([master], [], [], 0.1)[0]:
                        seen += os.read(master, 65536)
                while select.select([master], [], [], 0.1)[0]:
                    seen += os.read(master, 65536)
                self.assertEqual(live.returncode, 0 if end == b"q" else -signal.SIGINT)
                self.assertTrue(seen.endswith(b"\033[?1049l"), seen[-40:])
                self.assertEqual(termios.tcgetattr(slave), before)
                os.close(master)
                os.close(slave)


class Verdicts(unittest.TestCase):
    def test_a_stopped_rank_is_named(self):
        with Job() as job:
            stopped = job.ranks()[1]
            os.kill(stopped, signal.SIGSTOP)
            status, findings = job.why()
            self.assertEqual(status, 1)
            self.assertEqual(findings[0]["rule"], "stopped", findings)
            self.assertIn(f"process {stopped} ", findings[0]["subject"])

    def test_a_killed_rank_is_named_and_its_page_read(self):
        with Job() as job:
            killed = job.ranks()[0]
            page = next(p["file"] for p in job.document()["processes"] if p["pid"] == killed)
            # Its peers would end at once.
            for pid in job.ranks():
                os.kill(pid, signal.SIGSTOP)
            os.kill(killed, signal.SIGKILL)
            status, findings = job.why()
            self.assertEqual(status, 1)
            crash = [f for f in findings if f["rule"] == "crashed"]
            self.assertEqual(len(crash), 1, findings)
            self.assertIn(page, crash[0]["command"])
            last = stat("--after-crash", page)
            self.assertEqual(last.returncode, 0, last.stderr)
            self.assertIn("died", last.stdout)
            self.assertEqual(stat("why", "--after-crash", page).returncode, 1)

    def test_nothing_to_look_at(self):
        with tempfile.TemporaryDirectory() as empty:
            for words in ((), ("--json",), ("why",)):
                result = stat(*words, "--folder", empty)
                self.assertEqual(result.returncode, 3)
                self.assertEqual(result.stdout, "")

    def test_wrong_usage(self):
        for words in (("--watch", "0"), ("--pid", "x"), ("nothing",), ("--folder", "/a", "--config", "/b"),
                      ("--config", "/nonexistent/ztcp.conf")):
            self.assertEqual(stat(*words).returncode, 2, words)


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1])
