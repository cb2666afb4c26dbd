"""NICs of three drivers in one config: userspace TCP, RDMA (soft RoCE) and kernel sockets, a job over each, and over all at once; undo leaves the others alone."""
from guest import CONFIG, all_reduce, check, expect_same, expect_verified, set_up, start_ranks, state, undo
from machine import Failure

# By device. Rail 3's NIC is taken; the others stay with the kernel.
DRIVERS = (("net_virtio", 3), ("RDMA verbs, rxe0 port 1, RoCE v2", 1), ("kernel sockets", 2))


def add_nics(machine):
    machine.write(CONFIG, machine.read(CONFIG) +
                  f'\n[[nic]]\nname = "rdma0"\ndriver = "verbs"\ndevice = "rxe0"\naddress = "{machine.address(1)}/24"\n'
                  f'\n[[nic]]\nname = "eth0"\ndriver = "socket"\ninterface = "{machine.interface(2)}"\naddress = "{machine.address(2)}/24"\n'
                  "speed_mbps = 10000\n")


def run(lab):
    machines = lab.boot(2, nics=["virtio", "virtio", "virtio"])
    for machine in machines:
        machine.run(f"modprobe -a ib_uverbs rdma_rxe && rdma link add rxe0 type rxe netdev {machine.interface(1)} && udevadm settle")
    before = [state(machine) for machine in machines]
    lab.say("set-up")
    set_up(machines, f"--spare 0 --keep {machines[0].pci(1)} --keep {machines[0].pci(2)}")
    for machine in machines:
        add_nics(machine)
    check(machines)
    for device, (text, rail) in enumerate(DRIVERS):
        lab.say(f"all-reduce over device {device}: {text}")
        counted = {wire: lab.wire(wire).forwarded for _, wire in DRIVERS}
        all_reduce(machines, nic=device, pmd=text, port=29500 + 10 * device)
        for wire, was in counted.items():
            if (lab.wire(wire).forwarded - was >= 100) != (wire == rail):
                raise Failure(f"rail {wire}: {lab.wire(wire).forwarded - was} frames by the job over rail {rail}")
    lab.say("both kinds of a kernel's NIC and the taken one at once")
    jobs = [start_ranks(machines, "--op all_reduce --min 256K --max 256K --iters 20 --warmup 1 --check", nic=device,
                        port=29600 + 10 * device) for device in range(len(DRIVERS))]
    for job in jobs:
        expect_verified(job)
    lab.say("undo")
    undo(machines)
    for machine, was in zip(machines, before):
        # An edited config is kept, beside its old place.
        machine.run(f"test -f {CONFIG}.edited && rm -r /usr/local/tfabric")
        expect_same(was, state(machine), f"{machine.name}: undo")
