# SPDX-License-Identifier: Apache-2.0
# Copyright the ztcp authors
"""Ranks that stay and run jobs: processes of a program that speaks train_rank.py's protocol."""
import json
import os
import pathlib
import selectors
import signal
import subprocess
import sys
import time


INTERRUPTS = {signal.SIGINT, signal.SIGTERM, signal.SIGHUP}


class Failed(Exception):
    """A rank ended, failed or took too long. All ranks have been ended."""


class Ranks:
    """One process for each environment, in rank order, until close(). Owner: one thread."""

    def __init__(self, program, environments, devices, folder, hosts=None):
        """`hosts`: those of the ranks (veth), or None: all run on this one."""
        self.program, self.environments, self.devices = program, environments, devices
        self.hosts = hosts
        self.folder = pathlib.Path(folder)  # For the ranks' standard error.
        self.processes, self.buffers, self.unready = [], [], set()

    @property
    def is_running(self):
        return bool(self.processes)

    def start(self):
        """Starts the ranks, which load PyTorch; run() waits for it."""
        ranks = len(self.environments)
        for rank, environment in enumerate(self.environments):
            command = [sys.executable, str(self.program), "--rank", str(rank), "--ranks", str(ranks),
                       "--device", self.devices[rank], "--parent", str(os.getpid())]
            if self.hosts:
                command = self.hosts.inside(rank, command)
            with open(self.folder / f"start{rank}.txt", "w") as errors:
                self._start_one(command, environment, errors)
            os.set_blocking(self.processes[-1].stdout.fileno(), False)
        self.buffers = [b""] * ranks
        self.unready = set(range(ranks))

    def _start_one(self, command, environment, errors):
        # An interrupt must not come before the process is in the list, where close() finds it.
        before = signal.pthread_sigmask(signal.SIG_BLOCK, INTERRUPTS)
        try:
            # A new session: Ctrl-C reaches only this process, and close() all processes of a rank.
            self.processes.append(subprocess.Popen(
                command, env=environment, stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                stderr=errors, start_new_session=True,
                preexec_fn=lambda: signal.pthread_sigmask(signal.SIG_SETMASK, before)))
        finally:
            signal.pthread_sigmask(signal.SIG_SETMASK, before)

    def wait_until_ready(self, limit_s):
        deadline = time.monotonic() + limit_s
        while self.unready:
            rank, _ = self._next(deadline, f"not started within {limit_s:g} s")
            self.unready.discard(rank)

    def run(self, job, limit_s):
        """Returns when every rank has done `job`; ends all when one fails, or after limit_s."""
        line = json.dumps(job).encode() + b"\n"
        deadline = time.monotonic() + limit_s
        for rank, process in enumerate(self.processes):
            try:
                process.stdin.write(line)
                process.stdin.flush()
            except OSError:
                self._fail(f"rank {rank} ended")
        pending = set(range(len(self.processes)))
        while pending:
            rank, message = self._next(deadline, f"not done within {limit_s:g} s")
            if message["done"] != 0:
                self._fail(f"rank {rank} ended with {message['done']}")
            pending.discard(rank)

    def close(self):
        """Ends the processes that still run."""
        for process in self.processes:
            try:
                os.killpg(process.pid, signal.SIGKILL)
            except ProcessLookupError:
                pass
        for process in self.processes:
            process.wait()
            process.stdin.close()
            process.stdout.close()
        self.processes = []

    def _fail(self, why):
        said = [(self.folder / f"start{rank}.txt").read_text()[-800:] for rank in range(len(self.processes))]
        self.close()
        raise Failed("\n".join([why, *filter(None, said)]))

    def _next(self, deadline, too_late):
        """The next message of any rank, as (rank, message)."""
        while True:
            for rank, buffer in enumerate(self.buffers):
                if b"\n" in buffer:
                    line, _, self.buffers[rank] = buffer.partition(b"\n")
                    return rank, json.loads(line)
            with selectors.DefaultSelector() as selector:
                for rank, process in enumerate(self.processes):
                    selector.register(process.stdout, selectors.EVENT_READ, rank)
                ready = selector.select(max(0.0, deadline - time.monotonic()))
            if not ready:
                self._fail(too_late)
            for key, _ in ready:
                read = os.read(key.fileobj.fileno(), 65536)
                if not read:
                    self._fail(f"rank {key.data} ended")
                self.buffers[key.data] += read
