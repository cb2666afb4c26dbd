#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
# Copyright the ztcp authors
"""ztcp_perf probe over the reference plugin: real agents on loopback, and faults of hosts.

Usage: probe_process_test.py ZTCP_PERF REFERENCE_PLUGIN
"""
import json
import os
import signal
import socket
import stat
import subprocess
import sys
import tempfile
import time
import unittest

from processes import LIMIT_S, environment, free_port, wait_until

PERF, REFERENCE = sys.argv[1:3]
SSH = os.path.join(os.path.dirname(os.path.abspath(__file__)), "fake_ssh.py")
# This machine is busy: nothing but faults made on purpose counts.
LENIENT = ("--slow", "0", "--late", "1e6", "--loss", "100%")
QUICK = ("--seconds", "0.05", *LENIENT)


def start(*arguments, plugin=REFERENCE, **env):
    return subprocess.Popen([PERF, "probe", "--plugin", plugin, *arguments], env=environment(**env), text=True,
                            stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE)


def ended(process):
    try:
        out, errors = process.communicate(timeout=LIMIT_S)
    finally:
        process.kill()
    return subprocess.CompletedProcess(process.args, process.returncode, out, errors)


def probe(*arguments, **env):
    return ended(start(*arguments, **env))


def descendants(pid):
    found = []
    for one in [pid]:
        try:
            with open(f"/proc/{one}/task/{one}/children") as file:
                children = [int(child) for child in file.read().split()]
        except OSError:
            continue
        found += children + [d for child in children for d in descendants(child)]
    return found


def is_running(pid):
    try:
        with open(f"/proc/{pid}/stat") as file:
            return file.read().rpartition(")")[2].split()[0] != "Z"
    except OSError:
        return False


