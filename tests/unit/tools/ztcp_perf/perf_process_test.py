#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
# Copyright the ztcp authors
"""ztcp_perf over the reference plugin: real processes on loopback, and their failures.

Usage: perf_process_test.py ZTCP_PERF REFERENCE_PLUGIN FAULTY_PLUGIN
"""
import hmac
import json
import os
import re
import shutil
import signal
import socket
import struct
import subprocess
import sys
import tempfile
import time
import unittest

from processes import LIMIT_S, environment, free_port, wait_until

PERF, REFERENCE, FAULTY = sys.argv[1:4]


def perf(*arguments, plugin=REFERENCE, **env):
    return subprocess.run([PERF, "--plugin", plugin, *arguments], env=environment(**env), text=True,
                          capture_output=True, timeout=LIMIT_S, check=False)


def start(*arguments, plugin=REFERENCE, **env):
    return subprocess.Popen([PERF, "--plugin", plugin, *arguments], env=environment(**env),
                            text=True, stdout=subprocess.PIPE, stderr=subprocess.PIPE)


def children_of(pid):
    with open(f"/proc/{pid}/task/{pid}/children") as file:
        return [int(child) for child in file.read().split()]


OPERATIONS = ("all_reduce, all_gather, reduce_scatter, all_to_all, broadcast, sendrecv, ping, collnet, collnet_all_gather, "
              "collnet_reduce_scatter")


class Operations(unittest.TestCase):
    def check_op(self, op, ranks, *more):
        result = perf("--op", op, "--ranks", str(ranks), "--min", "4", "--max", "3M", "--factor",
                      "13", "--iters", "2", "--warmup", "1", "--check", "--json", "-", *more)
        self.assertEqual(result.returncode, 0, result.stderr)
        report = json.loads(result.stdout)
        self.assertEqual(report["op"], op)
        self.assertEqual(report["plugin"]["name"], "reference")
        self.assertEqual(len(report["ranks"]), ranks)
        self.assertGreaterEqual(len(report["results"]), 6)
        for row in report["results"]:
            self.assertEqual(row["wrong"], 0)
            self.assertGreater(row["time_us"], 0)
        return report

    def test_all_reduce(self):
        for ranks in (2, 3, 5):
            self.check_op("all_reduce", ranks)

    def test_all_gather_and_reduce_scatter(self):
        for op in ("all_gather", "reduce_scatter"):
            for ranks in (2, 3):
                self.check_op(op, ranks)

    def test_all_to_all(self):
        self.check_op("all_to_all", 4)

    def test_sendrecv(self):
        self.check_op("sendrecv", 3)

    def test_ping(self):
        for row in self.check_op("ping", 3)["results"]:
            times = row["half_round_trip_us"]
            self.assertLessEqual(times["min"], times["p50"])
            self.assertLessEqual(times["p50"], times["p99"])
            self.assertLessEqual(times["p99"], times["max"])

    def test_each_size_reports_the_spread_of_its_iterations(self):
        fields = ["min", "p50", "p99", "p99.9", "max"]
        for iters, is_enough in ((1000, True), (999, False)):
            result = perf("--max", "64", "--iters", str(iters), "--json", "-")
            self.assertEqual(result.returncode, 0, result.stderr)
            for row in json.loads(result.stdout)["results"]:
                spread = row["iteration_us"]
                self.assertEqual((spread["samples"], row["iters"]), (iters, iters))
                self.assertEqual(spread["p99.9"] is not None, is_enough)
                found = [spread[field] for field in fields if spread[field] is not None]
                self.assertEqual(found, sorted(found))
                self.assertGreater(found[0], 0)
                self.assertGreater(spread["cv"], 0)
                # For each iteration the slowest rank's time: at least the mean of all ranks.
                self.assertGreater(spread["mean"], row["time_us"] * 0.999)

    def test_the_spread_is_of_the_slowest_rank(self):
        # Rank 1 stalls once; rank 0 may have sent and received by then.
        result = perf("--op", "sendrecv", "--max", "8", "--iters", "50", "--warmup", "1", "--json", "-", plugin=FAULTY,
                      ZTCP_FAULTY_INNER=REFERENCE, ZTCP_FAULTY_RANK="1", ZTCP_FAULT="stall")
        self.assertEqual(result.returncode, 0, result.stderr)
        row, = json.loads(result.stdout)["results"]
        self.assertGreater(row["iteration_us"]["max"], 400e3)
        self.assertLess(row["iteration_us"]["p50"], 400e3)

    def test_the_table_fits_120_columns(self):
        result = perf("--max", "64", "--iters", "3", "--check")
        lines = [line for line in result.stdout.splitlines() if "rank" not in line and "plugin" not in line]
        self.assertLessEqual(max(map(len, lines)), 120)
        head, *rows = [line.replace("#wrong", "wrong").lstrip("#") for line in lines if "size" in line or line[0] == " "]
        self.assertEqual(head.split(), ["size", "time", "algbw", "busbw", "min", "p50", "p99", "p99.9", "max", "CV", "wrong",
                                        "iters", "cpu"])
        for row in rows:
            self.assertEqual(len(row.split()), len(head.split()))
            self.assertEqual(row.split()[7], "-")

    def test_the_table_reads_like_nccl_tests(self):
        result = perf("--max", "64", "--iters", "3", "--check")
        self.assertEqual(result.returncode, 0, result.stderr)
        rows = [line.split() for line in result.stdout.splitlines() if not line.startswith("#")]
        self.assertEqual([row[0] for row in rows], ["8", "64"])
        self.assertIn("# Out of bounds values : 0 OK", result.stdout)
        self.assertRegex(result.stdout, r"# Avg bus bandwidth +: \d+\.\d+")

    def test_a_time_budget_is_kept(self):
        # Two times 1 GiB takes more than this on any machine.
        began = time.monotonic()
        result = perf("--max", "1G", "--iters", "1000000", "--time-budget", "0.1")
        self.assertEqual(result.returncode, 0, result.stderr)
        self.assertLess(time.monotonic() - began, 30)
        self.assertIn("time budget of 0.1 s spent: sizes from", result.stdout)

    def test_a_slow_first_iteration_does_not_use_up_the_time_budget(self):
        # The only warm-up iteration takes 0.4 of 4 s.
        result = perf("--max", "8", "--iters", "2000", "--warmup", "1", "--time-budget", "4", "--json", "-", plugin=FAULTY,
                      ZTCP_FAULTY_INNER=REFERENCE, ZTCP_FAULTY_RANK="1", ZTCP_FAULT="slow")
        self.assertEqual(result.returncode, 0, result.stderr)
        row, = json.loads(result.stdout)["results"]
        self.assertGreater(row["iters"], 50)


