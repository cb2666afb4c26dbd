# SPDX-License-Identifier: Apache-2.0
# Copyright the ztcp authors
"""Fabrics, switches and ranks as real processes, for the end-to-end tests.

Every process of a test is started here, waited for with a bound, and ended by its pid.
"""
import contextlib
import json
import os
import re
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time

PLUGIN = os.environ["E2E_PLUGIN"]
PERF = os.environ["E2E_PERF"]
SETUP = os.environ["E2E_SETUP"]
SWITCH = os.environ["E2E_SWITCH"]

# Timers short enough for a test to see them fire; the defaults suit hosts in different buildings.
QUICK_TIMERS = {
    "handshake_timeout_ms": 3000,
    "connect_timeout_ms": 3000,
    "user_timeout_ms": 3000,
    "keepalive_idle_ms": 500,
    "keepalive_interval_ms": 300,
}


class Failed(AssertionError):
    pass


def check(condition, message):
    if not condition:
        raise Failed(message)


class Process:
    """A child with its output in a file."""

    def __init__(self, name, command, folder, env=None, pass_fds=()):
        self.name = name
        self.log_path = os.path.join(folder, name + ".out")
        with open(self.log_path, "wb") as log:
            self.child = subprocess.Popen(
                command, stdin=subprocess.DEVNULL, stdout=log, stderr=subprocess.STDOUT,
                env={**os.environ, **(env or {})}, pass_fds=pass_fds)

    @property
    def pid(self):
        return self.child.pid

    def output(self):
        with open(self.log_path, "rb") as log:
            return log.read().decode(errors="replace")

    def running(self):
        return self.child.poll() is None

    def wait(self, timeout_s):
        try:
            return self.child.wait(timeout_s)
        except subprocess.TimeoutExpired:
            raise Failed(f"{self.name} (pid {self.pid}) still runs after {timeout_s} s;"
                         f" it said:\n{self.output()}") from None

    def send(self, signal_number):
        if self.running():
            os.kill(self.pid, signal_number)

    def end(self):
        """Kills the process if it still runs; SIGKILL ends a stopped one, too."""
        self.send(signal.SIGKILL)
        self.child.wait(10)