class Hosts(unittest.TestCase):
    """Hosts started through a fake ssh."""

    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.hosts = os.path.join(folder.name, "hosts")
        self.report = os.path.join(folder.name, "report.json")
        self.write_hosts("alpha", "beta", "gamma")

    def write_hosts(self, *names):
        with open(self.hosts, "w") as file:
            file.write("".join(name + "\n" for name in names))

    def probe(self, *arguments, **env):
        """The exit code, the report, and the output."""
        result = probe("--hosts", self.hosts, "--ssh", f"{sys.executable} {SSH}", "--json", self.report, *QUICK,
                       *arguments, **env)
        report = None
        if os.path.exists(self.report):
            with open(self.report) as file:
                report = json.load(file)
            self.assertEqual(report["exit_code"], result.returncode, result.stderr)
            self.assertTrue(result.stdout.endswith(f"verdict: {report['verdict']}\n"), result.stdout)
        return result.returncode, report, result.stdout + result.stderr

    def test_equal_hosts_are_good(self):
        self.write_hosts(*(f"host{i}" for i in range(5)))
        code, report, said = self.probe()
        self.assertEqual(code, 0, said)
        self.assertEqual(report["verdict"], "all hosts, NICs and rails are fine")
        self.assertEqual(report["rounds"], 5)
        self.assertEqual(len(report["pairs"]), 10)
        for pair in report["pairs"]:
            self.assertGreater(pair["latency_us"]["p50"], 0)
            self.assertLessEqual(pair["latency_us"]["min"], pair["latency_us"]["p50"])
            for way in ("a_to_b", "b_to_a"):
                self.assertGreater(pair[way]["gbit_per_s"], 0)
                self.assertIsNotNone(pair[way]["resent"], "the reference plugin uses kernel sockets")
            self.assertGreater(pair["both_gbit_per_s"], 0)
        facts = report["hosts"][0]["facts"]
        self.assertEqual(facts["kernel"], os.uname().release)
        self.assertGreater(facts["cpus"], 0)
        self.assertIn("Gbit/s from row to column", said)
        self.assertIn("note host0, host1, host2, host3 and 1 more are one machine", said)

    def test_json_on_the_standard_output_is_alone_there(self):
        result = probe("--hosts", self.hosts, "--ssh", f"{sys.executable} {SSH}", *QUICK, "--json", "-")
        self.assertEqual(result.returncode, 0, result.stderr)
        self.assertEqual(len(json.loads(result.stdout)["pairs"]), 3)

    def one_bad_host(self, fault, said_of_it, *arguments, pairs=1):
        code, report, said = self.probe(*arguments, FAKE_GAMMA=fault)
        self.assertEqual(code, 1, said)
        self.assertEqual(len(report["pairs"]), pairs, said)
        finding = report["findings"][0]
        self.assertEqual(finding["host"], "gamma", said)
        self.assertIn(said_of_it, finding["text"])
        self.assertEqual(report["verdict"], finding["text"])
        self.assertFalse(any("failure" in pair for pair in report["pairs"]), said)

    def test_a_host_that_refuses_is_named_and_the_others_are_measured(self):
        self.one_bad_host("refused", 'host gamma: its agent has ended: exit status 1: "ssh: connect to host gamma port 22: '
                          'Connection refused"')

    def test_a_host_that_does_not_answer_is_named_with_the_option(self):
        self.one_bad_host("silent", "host gamma: no sign of an agent within 2 s (--host-timeout)", "--host-timeout", "2")

    def test_a_host_that_hangs_is_named_with_the_option(self):
        self.one_bad_host("hangs", "host gamma: hangs: no answer within 5 s (--pair-timeout 2)", "--pair-timeout", "2")

    def test_a_host_that_dies_is_named(self):
        self.one_bad_host("dies", "host gamma: its agent has ended: exit status 255")

    def test_another_protocol_is_named(self):
        self.one_bad_host("foreign", "which speaks another protocol")

    def test_a_missing_plugin_is_named(self):
        self.one_bad_host("no-plugin", "host gamma: cannot load the plugin: /nowhere")

    def test_another_version_is_named_and_measured(self):
        self.one_bad_host("old", "hosts differ in version: 0.", pairs=3)

    def test_a_login_script_may_print(self):
        code, report, said = self.probe(FAKE_BETA="greets")
        self.assertEqual(code, 0, said)
        self.assertEqual(len(report["pairs"]), 3)

    def test_fewer_than_two_hosts_are_no_probe(self):
        code, report, said = self.probe(FAKE_BETA="refused", FAKE_GAMMA="refused")
        self.assertEqual(code, 3, said)
        self.assertEqual([finding["host"] for finding in report["findings"]], ["beta", "gamma"])
        self.assertEqual(report["pairs"], [])

    def test_a_missing_program_is_named(self):
        code, report, said = self.probe("--remote", "/nowhere/ztcp_perf")
        self.assertEqual(code, 3, said)
        self.assertIn("/nowhere/ztcp_perf", report["verdict"])

    def test_an_ssh_that_is_missing_is_named(self):
        result = probe("--hosts", self.hosts, "--ssh", "/nowhere/ssh -q", *QUICK)
        self.assertEqual(result.returncode, 3)
        self.assertIn("cannot run /nowhere/ssh: No such file or directory", result.stdout)

    def test_ctrl_c_ends_all_processes(self):
        for fault in ("", "silent"):
            process = start("--hosts", self.hosts, "--ssh", f"{sys.executable} {SSH}", "--seconds", "30", FAKE_GAMMA=fault)
            wait_until(lambda p=process: len(descendants(p.pid)) >= 3)
            time.sleep(0.5)
            started = descendants(process.pid)
            began = time.monotonic()
            process.send_signal(signal.SIGINT)
            result = ended(process)
            self.assertEqual(result.returncode, 130, result)
            self.assertLess(time.monotonic() - began, 10)
            wait_until(lambda pids=started: not any(map(is_running, pids)))

    def test_agents_end_with_a_killed_coordinator(self):
        process = start("--hosts", self.hosts, "--ssh", f"{sys.executable} {SSH}", "--seconds", "30")
        wait_until(lambda: len(descendants(process.pid)) >= 3)
        started = descendants(process.pid)
        process.kill()
        ended(process)
        wait_until(lambda: not any(map(is_running, started)))

    def test_an_unwritable_report_is_said_before_the_measurement(self):
        result = probe("--hosts", self.hosts, "--ssh", f"{sys.executable} {SSH}", *QUICK, "--json", "/nowhere/report.json")
        self.assertEqual(result.returncode, 2, result)
        self.assertEqual(result.stdout, "")
        self.assertIn("--json /nowhere/report.json: No such file or directory", result.stderr)