class Rendezvous(unittest.TestCase):
    def test_ranks_find_each_other_and_strays_do_no_harm(self):
        place = f"127.0.0.1:{free_port()}"
        host, port = place.split(":")
        common = ["--ranks", "3", "--rendezvous", place, "--max", "4K", "--iters", "3", "--check"]
        ranks = [start("--rank", "0", *common)]

        def stray(said):
            def connected():
                try:
                    with socket.create_connection((host, int(port)), 1) as s:
                        s.sendall(said)
                    return True
                except OSError:
                    return False
            return connected

        wait_until(stray(b"GET / HTTP/1.0\r\n\r\n"))
        wait_until(stray(b""))
        ranks += [start("--rank", str(r), *common) for r in (1, 2)]
        for rank in ranks:
            output, errors = rank.communicate(timeout=LIMIT_S)
            self.assertEqual(rank.returncode, 0, errors)
            if rank is ranks[0]:
                self.assertIn("0 OK", output)

    def test_torchrun_environment(self):
        port = str(free_port())
        ranks = [start("--max", "512", "--iters", "2", RANK=str(r), WORLD_SIZE="2",
                       LOCAL_RANK=str(r), MASTER_ADDR="localhost", MASTER_PORT=port)
                 for r in range(2)]
        errors = [rank.communicate(timeout=LIMIT_S)[1] for rank in ranks]
        self.assertEqual([rank.returncode for rank in ranks], [0, 0], errors)

    def test_ranks_with_different_options_are_refused(self):
        # Without a secret the caller may be any program: rank 0 keeps waiting for the missing rank.
        for more in ({"ZTCP_PERF_SECRET": "0123456789abcdef"}, {}):
            place = f"127.0.0.1:{free_port()}"
            common = ["--ranks", "2", "--rendezvous", place, "--connect-timeout", "30" if more else "3"]
            one = start(*common, "--rank", "0", "--max", "64", **more)
            other = start(*common, "--rank", "1", "--max", "512", **more)
            for rank in (one, other):
                _, errors = rank.communicate(timeout=LIMIT_S)
                self.assertEqual(rank.returncode, 1)
                self.assertIn("was started with other options", errors)

    def test_a_missing_rank_is_named(self):
        result = perf("--ranks", "3", "--rank", "0", "--rendezvous", f"127.0.0.1:{free_port()}",
                      "--connect-timeout", "1")
        self.assertEqual(result.returncode, 1)
        self.assertIn("waited 1 s; missing: rank 1, 2", result.stderr)


    def test_the_connect_timeout_holds_without_an_answer(self):
        with socket.socket() as deaf:
            deaf.bind(("127.0.0.1", 0))
            deaf.listen(0)
            place = deaf.getsockname()
            # Its backlog is full: a SYN is dropped.
            guests = [socket.socket() for _ in range(4)]
            for guest in guests:
                guest.setblocking(False)
                guest.connect_ex(place)
            began = time.monotonic()
            result = perf("--ranks", "2", "--rank", "1", "--rendezvous", f"127.0.0.1:{place[1]}",
                          "--connect-timeout", "1")
            self.assertLess(time.monotonic() - began, 4)
            self.assertEqual(result.returncode, 1)
            for guest in guests:
                guest.close()

    def test_an_ipv6_address_stands_in_brackets(self):
        try:
            with socket.socket(socket.AF_INET6) as s:
                s.bind(("::1", 0))
        except OSError:
            self.skipTest("no IPv6 here")
        place = f"[::1]:{free_port()}"
        arguments = ("--max", "64", "--iters", "1", "--rendezvous", place)
        first = start(*arguments, "--rank", "0")
        second = perf(*arguments, "--rank", "1")
        told = first.communicate(timeout=LIMIT_S)[1]
        self.assertEqual((first.returncode, second.returncode), (0, 0), told + second.stderr)

    def test_invalid_numbers_are_refused(self):
        for arguments in (["--stall-timeout", "nan"], ["--connect-timeout", "1e30"], ["--time-budget", "nan"],
                          ["--factor", "nan"], ["--factor", "1e300"], ["--factor", "1"]):
            result = perf(*arguments)
            self.assertEqual(result.returncode, 2, result)
            self.assertIn(arguments[0], result.stderr)
        result = perf("--rank", "0", MASTER_ADDR="127.0.0.1", MASTER_PORT="70000")
        self.assertEqual(result.returncode, 2, result)
        self.assertIn("MASTER_PORT=70000", result.stderr)

    def test_more_ranks_than_a_machine_starts_are_refused(self):
        for ranks in ("1025", "99999999"):
            began = time.monotonic()
            result = perf("--ranks", ranks)
            self.assertEqual(result.returncode, 2)
            self.assertIn(f"--ranks {ranks}: at most 1024 are started on one machine", result.stderr)
            self.assertLess(time.monotonic() - began, 10)
        result = perf("--ranks", "99999999", "--rank", "0", "--rendezvous", "127.0.0.1:1")
        self.assertEqual(result.returncode, 2)
        self.assertIn("at most 65536", result.stderr)


