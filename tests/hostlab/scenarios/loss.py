"""1 % of all frames are lost: every byte arrives, once. Through pages of 2 MiB."""
from guest import CONFIG, all_reduce, expect, set_up
from machine import Failure


def run(lab):
    machines = lab.boot(2, nics=["virtio"])
    set_up(machines, "--spare 0 --pages 2M")
    expect("page_kib = 2048", machines[0].read(CONFIG), CONFIG)
    lab.wire(1).loss = 0.01
    lab.say("all-reduce")
    all_reduce(machines, size="--min 64K --max 1M --factor 4")
    lab.say(lab.wire(1).counters())
    if lab.wire(1).lost < 10:
        raise Failure("hardly anything was lost, so nothing was shown")
