#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
# Copyright the ztcp authors
"""Peers, switches and NICs that fail: each failure ends in a clear error within a bounded time."""
import os
import re
import signal
import subprocess
import sys
import time

from fabric import PLUGIN, QUICK_TIMERS, Fabric, check, main, wait_until

PEER = os.path.join(os.path.dirname(os.path.abspath(__file__)), "peer.py")
EXIT_PLUGIN_ERROR = 7
# Detection takes the keepalive or user timeout; then comes the redial window, in which a flow that
# only lost its path would come back.
DEATH_BOUND_S = 40
# With a notice of the process itself or of its kernel, and half a second to verify it; the rest is
# for a busy machine. Without a notice the death is detected after the redial window of 7 s.
TOLD_BOUND_S = 5
DIED = r"the peer's process has ended: process {} on host "
WATCH_HELLO_BYTES = 112
ENDED = r"the peer's process ended without closing the connection"
REMOTE_ERROR = 6  # ncclRemoteError


def start_peer(fabric, role, rank, *arguments, config=None, name=None, env=None):
    return fabric.start(name or f"{role}{rank}", [sys.executable, PEER, role, fabric.folder,
                                                  *arguments],
                        {"E2E_PLUGIN": PLUGIN, "ZTCP_CONFIG": config or fabric.config,
                         "ZTCP_LOCAL_RANK": str(rank), "ZTCP_LOG": fabric.folder + "/ztcp.log", **(env or {})})


def done_count(process):
    counts = re.findall(r"(?m)^done (\d+)$", process.output())
    return int(counts[-1]) if counts else 0


def start_transfer(fabric, ranks=(0, 1), *arguments, name="handle"):
    """Starts a receiver and a sender, and waits until data moves."""
    receiver = start_peer(fabric, "recv", ranks[0], "--name", name, *arguments)
    sender = start_peer(fabric, "send", ranks[1], "--name", name, *arguments)
    wait_until(lambda: done_count(receiver) > 0 and done_count(sender) > 0 or
               not receiver.running() or not sender.running(), 30, "first messages")
    check(receiver.running() and sender.running(), "the transfer did not start")
    return receiver, sender


def wait_until_watched(fabric, process, host=None):
    """Until the process has read the hello of a watch connection (transport/watch/peer_watch.h)."""
    command = ["ss", "-tinpOH", "state", "established"]
    if host is not None:
        command = fabric.inside(host, command)

    def is_watched():
        said = subprocess.run(command, check=True, timeout=30, capture_output=True, text=True).stdout
        return any(line.split()[0] == "0" and f"pid={process.pid}," in line and
                   f"bytes_received:{WATCH_HELLO_BYTES} " in line for line in said.splitlines())

    wait_until(lambda: is_watched() or not process.running(), 30, "the watch connection")


def ends_with_remote_error(process, fabric, what, bound_s=DEATH_BOUND_S):
    started = time.monotonic()
    status = process.wait(DEATH_BOUND_S)
    took = time.monotonic() - started
    check(status == EXIT_PLUGIN_ERROR, f"{process.name} ended with {status}")
    check(re.search(rf"(?m)^error {REMOTE_ERROR} from ", process.output()),
          f"{process.name} did not get ncclRemoteError:\n{process.output()[-500:]}")
    check(re.search(what, fabric.log()), f"no line says '{what}'")
    check(took <= bound_s, f"{process.name} got the error after {took:.1f} s, not {bound_s}")
    print(f"{process.name} ended after {took:.2f} s")


def killed(victim_sends, watched=True, family=4, topology="switch"):
    with Fabric(2, topology=topology, settings=QUICK_TIMERS) as fabric:
        if not watched:
            fabric.set("watch_interface", '"off"')
        if family == 6:
            fabric.use_ipv6()
        if topology == "switch":
            fabric.start_switch()
        receiver, sender = start_transfer(fabric)
        victim, survivor = (sender, receiver) if victim_sends else (receiver, sender)
        if watched:
            wait_until_watched(fabric, survivor)
        victim.send(signal.SIGKILL)
        hosts = (r"10\.99\.0\.1", r"10\.99\.0\.2") if family == 4 else (r"\[fd00::1\]", r"\[fd00::2\]")
        said = rf"receiving from {hosts[1]}:\d+ failed" if victim_sends else rf"sending to {hosts[0]}:7471 failed"
        if watched:
            said += ".*" + DIED.format(victim.pid)
        ends_with_remote_error(survivor, fabric, said, TOLD_BOUND_S if watched else DEATH_BOUND_S)


def sender_killed():
    killed(victim_sends=True)