def frame(kind, payload, magic=0x7a504632):
    return struct.pack("<III", magic, kind, len(payload)) + payload


class Stranger(socket.socket):
    """Connects to rank 0 like a rank, as far as possible without the secret."""

    def __init__(self, address):
        super().__init__()
        self.settimeout(10)
        self.connect(address)

    def challenge(self):
        said = self.recv(28, socket.MSG_WAITALL)
        assert said[:12] == struct.pack("<III", 0x7a504632, 1, 16), said
        return said[12:]

    def hello(self, rank, ranks, place, plan=b"plan", secret=b""):
        told = os.urandom(16) + struct.pack("<ii", rank, ranks) + plan + b"\0" + place + b"\0"
        proof = hmac.digest(secret, b"ztcp_perf rank" + self.challenge() + told, "sha256")
        self.sendall(frame(2, proof + told))

    def answer(self):
        said = b""
        try:
            while more := self.recv(65536):
                said += more
        except ConnectionError:
            pass
        return said


class Strangers(unittest.TestCase):
    FORGED = b"\x1b]0;owned\x07\nztcp_perf: all is well"

    def setUp(self):
        self.address = ("127.0.0.1", free_port())
        self.common = ["--ranks", "2", "--rendezvous", f"127.0.0.1:{self.address[1]}", "--max", "64", "--iters", "1"]
        self.secret = {}

    def rank(self, number, *more):
        return start(*self.common, "--rank", str(number), *more, **self.secret)

    def first_rank(self, *more):
        rank = self.rank(0, *more)
        self.addCleanup(rank.kill)

        def listens():
            try:
                Stranger(self.address).close()
                return True
            except OSError:
                return False
        wait_until(listens)
        return rank

    def ends_well(self, first, *more):
        second = self.rank(1, *more)
        told = [rank.communicate(timeout=LIMIT_S) for rank in (first, second)]
        self.assertEqual([first.returncode, second.returncode], [0, 0], told)
        for text in (t for pair in told for t in pair):
            self.assertNotIn("\x1b", text)
            self.assertNotIn("\nztcp_perf: all is well", text)

    def test_a_sender_without_pause_costs_no_memory_and_no_time(self):
        first = self.first_rank()
        for header in (frame(2, b"")[:8] + struct.pack("<I", 64 << 20), frame(2, b"")[:8] + struct.pack("<I", 4096),
                       frame(8, b"") * 1000):
            with Stranger(self.address) as stranger:
                sent, until = 0, time.monotonic() + 2
                try:
                    stranger.sendall(header)
                    while time.monotonic() < until:
                        sent += stranger.send(frame(8, b"") * 5000 if len(header) > 12 else bytes(1 << 20))
                except OSError:
                    pass  # The connection was closed.
        with open(f"/proc/{first.pid}/status") as status:
            peak_kib = int(re.search(r"VmHWM:\s+(\d+) kB", status.read()).group(1))
        self.assertLess(peak_kib, 64 << 10)
        self.ends_well(first)

    def test_a_forged_hello_ends_nothing(self):
        for self.secret in ({}, {"ZTCP_PERF_SECRET": "0123456789abcdef"}):
            self.address = ("127.0.0.1", free_port())
            self.common[3] = f"127.0.0.1:{self.address[1]}"
            first = self.first_rank()
            for rank, ranks in ((7, 99), (1, 2), (-1, 2), (0, 2)):
                with Stranger(self.address) as stranger:
                    stranger.hello(rank, ranks, self.FORGED, self.FORGED)
                    self.assertNotIn(b"\x1b", stranger.answer())
            with Stranger(self.address) as stranger:
                stranger.sendall(frame(7, self.FORGED))  # A forged failure of a rank.
                stranger.answer()
            self.ends_well(first)

    def test_refusals_are_printed_as_plain_text(self):
        first = self.first_rank("--connect-timeout", "3")
        with Stranger(self.address) as stranger:
            stranger.hello(7, 99, self.FORGED)
            self.assertIn(b"rank 7 of 99", stranger.answer())
        _, errors = first.communicate(timeout=LIMIT_S)
        self.assertEqual(first.returncode, 1)
        self.assertIn("missing: rank 1 (1 refused, the last: rank 7 of 99 (?]0;owned??ztcp_perf: all is well) does not "
                      "belong to 2 ranks)", errors)

    def test_many_silent_callers_keep_no_rank_out(self):
        first = self.first_rank()
        silent = []
        try:
            for _ in range(200):
                silent.append(Stranger(self.address))
            self.ends_well(first)
        finally:
            for stranger in silent:
                stranger.close()

    def test_ranks_of_one_secret_file_find_each_other_and_others_do_not(self):
        with tempfile.TemporaryDirectory() as folder:
            right, wrong = (os.path.join(folder, name) for name in ("right", "wrong"))
            for path, text in ((right, "0123456789abcdef\n"), (wrong, "fedcba9876543210\n")):
                with open(path, "w", opener=lambda p, f: os.open(p, f, 0o600)) as file:
                    file.write(text)
            first = self.first_rank("--secret-file", right)
            for more in (["--secret-file", wrong], []):
                other = self.rank(1, *more)
                _, errors = other.communicate(timeout=LIMIT_S)
                self.assertEqual(other.returncode, 1)
                self.assertIn("and rank 0 have different secrets; give all ranks the same --secret-file", errors)
            self.ends_well(first, "--secret-file", right)
            os.chmod(right, 0o644)
            refused = perf(*self.common, "--rank", "0", "--secret-file", right)
            self.assertEqual(refused.returncode, 2)
            self.assertIn(f"accessible to other users (mode 0644); chmod 600 {right}", refused.stderr)

    def test_a_listener_without_the_secret_is_refused(self):
        self.secret = {"ZTCP_PERF_SECRET": "0123456789abcdef"}
        for answer, text in ((frame(3, bytes(32)), "does not know this run's secret"),
                             (frame(5, self.FORGED), "ztcp_perf: rank 1: ?]0;owned??ztcp_perf: all is well"),
                             (b"SSH-2.0-x\r\n" * 9, "the listener is not a ztcp_perf of this release")):
            with socket.socket() as listener:
                listener.bind(("127.0.0.1", 0))
                listener.listen()
                self.common[3] = f"127.0.0.1:{listener.getsockname()[1]}"
                rank = self.rank(1)
                caller, _ = listener.accept()
                with caller:
                    caller.sendall(frame(1, bytes(16)) + answer)
                    _, errors = rank.communicate(timeout=LIMIT_S)
                self.assertEqual(rank.returncode, 1)
                self.assertIn(text, errors)

    def test_the_secret_of_local_ranks_is_in_no_environment(self):
        run = start("--max", "64K", "--min", "64K", "--iters", "100000000")
        self.addCleanup(run.kill)
        wait_until(lambda: len(children_of(run.pid)) == 2)
        for line in run.stdout:
            if "(GB/s)" in line:
                break
        for rank in children_of(run.pid):
            with open(f"/proc/{rank}/environ") as file:
                self.assertNotRegex(file.read(), r"ZTCP_PERF_(SECRET=|COOKIE)")
        run.send_signal(signal.SIGINT)
        run.communicate(timeout=LIMIT_S)


