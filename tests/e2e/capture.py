#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
# Copyright the ztcp authors
"""Captures of running jobs by ztcp_stat, read by tshark and tcpdump.

The receiver brings its NIC up and waits for the sender, so the capture begins before the first
connection. Endless jobs run until the capture has what the test wants.
"""
import glob
import os
import re
import shutil
import signal
import subprocess
import sys

from fabric import Fabric, Process, check, main, wait_until

STAT = os.environ["E2E_STAT"]
SKIP = 77
PEER = os.path.join(os.path.dirname(os.path.abspath(__file__)), "peer.py")


def need(*programs):
    for program in programs:
        if shutil.which(program) is None:
            print(f"{program} is missing")
            sys.exit(SKIP)


class Job:
    """A receiver, then a sender, that start on command. The receiver's NIC is up before the sender connects."""

    def __init__(self, fabric):
        self.fabric = fabric

    def start(self, rank, messages):
        role = "send" if rank else "recv"
        return self.fabric.start(
            f"rank{rank}", [sys.executable, PEER, role, self.fabric.folder, "--device", str(rank), "--count",
                            str(messages)],
            {"ZTCP_CONFIG": self.fabric.config, "ZTCP_LOCAL_RANK": str(rank)})


def sockets(fabric):
    return glob.glob(os.path.join(fabric.folder, "run", "capture-*.sock"))


def begin_capture(fabric, *arguments, output, name="capture"):
    capture = fabric.start(name, [STAT, "capture", "--config", fabric.config, "-o", output, *arguments])
    wait_until(lambda: "capturing" in capture.output() or not capture.running(), 20, "the start of the capture")
    check(capture.running(), f"the capture ended:\n{capture.output()}")
    return capture


def counts(capture):
    found = re.search(r"captured (\d+) frames.*, (\d+) lost", capture.output())
    check(found, f"no summary:\n{capture.output()}")
    return int(found[1]), int(found[2])


def tshark(path, *arguments):
    ran = subprocess.run(["tshark", "-n", "-r", path, *arguments], check=False, timeout=60, text=True,
                         stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    check(ran.returncode == 0, f"tshark {' '.join(arguments)}: {ran.stderr}")
    return ran.stdout.splitlines()


def shared_memory():
    need("tshark", "tcpdump")
    with Fabric(2, topology="mesh") as fabric:
        job = Job(fabric)
        path = os.path.join(fabric.folder, "capture.pcapng")
        first = job.start(0, 100)
        wait_until(lambda: sockets(fabric), 30, "the socket of rank 0")
        capture = begin_capture(fabric, "--headers", "0", "--buffer", "64", output=path)
        second = job.start(1, 100)
        for rank in (first, second):
            check(rank.wait(120) == 0, "a rank failed")
        check(capture.wait(30) == 0, "the capture failed")
        frames, lost = counts(capture)
        check(frames > 20, f"only {frames} frames")
        check(len(tshark(path)) == frames, "tshark reads another number of frames")
        check(not tshark(path, "-Y", "_ws.malformed"), "malformed packets")
        check(tshark(path, "-Y", "tcp.flags.syn == 1 && tcp.flags.ack == 0"), "no SYN")
        check(tshark(path, "-Y", "tcp.flags.syn == 1 && tcp.flags.ack == 1"), "no SYN-ACK")
        check(tshark(path, "-Y", "tcp.len > 0"), "no data")
        check(tshark(path, "-Y", "frame.packet_flags_direction == 1"), "no frame received")
        check(tshark(path, "-Y", "frame.packet_flags_direction == 2"), "no frame sent")
        if not lost:
            check(not tshark(path, "-Y", "tcp.analysis.lost_segment"), "segments are missing")
        check(tshark(path, "-T", "fields", "-e", "frame.interface_name")[0] == "ztcp0", "another interface name")
        check(not sockets(fabric), "a process that ended left its socket")


def piped():
    need("tcpdump")
    with Fabric(2, topology="mesh") as fabric:
        job = Job(fabric)
        # Far more than tcpdump reads.
        job.start(0, 1 << 40)
        wait_until(lambda: sockets(fabric), 30, "the socket of rank 0")
        job.start(1, 1 << 40)
        read_end, write_end = os.pipe()
        errors = os.path.join(fabric.folder, "errors")
        with open(errors, "wb") as log:
            capture = subprocess.Popen([STAT, "capture", "--config", fabric.config, "--device", "ztcp0", "--filter",
                                        "tcp", "-o", "-"], stdout=write_end, stderr=log)
        os.close(write_end)
        try:
            shown = subprocess.run(["tcpdump", "-n", "-c", "50", "-r", "-"], stdin=read_end, check=False, timeout=60,
                                   text=True, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
            os.close(read_end)
            check(shown.returncode == 0, f"tcpdump: {shown.stderr}")
            check(len(shown.stdout.splitlines()) == 50, f"tcpdump shows:\n{shown.stdout}{shown.stderr}")
            check(capture.wait(20) == 0, "the capture does not end with its reader")
            with open(errors, encoding="utf-8") as log:
                check("captured" in log.read(), "no summary")
        finally:
            capture.kill()


def killed():
    """A killed job leaves a socket that the next capture removes; a capture that is killed, nothing."""
    with Fabric(2, topology="mesh") as fabric:
        job = Job(fabric)
        first = job.start(0, 1 << 40)
        wait_until(lambda: sockets(fabric), 30, "the socket of rank 0")
        job.start(1, 1 << 40)
        path = os.path.join(fabric.folder, "capture.pcapng")
        for round_number in range(3):  # More than there are places.
            begin_capture(fabric, "--device", "ztcp0", output=path, name=f"victim{round_number}").end()
        interrupted = begin_capture(fabric, "--device", "ztcp0", output=path, name="interrupted")
        wait_until(lambda: os.path.getsize(path) > 10000, 30, "frames")
        interrupted.send(signal.SIGINT)
        check(interrupted.wait(20) == 0 and counts(interrupted)[0] > 0, "Ctrl-C does not end a capture well")
        capture = begin_capture(fabric, "--device", "ztcp0", output=path)
        wait_until(lambda: os.path.getsize(path) > 10000, 30, "frames")
        first.end()
        check(capture.wait(20) == 0, "the capture does not end with the job")
        check(counts(capture)[0] > 0, "no frames")
        stale = [name for name in sockets(fabric) if f"capture-{first.pid}.sock" in name]
        check(stale, "the killed process removed its socket")
        again = Process("again", [STAT, "capture", "--config", fabric.config, "--device", "ztcp0", "-o", path],
                        fabric.folder)
        check(again.wait(20) == 1 and "no process drives ztcp0" in again.output(), again.output())
        check(not os.path.exists(stale[0]), "the stale socket is still there")


if __name__ == "__main__":
    main({f.__name__: f for f in (shared_memory, piped, killed)})