def receiver_killed():
    killed(victim_sends=False)


def sender_killed_ipv6():
    killed(victim_sends=True, family=6)


def sender_killed_ipv6_mesh():
    killed(True, family=6, topology="mesh")


def receiver_killed_ipv6():
    killed(victim_sends=False, family=6)


def unwatched_sender_killed():
    """Without a watch only the timeouts detect the death, later."""
    killed(victim_sends=True, watched=False)


def killed_beside_its_child():
    """A data loader that outlives its rank keeps no descriptor that would hide the rank's death."""
    with Fabric(2, settings=QUICK_TIMERS) as fabric:
        fabric.start_switch()
        receiver = start_peer(fabric, "recv", 0)
        sender = start_peer(fabric, "fork-and-die", 1)
        wait_until(lambda: "child " in sender.output() and "ready" in receiver.output(), 30,
                   "the fork")
        child = int(re.search(r"child (\d+)", sender.output()).group(1))
        time.sleep(0.5)
        sender.send(signal.SIGKILL)
        try:
            ends_with_remote_error(receiver, fabric, DIED.format(sender.pid), TOLD_BOUND_S)
            os.kill(child, 0)  # It is still alive.
        finally:
            os.kill(child, signal.SIGKILL)


def exits(victim_role, *how, status=0):
    """The process exits without closing anything, and without a watch: its own notice reports it.
    """
    with Fabric(2, settings=QUICK_TIMERS) as fabric:
        fabric.set("watch_interface", '"off"')
        fabric.start_switch()
        roles = [("recv", 0), ("send", 1)]
        processes = {role: start_peer(fabric, role, rank, *(how if role == victim_role else ()))
                     for role, rank in roles}
        victim = processes.pop(victim_role)
        (survivor,) = processes.values()
        ended = victim.wait(30)
        check(ended == status, f"{victim.name} ended with {ended}, not {status}")
        ends_with_remote_error(survivor, fabric, ENDED, TOLD_BOUND_S)


def sender_exits():
    exits("send", "--exit-after", "500")


def receiver_exits():
    exits("recv", "--exit-after", "500")


def sender_raises():
    exits("send", "--raise-after", "500", status=1)


def watch_cut():
    """The kernel's connection ends, the processes do not."""
    with Fabric(2, settings=QUICK_TIMERS) as fabric:
        fabric.start_switch()
        receiver, sender = start_transfer(fabric, (0, 1), "--cut-watches-after", "2000")
        wait_until(lambda: re.search(r"(?m)^cut \d", receiver.output()) and
                   re.search(r"(?m)^cut \d", sender.output()), 30, "the cut")
        cut = [int(re.search(r"(?m)^cut (\d+)", p.output()).group(1)) for p in (receiver, sender)]
        check(sum(cut) > 0, "no watch connection was cut")
        time.sleep(2)
        before = done_count(receiver)
        wait_until(lambda: done_count(receiver) > before + 100, 30, "the transfer going on")
        check(receiver.running() and sender.running(), "the job was hurt")
        check("failed" not in fabric.log(), fabric.log())


def receiver_stopped():
    with Fabric(2, settings=QUICK_TIMERS) as fabric:
        fabric.start_switch()
        receiver, sender = start_transfer(fabric)
        receiver.send(signal.SIGSTOP)
        time.sleep(1.5)
        check(sender.running(), "a stopped process was taken for a dead one")
        ends_with_remote_error(sender, fabric, r"sending to 10\.99\.0\.1:7471 failed")


def briefly_stopped():
    """A peer that was stopped for a short while loses nothing."""
    with Fabric(2, settings=QUICK_TIMERS) as fabric:
        fabric.start_switch()
        receiver, sender = start_transfer(fabric)
        receiver.send(signal.SIGSTOP)
        time.sleep(0.6)
        receiver.send(signal.SIGCONT)
        before = done_count(receiver)
        wait_until(lambda: done_count(receiver) > before + 100, 30, "the transfer going on")
        check(sender.running(), "the sender gave up")


def pair_stopped():
    """Shared memory does not report a peer's end: only a long silence does, and a short one does
    not."""
    with Fabric(2, topology="mesh", settings=QUICK_TIMERS) as fabric:
        receiver, sender = start_transfer(fabric)
        receiver.send(signal.SIGSTOP)
        time.sleep(0.6)
        receiver.send(signal.SIGCONT)
        before = done_count(receiver)
        wait_until(lambda: done_count(receiver) > before + 100, 30, "the transfer going on")
        check(sender.running(), "the sender gave up")
        receiver.send(signal.SIGSTOP)
        ends_with_remote_error(sender, fabric, r"sending to 10\.99\.0\.1:7471 failed")