class Failures(unittest.TestCase):
    LONG = ("--min", "64K", "--max", "64K", "--iters", "100000000")

    def faulty(self, fault, *more):
        return perf("--ranks", "3", "--min", "2M", "--max", "2M", "--iters", "3", "--warmup", "0",
                    "--check", "--check-iters", "3", *more, plugin=FAULTY, ZTCP_FAULTY_INNER=REFERENCE,
                    ZTCP_FAULTY_RANK="1", ZTCP_FAULT=fault)

    def test_a_flipped_bit_is_found(self):
        result = self.faulty("flip")
        self.assertEqual(result.returncode, 4, result.stderr)
        self.assertRegex(result.stdout, r"# Out of bounds values : [1-9]\d* FAILED")

    def test_bytes_that_did_not_arrive_are_found(self):
        result = self.faulty("late")
        self.assertEqual(result.returncode, 4, result.stderr)
        self.assertRegex(result.stdout, r"# Out of bounds values : [1-9]\d* FAILED")

    def test_a_wrong_size_is_found(self):
        result = self.faulty("short")
        self.assertEqual(result.returncode, 1)
        self.assertRegex(result.stderr, r"rank 1: receive \d+ from rank 0: the plugin says \d+ bytes")

    def test_an_error_names_the_rank_and_the_call(self):
        result = self.faulty("error")
        self.assertEqual(result.returncode, 1)
        self.assertRegex(result.stderr, r"rank 1: receive \d+ from rank 0 failed: ncclInternalError")

    def test_a_hang_ends_with_a_report(self):
        began = time.monotonic()
        result = self.faulty("hang", "--stall-timeout", "2")
        self.assertEqual(result.returncode, 1)
        self.assertLess(time.monotonic() - began, 30)
        self.assertRegex(result.stderr, r"nothing moved for 2 s: waiting for message \d+")

    def test_a_hang_in_init_ends_with_the_connect_timeout(self):
        began = time.monotonic()
        result = self.faulty("init", "--connect-timeout", "5")
        self.assertEqual(result.returncode, 1)
        self.assertLess(time.monotonic() - began, 30)
        self.assertIn("rank 1 has said nothing for 5 s", result.stderr)

    def test_a_stopped_rank_ends_the_run_within_the_stall_timeout(self):
        for stopped in (0, 2):
            run = start("--ranks", "3", "--op", "ping", "--stall-timeout", "2", *self.LONG)
            wait_until(lambda: len(children_of(run.pid)) == 3)
            for line in run.stdout:
                if "(GB/s)" in line:
                    break
            time.sleep(0.5)  # Until rank 2 waits for the others.
            began = time.monotonic()
            os.kill(children_of(run.pid)[stopped], signal.SIGSTOP)
            if stopped == 2:  # It has no part in a ping: the others wait for it only at the end.
                run.send_signal(signal.SIGINT)
            _, errors = run.communicate(timeout=LIMIT_S)
            self.assertLess(time.monotonic() - began, 30)
            self.assertNotEqual(run.returncode, 0)
            if stopped == 0:
                self.assertRegex(errors, r"nothing moved for 2 s|rank 0 has said nothing for 2 s")

    def test_a_long_wait_for_busy_ranks_is_no_stall(self):
        # Rank 2 has no part in a ping, which continues until it is interrupted.
        run = start("--ranks", "3", "--op", "ping", "--stall-timeout", "2", *self.LONG)
        for line in run.stdout:
            if "(GB/s)" in line:
                break
        with self.assertRaises(subprocess.TimeoutExpired):
            run.wait(5)
        run.send_signal(signal.SIGINT)
        _, errors = run.communicate(timeout=LIMIT_S)
        self.assertEqual(errors.strip(), "ztcp_perf: stopped by Interrupt")
        self.assertEqual(run.returncode, 130)

    def end_with(self, ranks, action):
        run = start("--ranks", str(ranks), *self.LONG)
        wait_until(lambda: len(children_of(run.pid)) == ranks)
        for line in run.stdout:  # The header means that all are connected, or nearly.
            if "(GB/s)" in line:
                break
        children = children_of(run.pid)
        began = time.monotonic()
        action(run, children)
        _, errors = run.communicate(timeout=LIMIT_S)
        self.assertLess(time.monotonic() - began, 15)
        for child in children:
            self.assertFalse(os.path.exists(f"/proc/{child}"))
        return run.returncode, errors

    def test_a_killed_rank_ends_the_run_by_name(self):
        code, errors = self.end_with(4, lambda _, ranks: os.kill(ranks[2], signal.SIGKILL))
        self.assertEqual(code, 1)
        self.assertRegex(errors, r"rank 2 \(pid \d+\) was killed by signal 9")
        self.assertNotIn("failed:", errors)

    def test_an_interrupt_ends_the_run(self):
        code, errors = self.end_with(3, lambda run, _: run.send_signal(signal.SIGINT))
        self.assertEqual(code, 130)
        self.assertEqual(errors.strip(), "ztcp_perf: stopped by Interrupt")

    def test_ranks_have_the_name_of_the_program(self):
        names = []

        def read_names(run, ranks):
            for rank in ranks:
                with open(f"/proc/{rank}/comm") as file:
                    names.append(file.read())
            run.send_signal(signal.SIGINT)

        self.end_with(2, read_names)
        self.assertEqual(names, ["ztcp_perf\n"] * 2)

    def test_an_early_interrupt_names_no_rank(self):
        for step in range(16):
            run = start("--ranks", "3", *self.LONG)
            time.sleep(step * 0.006)
            run.send_signal(signal.SIGINT)
            _, errors = run.communicate(timeout=LIMIT_S)
            self.assertNotIn("was killed", errors)

    def test_a_report_that_cannot_be_written_ends_the_run_before_it_begins(self):
        result = perf("--max", "64", "--json", "/nonexistent/report.json")
        self.assertEqual(result.returncode, 2)
        self.assertEqual(result.stdout, "")
        self.assertEqual(result.stderr, "ztcp_perf: --json /nonexistent/report.json: No such file or directory\n")

    def test_a_thread_that_cannot_start_is_named(self):
        # Stacks of threads have this size, more than there are addresses.
        result = subprocess.run(["sh", "-c", 'ulimit -S -s 1125899906842624; exec "$@"', "sh", PERF, "--plugin", REFERENCE, "--max", "64"],
                                env=environment(), text=True, capture_output=True, timeout=LIMIT_S, check=False)
        self.assertEqual(result.returncode, 1, result.stderr)
        self.assertIn("cannot start a thread: Resource temporarily unavailable; raise ulimit -u", result.stderr)

    def test_a_signal_ends_an_exchange_that_never_waits(self):
        common = ("--ranks", "2", "--rendezvous", f"127.0.0.1:{free_port()}", "--op", "sendrecv", *self.LONG[:-1], "2000000000")
        ranks = [start("--rank", str(rank), *common, plugin=FAULTY, ZTCP_FAULTY_INNER=REFERENCE, ZTCP_FAULTY_RANK="all",
                       ZTCP_FAULT="instant") for rank in range(2)]
        for line in ranks[0].stdout:
            if "(GB/s)" in line:
                break
        time.sleep(0.5)  # Until both ranks exchange messages.
        try:
            for rank in ranks:
                rank.terminate()
            for rank in ranks:
                _, errors = rank.communicate(timeout=10)
                self.assertEqual(rank.returncode, 3, errors)
        finally:
            for rank in ranks:
                rank.kill()

    def test_a_killed_launcher_takes_its_ranks_with_it(self):
        run = start("--ranks", "2", *self.LONG)
        wait_until(lambda: len(children_of(run.pid)) == 2)
        children = children_of(run.pid)
        run.kill()
        run.communicate(timeout=LIMIT_S)
        wait_until(lambda: not any(is_running(child) for child in children))

    def test_bad_plugins_and_options_are_reported(self):
        for arguments, plugin, text in (
                ((), "/nonexistent/libnccl-net.so", "cannot open shared object file"),
                ((), "libm.so.6", "is not an NCCL network plugin"),
                (("--abi", "12"), REFERENCE, "has no ncclNetPlugin_v12"),
                (("--device", "7"), REFERENCE, "the plugin has 1 devices"),
                (("--tags", "2"), REFERENCE, "receives at most 1 messages at once on device 0"),
                (("--tags", "9"), REFERENCE, "--tags"),
                (("--min", "64", "--max", "8"), REFERENCE, "--max is smaller than --min"),
                (("--min", "8 apples"), REFERENCE, "is not a size"),
                (("--ranks", "1"), REFERENCE, "at least 2")):
            result = perf(*arguments, plugin=plugin)
            self.assertNotEqual(result.returncode, 0)
            self.assertIn(text, result.stderr)

    def test_unknown_words_are_reported_with_the_known_ones(self):
        for arguments, text in (
                (("--op", "allreduce"), f"--op: 'allreduce' is not one of {OPERATIONS} (did you mean all_reduce?)"),
                (("--op", "scatter"), f"--op: 'scatter' is not one of {OPERATIONS}\n"),
                (("--log", "warning"), "--log: 'warning' is not one of none, warn, info\n"),
                (("--log", "inf"), "--log: 'inf' is not one of none, warn, info (did you mean info?)")):
            result = perf(*arguments)
            self.assertEqual(result.returncode, 2)
            self.assertIn(text, result.stderr)

    def test_a_plugin_without_a_path_is_found_or_explained(self):
        with tempfile.TemporaryDirectory() as folder:
            tool = shutil.copy(PERF, folder)

            def run(*arguments, **env):
                return subprocess.run([tool, "--max", "64", "--iters", "1", *arguments], env=environment(**env), cwd=folder,
                                      text=True, capture_output=True, timeout=LIMIT_S, check=False)
            # Neither beside the tool nor in the library path, unless ztcp is installed here.
            missing = run(LD_LIBRARY_PATH="/nonexistent")
            if missing.returncode != 0:
                self.assertIn("a name without / is searched for in the library path", missing.stderr)
            os.mkdir(os.path.join(folder, "lib"))
            shutil.copy(REFERENCE, os.path.join(folder, "lib/libnccl-net.so"))
            found = run(LD_LIBRARY_PATH=os.path.join(folder, "lib"))
            self.assertEqual(found.returncode, 0, found.stderr)
            self.assertIn("plugin reference", found.stdout)
            shutil.copy(REFERENCE, os.path.join(folder, "libother.so"))
            named = run("--plugin", "libother.so")
            self.assertNotEqual(named.returncode, 0)
            self.assertIn("did you mean --plugin ./libother.so?", named.stderr)
            shutil.copy(REFERENCE, os.path.join(folder, "libnccl-net.so"))
            beside = run(LD_LIBRARY_PATH="/nonexistent")
            self.assertEqual(beside.returncode, 0, beside.stderr)
            self.assertIn(os.path.join(folder, "libnccl-net.so"), beside.stdout)


def is_running(pid):
    try:
        with open(f"/proc/{pid}/stat") as file:
            return re.search(r"\) (\w)", file.read()).group(1) != "Z"
    except OSError:
        return False


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1], verbosity=2)