class Fabric:
    """A local fabric in a temporary folder, with everything that runs on it."""

    def __init__(self, ranks, topology="switch", mtu=9000, settings=None, arguments=()):
        # Short: socket paths end at 107 bytes.
        self.folder = tempfile.mkdtemp(prefix="ztcp-e2e.", dir="/tmp")
        self.ranks = ranks
        self.config = os.path.join(self.folder, "ztcp.conf")
        self.processes = []
        subprocess.run([SETUP, "--local", str(ranks), "--dir", self.folder, "--topology", topology,
                        "--mtu", str(mtu), *arguments], check=True, timeout=30, stdout=subprocess.DEVNULL)
        for key, value in (settings or {}).items():
            self.set(key, value)

    def __enter__(self):
        return self

    def __exit__(self, kind, value, traceback):
        for process in reversed(self.processes):
            with contextlib.suppress(Exception):
                process.end()
        if kind is not None:
            for process in self.processes:
                sys.stderr.write(f"--- {process.name}\n{process.output()[-4000:]}\n")
            log = self.log()
            sys.stderr.write(f"--- ztcp.log\n{log[-6000:]}\n")
        shutil.rmtree(self.folder, ignore_errors=True)

    def set(self, key, value, config=None):
        """Changes every `key = ...` line of a config."""
        path = config or self.config
        with open(path, encoding="utf-8") as file:
            text = file.read()
        text, count = re.subn(rf"(?m)^#?{key} = .*$", f"{key} = {value}", text)
        check(count > 0, f"{path} has no key {key}")
        with open(path, "w", encoding="utf-8") as file:
            file.write(text)

    def use_ipv6(self):
        """Gives each NIC an IPv6 address in place of its IPv4 one."""
        with open(self.config, encoding="utf-8") as file:
            text = file.read()
        text, count = re.subn(r'(?m)^address = "[0-9.]+\.([0-9]+)/[0-9]+"', r'address = "fd00::\1/64"', text)
        check(count > 0, f"{self.config} has no IPv4 address")
        with open(self.config, "w", encoding="utf-8") as file:
            file.write(text)

    def copy_config(self, name):
        """Writes another config of the same fabric, for a host that is set up differently."""
        path = os.path.join(self.folder, name)
        shutil.copy(self.config, path)
        return path

    def log(self):
        with contextlib.suppress(FileNotFoundError):
            with open(os.path.join(self.folder, "ztcp.log"), encoding="utf-8",
                      errors="replace") as file:
                return file.read()
        return ""

    def start(self, name, command, env=None, pass_fds=()):
        env = {"ZTCP_LOG": os.path.join(self.folder, "ztcp.log"), **(env or {})}
        process = Process(name, command, self.folder, env, pass_fds)
        self.processes.append(process)
        return process

    def switch_ports(self):
        """One for each NIC of the config."""
        return ["--config", self.config]

    def start_switch(self, *arguments):
        read_end, write_end = os.pipe()
        try:
            switch = self.start("switch", [SWITCH, *self.switch_ports(), "--exit-with-parent",
                                           "--ready-fd", str(write_end), *arguments],
                                pass_fds=(write_end,))
            os.close(write_end)
            write_end = -1
            os.set_blocking(read_end, False)
            deadline = time.monotonic() + 30
            while True:
                with contextlib.suppress(BlockingIOError):
                    if os.read(read_end, 64):
                        return switch
                check(switch.running(), f"the switch ended:\n{switch.output()}")
                check(time.monotonic() < deadline, "the switch is not ready after 30 s")
                time.sleep(0.02)
        finally:
            os.close(read_end)
            if write_end >= 0:
                os.close(write_end)

    def start_perf(self, *arguments, name="perf", env=None):
        """Starts all ranks through ztcp_perf's own launcher."""
        return self.start(name, [PERF, "--plugin", PLUGIN, "--config", self.config, "--ranks",
                                 str(self.ranks), *arguments], env)

    def start_ranks(self, *arguments, configs=None, ranks=None, prefix="rank", env=None):
        """Starts each rank as a process, so that a test can kill a given one."""
        count = ranks or self.ranks
        port = free_port()
        started = []
        for rank in range(count):
            config = (configs or {}).get(rank, self.config)
            started.append(self.start(
                f"{prefix}{rank}",
                [PERF, "--plugin", PLUGIN, "--config", config, "--ranks", str(count), "--rank",
                 str(rank), "--rendezvous", f"127.0.0.1:{port}", *arguments],
                {"ZTCP_LOCAL_RANK": str(rank), **(env or {})}))
        return started

    def run_perf(self, *arguments, timeout_s=120, env=None):
        """Runs to a successful end; returns the report."""
        report = os.path.join(self.folder, "report.json")
        perf = self.start_perf(*arguments, "--json", report, env=env)
        status = perf.wait(timeout_s)
        check(status == 0, f"ztcp_perf ended with {status}")
        with open(report, encoding="utf-8") as file:
            return json.load(file)


def free_port():
    with socket.socket() as s:
        s.bind(("127.0.0.1", 0))
        return s.getsockname()[1]


def wait_until(condition, timeout_s, what):
    deadline = time.monotonic() + timeout_s
    while not condition():
        check(time.monotonic() < deadline, f"{what}: not within {timeout_s} s")
        time.sleep(0.02)


def main(cases):
    """Runs the case named on the command line; meson makes a test of each."""
    if len(sys.argv) != 2 or sys.argv[1] not in cases:
        sys.exit(f"usage: {sys.argv[0]} {{{','.join(cases)}}}")
    try:
        cases[sys.argv[1]]()
    except Failed as failure:
        sys.exit(f"FAILED: {failure}")
