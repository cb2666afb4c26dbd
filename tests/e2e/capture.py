#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
# Copyright the ztcp authors
"""Captures of running jobs by ztcp_stat, read by tshark and tcpdump.

The receiver brings its NIC up and waits for the sender, so the capture begins before the first
connection. Endless jobs run until the capture has what the test wants.
"""
import glob
import json
import os
import re
import shutil
import signal
import subprocess
import sys

from fabric import Fabric, Process, check, main, wait_until
from namespaces import enter, ip

STAT = os.environ["E2E_STAT"]
SKIP = 77
RECEIVED, SENT = 1, 2  # pcapng's directions.
PEER = os.path.join(os.path.dirname(os.path.abspath(__file__)), "peer.py")


def need(*programs):
    for program in programs:
        if shutil.which(program) is None:
            print(f"{program} is missing")
            sys.exit(SKIP)


def flows_by_lane(fabric, pid):
    """The flows of a process's connections, as (local, remote), by its lanes on ztcp0."""
    shown = subprocess.run([STAT, "--once", "--json", "--config", fabric.config], check=False, timeout=30, text=True,
                           stdout=subprocess.PIPE, stderr=subprocess.DEVNULL)
    lanes = {}
    for process in json.loads(shown.stdout or '{"processes": []}')["processes"]:
        lane_of = {one["id"]: one["lane"] for one in process["connections"]
                   if process["devices"][one["device"]]["name"] == "ztcp0" and process["pid"] == pid}
        for flow in process["flows"]:
            if flow["connection"] in lane_of and flow["state"] == "ESTABLISHED":
                lanes.setdefault(lane_of[flow["connection"]], []).append((flow["local"], flow["remote"]))
    return lanes


class Job:
    """A receiver, then a sender, that start on command. The receiver's NIC is up before the sender connects."""

    def __init__(self, fabric):
        self.fabric = fabric

    def start(self, rank, messages, size=None):
        role = "send" if rank else "recv"
        return self.fabric.start(
            f"rank{rank}", [sys.executable, PEER, role, self.fabric.folder, "--device", str(rank), "--count",
                            str(messages), *([] if size is None else ["--size", str(size)])],
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


def several_lanes():
    """A capture has the frames of all lanes of a NIC, each frame once."""
    need("tshark")
    with Fabric(2, topology="mesh", arguments=("--queues", "2")) as fabric:
        rank = fabric.start_ranks("--op", "all_to_all", "--min", "64K", "--max", "64K", "--iters", "10000000")[0]
        wait_until(lambda: len(sockets(fabric)) == 2, 30, "the sockets of both ranks")
        wait_until(lambda: len(flows_by_lane(fabric, rank.pid)) == 2, 30, "connections on both lanes")
        lanes = flows_by_lane(fabric, rank.pid)
        path = os.path.join(fabric.folder, "capture.pcapng")
        capture = begin_capture(fabric, "--device", "ztcp0", "--pid", str(rank.pid), output=path)
        wait_until(lambda: os.path.getsize(path) > 1_000_000 or not capture.running(), 30, "frames")
        capture.send(signal.SIGINT)
        check(capture.wait(20) == 0, "the capture failed")
        frames, _ = counts(capture)
        rows = tshark(path, "-T", "fields", "-E", "separator= ", "-e", "frame.packet_flags_direction", "-e", "ip.src",
                      "-e", "tcp.srcport", "-e", "ip.dst", "-e", "tcp.dstport")
        check(len(rows) == frames, f"tshark reads {len(rows)} of {frames} frames")
        check(not tshark(path, "-Y", "_ws.malformed"), "malformed packets")
        seen = set()
        for row in rows:
            direction, source, source_port, target, target_port = row.split(" ")
            ends = [f"{source}:{source_port}", f"{target}:{target_port}"]
            seen.add((int(direction, 0), *(ends if int(direction, 0) == SENT else reversed(ends))))
        for lane, flows in lanes.items():
            for flow in flows:
                for direction in (RECEIVED, SENT):
                    check((direction, *flow) in seen, f"no frame of lane {lane}: {direction} {flow} in {seen}")
        # A frame that two lanes record would look like one that was sent again at once.
        again = tshark(path, "-Y", "tcp.len > 0 && tcp.analysis.retransmission")
        check(len(again) < frames / 10, f"{len(again)} of {frames} frames are there twice")


def super_segments():
    """A NIC that segments gets frames larger than its MTU. They are captured whole, and no byte is missing."""
    need("tshark", "ip")
    enter()
    # The old one shows the interfaces of the namespace before.
    subprocess.run(["mount", "-t", "sysfs", "sysfs", "/sys"], check=True, timeout=30)
    ip("link", "set", "lo", "up")
    ip("link", "add", "between", "type", "bridge")
    ip("link", "set", "between", "up")
    with Fabric(2, topology="mesh") as fabric:
        with open(fabric.config, "w", encoding="utf-8") as config:
            config.write('schema = 1\nrun_dir = "run"\n')
            for rank in range(2):
                ip("tuntap", "add", f"t{rank}", "mode", "tap", "vnet_hdr")
                ip("link", "set", f"t{rank}", "master", "between", "up")
                config.write(f'[[nic]]\nname = "ztcp{rank}"\ndriver = "tap"\ntap_interface = "t{rank}"\n'
                             f'mac = "02:5a:00:00:00:0{rank + 1}"\naddress = "10.66.0.{rank + 1}/24"\n'
                             'mtu_bytes = 1500\n')
        job = Job(fabric)
        job.start(0, 1 << 40, size=1 << 20)
        wait_until(lambda: sockets(fabric), 30, "the socket of rank 0")
        received = os.path.join(fabric.folder, "received.pcapng")
        receiver = begin_capture(fabric, "--device", "ztcp0", "--buffer", "64", output=received, name="receiver")
        job.start(1, 1 << 40, size=1 << 20)
        wait_until(lambda: len(sockets(fabric)) == 2, 30, "the socket of rank 1")
        sent = os.path.join(fabric.folder, "sent.pcapng")
        sender = begin_capture(fabric, "--device", "ztcp1", "--headers", "0", "--buffer", "64", output=sent,
                               name="sender")
        wait_until(lambda: os.path.getsize(sent) > 2_000_000 or not sender.running(), 30, "frames")
        for capture in (sender, receiver):
            capture.send(signal.SIGINT)
            check(capture.wait(20) == 0, f"the capture failed:\n{capture.output()}")
        large = tshark(sent, "-Y", "frame.packet_flags_direction == 2 && ip.len > 1500")
        check(large, f"no super-segment among {counts(sender)[0]} frames")
        check(not tshark(sent, "-Y", "_ws.malformed"), "malformed packets")
        check(not tshark(sent, "-Y", "frame.cap_len < frame.len"), "a frame was cut")
        # Received as segments, or as they were sent: TCP finds every byte.
        frames, lost = counts(receiver)
        check(frames > 20, f"only {frames} frames received")
        if not lost:
            check(not tshark(received, "-Y", "tcp.analysis.lost_segment"), "segments are missing")


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
    main({f.__name__: f for f in (shared_memory, several_lanes, super_segments, piped, killed)})
