"""Wrong MTU: on one side, jobs use the smaller; larger than the path on both, they end and name it."""
import time

from guest import all_reduce, expect, set_up, start_ranks, undo
from machine import Failure

PATH_MTU = 1500
ETHERNET_BYTES = 14


def raise_mtu(machine):
    machine.run(f"ip link set {machine.interface(1)} mtu 9000")


def run(lab):
    machines = lab.boot(2, nics=["virtio"])
    lab.wire(1).largest = PATH_MTU + ETHERNET_BYTES
    raise_mtu(machines[1])
    set_up(machines)
    lab.say("9000 on one side, 1500 on the other and on the path: TCP agrees on the smaller")
    all_reduce(machines)
    lab.say("9000 on both sides of a path of 1500")
    undo(machines[:1])
    raise_mtu(machines[0])
    set_up(machines[:1])
    started = time.monotonic()
    jobs = start_ranks(machines, "--op all_reduce --min 256K --max 256K --iters 2 --check")
    for job in jobs:
        if job.wait().status == 0:
            raise Failure(f"{job} ended well over a path that drops its packets")
    lab.say(f"ended after {time.monotonic() - started:.0f} s; {lab.wire(1).counters()}")
    expect("full-size packets do not get through", jobs[0].output + jobs[1].output, "either rank")
