"""Several queues of a virtio NIC: 4 and auto, over a tap that chooses the receive queue by itself."""
from guest import CONFIG, SET_UP, all_reduce, check, expect, expect_same, set_up, state, undo

LIMIT_S = 2400


def run(lab):
    machines = lab.boot(2, nics=["virtio*4"], cpus=4)
    before = [state(machine) for machine in machines]
    refused = machines[0].run(f"{SET_UP} --spare 0 --queues 8", status=2)
    expect("8 queues wanted, but its driver virtio-pci has at most 4", refused.output, refused)
    lab.say("set-up with 4 queues")
    set_up(machines, "--spare 0 --queues 4")
    expect("queues = 4", machines[0].read(CONFIG), CONFIG)
    check(machines)
    lab.say("all-reduce")
    all_reduce(machines, size="--min 8 --max 1M --factor 8", pmd="4 lanes, their pollers")
    all_reduce(machines, size="--min 4M --max 4M", pmd="4 lanes, their pollers")
    lab.say("as many as its speed and the CPUs suggest")
    set_up(machines, "--spare 0 --queues auto")
    all_reduce(machines, pmd="2 lanes (auto: 2 for an unknown speed")
    lab.say("undo")
    undo(machines)
    for machine, was in zip(machines, before):
        expect_same(was, state(machine), f"{machine.name}: undo")