def pair_killed():
    """Without a switch the link itself goes down with the peer."""
    with Fabric(2, topology="mesh", settings=QUICK_TIMERS) as fabric:
        receiver, sender = start_transfer(fabric)
        receiver.send(signal.SIGKILL)
        ends_with_remote_error(sender, fabric, r"sending to 10\.99\.0\.1:7471 failed")


def switch_killed():
    with Fabric(2, settings=QUICK_TIMERS) as fabric:
        switch = fabric.start_switch()
        receiver, sender = start_transfer(fabric)
        switch.send(signal.SIGKILL)
        for process in (receiver, sender):
            ends_with_remote_error(process, fabric, r"no carrier on .*\.sock")


def switch_missing():
    with Fabric(2, settings=QUICK_TIMERS) as fabric:
        receiver = start_peer(fabric, "recv", 0)
        sender = start_peer(fabric, "send", 1)
        status = sender.wait(30)
        check(status == EXIT_PLUGIN_ERROR, f"the sender ended with {status}")
        check(re.search(r"no carrier on .*port1\.sock.*ztcp_switch", fabric.log()),
              "no line names the socket and the command")
        receiver.end()


def wrong_mtu():
    """The network between the hosts has a smaller MTU than both configs say."""
    with Fabric(2, mtu=2000, settings=QUICK_TIMERS) as fabric:
        fabric.start_switch()
        fabric.set("mtu_bytes", 9000)
        start_peer(fabric, "recv", 0)
        sender = start_peer(fabric, "send", 1)
        status = sender.wait(60)
        check(status == EXIT_PLUGIN_ERROR, f"the sender ended with {status}")
        check(re.search(r"(?i)mtu", fabric.log()), "no line names the MTU")


def nic_taken():
    with Fabric(2, settings=QUICK_TIMERS) as fabric:
        fabric.start_switch()
        owner = start_peer(fabric, "recv", 0)
        wait_until(lambda: os.path.exists(os.path.join(fabric.folder, "handle")), 30, "listening")
        second = start_peer(fabric, "recv", 0, "--name", "handle2", name="second")
        check(second.wait(20) == EXIT_PLUGIN_ERROR, "two processes got one NIC")
        check(str(owner.pid) in fabric.log(), f"no line names pid {owner.pid}")
        check(owner.running(), "the owner was hurt")


def orphan_keeps_no_nic():
    """A rank is killed while its forked child lives on: the next job gets the NIC within 5 s."""
    with Fabric(2, settings=QUICK_TIMERS) as fabric:
        fabric.start_switch()
        start_peer(fabric, "recv", 0)
        sender = start_peer(fabric, "fork-and-die", 1)
        wait_until(lambda: "child " in sender.output(), 30, "the fork")
        child = int(re.search(r"child (\d+)", sender.output()).group(1))
        sender.send(signal.SIGKILL)
        sender.wait(10)
        try:
            killed = time.monotonic()
            start_peer(fabric, "recv", 1, "--name", "next", "--count", "1", name="next")
            wait_until(lambda: os.path.exists(os.path.join(fabric.folder, "next")), 5,
                       "the next job's NIC")
            print(f"NIC taken over after {time.monotonic() - killed:.2f} s")
            os.kill(child, 0)  # It is still alive.
        finally:
            os.kill(child, signal.SIGKILL)


def loopback():
    with Fabric(1, settings=QUICK_TIMERS) as fabric:
        fabric.start_switch()
        peer = start_peer(fabric, "loop", 0, "--count", "50", "--size", "300000")
        check(peer.wait(60) == 0, f"the loop failed:\n{peer.output()}")


def reload():
    """NCCL unloads the plugin with its last communicator and may load it again."""
    with Fabric(1, settings=QUICK_TIMERS) as fabric:
        fabric.start_switch()
        peer = start_peer(fabric, "reload", 0, "--count", "20")
        check(peer.wait(60) == 0, f"the second load failed:\n{peer.output()}")
        check(peer.output().count("finished 20") == 2, peer.output())


if __name__ == "__main__":
    main({f.__name__: f for f in (
        sender_killed, receiver_killed, sender_killed_ipv6, sender_killed_ipv6_mesh, receiver_killed_ipv6, unwatched_sender_killed,
        killed_beside_its_child, sender_exits,
        receiver_exits, sender_raises, watch_cut, receiver_stopped, briefly_stopped, pair_stopped,
        pair_killed, switch_killed, switch_missing, wrong_mtu, nic_taken, orphan_keeps_no_nic, loopback, reload)})
