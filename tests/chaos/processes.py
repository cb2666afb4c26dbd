# SPDX-License-Identifier: Apache-2.0
# Copyright the ztcp authors
"""The processes of a job. Each has its own session, so that Ctrl-C signals the harness alone, and is ended by its pid."""
from __future__ import annotations

import contextlib
import os
import pathlib
import shutil
import signal
import socket
import subprocess
import threading
import time
from collections.abc import Callable, Sequence


class Broken(Exception):
    """The harness could not set up a job. This says nothing about the plugin."""


class Cancelled(Exception):
    """The run was interrupted."""


class Process:
    """A child with its output in a file."""

    def __init__(self, name: str, command: Sequence[str], folder: pathlib.Path, env: dict[str, str] | None = None,
                 pass_fds: Sequence[int] = ()) -> None:
        self.name = name
        self.path = folder / f"{name}.out"
        self.is_meant_to_end = False  # The harness ended it.
        with self.path.open("ab") as out:
            self.child = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=out, stderr=subprocess.STDOUT,
                                          env={**os.environ, **(env or {})}, pass_fds=pass_fds, start_new_session=True)

    @property
    def pid(self) -> int:
        return self.child.pid

    def running(self) -> bool:
        return self.child.poll() is None

    def status(self) -> int | None:
        return self.child.poll()

    def output(self) -> str:
        return self.path.read_text(errors="replace")

    def send(self, number: int) -> None:
        if self.running():
            os.kill(self.pid, number)

    def end(self) -> None:
        """Kills the process, also when it is stopped."""
        self.is_meant_to_end = True
        self.send(signal.SIGKILL)
        with contextlib.suppress(subprocess.TimeoutExpired):
            self.child.wait(10)

    def is_polling(self, samples: int = 20, step_s: float = 0.02) -> bool:
        """The main thread of ztcp_perf is runnable while it polls requests of the plugin, and sleeps while it waits for ranks."""
        states = []
        for _ in range(samples):
            with contextlib.suppress(OSError):
                states.append(pathlib.Path(f"/proc/{self.pid}/task/{self.pid}/stat").read_text().rpartition(")")[2].split()[0])
            time.sleep(step_s)
        return states.count("R") * 2 > len(states)

    def snapshot(self, folder: pathlib.Path) -> None:
        """Writes NAME.stacks: the stack of each thread by gdb, or the kernel's view where gdb is missing or may not attach."""
        text = ""
        if shutil.which("gdb"):
            done = subprocess.run(["gdb", "-nx", "-batch", "-p", str(self.pid), "-ex", "thread apply all bt 24"], check=False,
                                  stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, timeout=120)
            text = done.stdout.decode(errors="replace")
        if "#0" not in text:
            text += "\n".join(kernel_view(pathlib.Path(f"/proc/{self.pid}")))
        (folder / f"{self.name}.stacks").write_text(text)


def kernel_view(process: pathlib.Path) -> list[str]:
    out = []
    for task in sorted((process / "task").glob("*")):
        out.append(f"--- thread {task.name}")
        for file in ("comm", "wchan", "syscall", "stack", "status"):
            try:
                out.append(f"{file}: {(task / file).read_text().strip()}")
            except OSError as error:
                out.append(f"{file}: {error.strerror}")
    return out


def run(*command: str, is_checked: bool = True) -> str:
    done = subprocess.run(command, check=False, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                          text=True, timeout=60)
    if is_checked and done.returncode != 0:
        raise Broken(f"{' '.join(command)}: {done.stdout.strip() or done.returncode}")
    return done.stdout


def wait_until(condition: Callable[[], bool], timeout_s: float, cancelled: threading.Event, step_s: float = 0.05) -> bool:
    """False after the timeout."""
    deadline = time.monotonic() + timeout_s
    while not condition():
        if cancelled.wait(step_s):
            raise Cancelled
        if time.monotonic() > deadline:
            return False
    return True


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


def start_ready(name: str, command: list[str], folder: pathlib.Path, cancelled: threading.Event) -> Process:
    """Starts a ztcp_switch and returns when all its ports listen."""
    read_end, write_end = os.pipe()
    try:
        process = Process(name, [*command, "--ready-fd", str(write_end)], folder, pass_fds=(write_end,))
        os.close(write_end)
        write_end = -1
        os.set_blocking(read_end, False)

        def is_ready() -> bool:
            with contextlib.suppress(BlockingIOError):
                return os.read(read_end, 64) != b"" or not process.running()
            return False
        try:
            if not wait_until(is_ready, 60, cancelled) or not process.running():
                raise Broken(f"{name} is not ready: {process.output()[-500:]}")
        except BaseException:
            process.end()
            raise
        return process
    finally:
        for end in (read_end, write_end):
            if end >= 0:
                os.close(end)
