"""Kernel sockets: set-up takes nothing, an ordinary user's job runs over the kernel's NICs, undo leaves nothing."""
from guest import CONFIG, ZTCP_SETUP, all_reduce, check, expect, expect_same, on_all, set_up, state, undo
from machine import Failure

SOCKETS = "ztcp_setup --transport sockets"


def run(lab):
    machines = lab.boot(2, nics=["virtio"])
    before = [state(machine) for machine in machines]
    # The control rail's default route is not the best one, so set-up would use that rail, too.
    options = f"--keep {machines[0].pci(0)} --speed 10000"
    for job in on_all(machines, f"{SOCKETS} {options} --dry-run"):
        expect("no NIC is taken", job.output, job)
    lab.say("set-up")
    for job in set_up(machines, options, command=SOCKETS):
        expect("setup successfully, over kernel sockets", job.output, job)
    for machine in machines:
        config = machine.read(CONFIG)
        for text in ('driver = "socket"', f'address = "{machine.address(1)}/24"'):
            expect(text, config, f"{machine.name}: {CONFIG}")
        if machine.address(0) in config:
            raise Failure(f"{machine.name}: the control rail is in the config:\n{config}")
    check(machines)
    lab.say("all-reduce")
    all_reduce(machines, pmd="kernel sockets")
    if lab.wire(1).forwarded < 100:
        raise Failure("the job's data did not go over its rail")
    lab.say("with 1 % of the frames lost, and through a reboot")
    lab.wire(1).loss = 0.01
    all_reduce(machines, size="--min 64K --max 256K --factor 4", pmd="kernel sockets")
    lab.wire(1).loss = 0
    machines[0].reboot()
    all_reduce(machines, pmd="kernel sockets")
    lab.say("without the address")
    interface = machines[0].interface(1)
    machines[0].run(f"ip address flush dev {interface}")
    fault = machines[0].run(f"{ZTCP_SETUP} --check", user="job", status=2)
    expect(f"sudo ip address add {machines[0].address(1)}/24 dev {interface}", fault.output, fault)
    machines[0].run(f"ip address add {machines[0].address(1)}/24 dev {interface}")
    lab.say("undo")
    undo(machines)
    expect_same(before[1], state(machines[1]), f"{machines[1].name}: undo")