class CommandLine(unittest.TestCase):
    def refused(self, said, *arguments, **env):
        result = probe(*arguments, **env)
        self.assertEqual(result.returncode, 2, result)
        self.assertIn(said, result.stderr)

    def test_wrong_command_lines_are_refused(self):
        self.refused("give --hosts FILE")
        self.refused("--hosts /nowhere: No such file", "--hosts", "/nowhere")
        self.refused("--rank 1 without --ranks", "--rank", "1")
        self.refused("--rank 2 with --ranks 2", "--rank", "2", "--ranks", "2")
        self.refused("--pair-timeout 2 is shorter than --seconds 3", "--hosts", "/dev/null", "--seconds", "3", "--pair-timeout", "2")
        self.refused("--loss x: expected a share", "--hosts", "/dev/null", "--loss", "x")
        self.refused("/dev/null: has 0 hosts", "--hosts", "/dev/null")
        self.refused("--ranks 3: the launcher started 2", "--ranks", "3", RANK="0", WORLD_SIZE="2")
        self.refused("start one a host", RANK="1", WORLD_SIZE="2", LOCAL_RANK="1", MASTER_ADDR="127.0.0.1")
        self.refused("does not know where rank 0 is", RANK="1", WORLD_SIZE="2")

    def test_help_is_no_error(self):
        result = probe("--help")
        self.assertEqual(result.returncode, 0)
        self.assertIn("--rendezvous-file FILE", result.stdout)
        self.assertNotIn("--agent", result.stdout)


class Launcher(unittest.TestCase):
    """Processes started one a host, here all on this one."""

    def ranks(self, count, *arguments, skip=(), each=lambda rank: {}):
        started = [start(*arguments, *QUICK, "--json", "-", RANK=str(rank), WORLD_SIZE=str(count), **each(rank))
                   for rank in range(count) if rank not in skip]
        return [ended(one) for one in started]

    def test_torchrun_environment(self):
        where = {"MASTER_ADDR": "127.0.0.1", "MASTER_PORT": str(free_port())}
        results = self.ranks(3, each=lambda rank: where)
        self.assertEqual([one.returncode for one in results], [0, 0, 0], results)
        report = json.loads(results[0].stdout)
        self.assertEqual(len(report["pairs"]), 3)
        name = socket.gethostname()
        self.assertEqual([host["name"] for host in report["hosts"]], [f"{name}#{rank}" for rank in range(3)])
        self.assertEqual([one.stdout for one in results[1:]], ["", ""])

    def test_a_missing_rank_is_named_and_the_others_are_measured(self):
        where = {"MASTER_ADDR": "127.0.0.1", "MASTER_PORT": str(free_port())}
        results = self.ranks(3, "--host-timeout", "3", skip=(1,), each=lambda rank: where)
        self.assertEqual([one.returncode for one in results], [1, 1], results)
        report = json.loads(results[0].stdout)
        self.assertEqual(report["verdict"], "host rank 1: did not call within 3 s (--host-timeout)")
        self.assertEqual(len(report["pairs"]), 1)

    def test_a_file_tells_the_address(self):
        with tempfile.TemporaryDirectory() as folder:
            path = os.path.join(folder, "place")
            # An earlier run's.
            with open(path, "w") as file:
                file.write('{"host": "127.0.0.1", "port": 1, "secret": "0123456789abcdef"}\n')
            os.chmod(path, stat.S_IRUSR | stat.S_IWUSR)
            results = self.ranks(2, "--rendezvous-file", path)
            self.assertEqual([one.returncode for one in results], [0, 0], results)
            self.assertEqual(os.listdir(folder), [])

    def test_another_secret_is_refused(self):
        where = {"MASTER_ADDR": "127.0.0.1", "MASTER_PORT": str(free_port())}
        results = self.ranks(2, "--host-timeout", "3",
                             each=lambda rank: {**where, "ZTCP_PERF_SECRET": "0123456789abcde" + str(rank)})
        self.assertEqual([one.returncode for one in results], [3, 3], results)
        for one in results:
            self.assertIn("have different secrets", one.stderr)

    def test_strangers_at_the_port_do_no_harm(self):
        port = free_port()
        first = start("--ranks", "2", "--rank", "0", "--rendezvous", f"127.0.0.1:{port}", *QUICK)
        strangers = []

        def connect():
            try:
                strangers.append(socket.create_connection(("127.0.0.1", port), 1))
                return True
            except OSError:
                return False
        for said in (b"GET / HTTP/1.0\r\n\r\n", b"{}\n", b"x" * 100000, b""):
            wait_until(connect)
            try:
                strangers[-1].sendall(said)
            except OSError:
                pass
        second = probe("--ranks", "2", "--rank", "1", "--rendezvous", f"127.0.0.1:{port}", *QUICK)
        result = ended(first)
        for one in strangers:
            one.close()
        self.assertEqual((result.returncode, second.returncode), (0, 0), (result, second))


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1], verbosity=2)
