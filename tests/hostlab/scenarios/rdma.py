"""RDMA devices through set-up: soft RoCE is found and written, an ordinary user's job runs over it, --check names missing things."""
from guest import CONFIG, ZTCP_SETUP, all_reduce, check, expect, expect_same, on_all, set_up, state, undo
from machine import Failure

VERBS = "ztcp_setup --transport verbs --user job"


def run(lab):
    machines = lab.boot(2, nics=["virtio"])
    lab.say("without a device")
    refused = machines[0].run(f"{VERBS} --dry-run", status=3)
    expect("no RDMA device", refused.output, refused)

    names = [machine.interface(1) for machine in machines]
    on_all(machines, "modprobe -a ib_uverbs rdma_rxe")
    for machine, name in zip(machines, names):
        machine.run(f"rdma link add rxe0 type rxe netdev {name} && udevadm settle")
    before = [state(machine) for machine in machines]
    told = machines[0].run("ztcp_setup --transport sockets --dry-run", status=None)
    expect("Unused RDMA devices: rxe0 port 1", told.output, told)
    lab.say("set-up")
    for job in on_all(machines, f"{VERBS} --dry-run"):
        expect("Transport: RDMA devices for the whole host", job.output, job)
    for job in set_up(machines, "", command=VERBS):
        expect("setup successfully, over RDMA devices", job.output, job)
    for machine in machines:
        config = machine.read(CONFIG)
        for text in ('driver = "verbs"', 'device = "rxe0"', f'address = "{machine.address(1)}/24"'):
            expect(text, config, f"{machine.name}: {CONFIG}")
    for job in on_all(machines, f"{VERBS} --dry-run"):
        expect("Set-up would change nothing.", job.output, job)
    check(machines)
    told = machines[0].run(f"{ZTCP_SETUP} --check", user="job", status=None)
    for text in (f"port 1 of rxe0 is active: Ethernet, ", "/dev/infiniband/uverbs0 may be opened",
                 f"{machines[0].address(1)} (RoCE v2), chosen by itself", "unlimited"):
        expect(text, told.output, told)
    lab.say("all-reduce")
    all_reduce(machines, size="--min 8 --max 64K --factor 8", pmd="RDMA verbs, rxe0 port 1, RoCE v2")
    if lab.wire(1).forwarded < 100:
        raise Failure("the job's data did not go over its rail")

    lab.say("what is missing is named")
    machines[0].run("chmod 600 /dev/infiniband/uverbs0")
    told = machines[0].run(f"{ZTCP_SETUP} --check", user="job", status=None)
    expect("may not open /dev/infiniband/uverbs0, which is rxe0's", told.output, told)
    machines[0].run("chmod 666 /dev/infiniband/uverbs0 && rdma link delete rxe0")
    told = machines[0].run(f"{ZTCP_SETUP} --check", user="job", status=None)
    expect(f"sudo modprobe rdma_rxe && sudo rdma link add rxe0 type rxe netdev {names[0]}", told.output, told)
    machines[0].run(f"rdma link add rxe0 type rxe netdev {names[0]} && udevadm settle")
    lab.say("undo")
    undo(machines)
    for machine, was in zip(machines, before):
        expect_same(was, state(machine), f"{machine.name}: undo")
