"""iWARP in software (siw): found by set-up, an ordinary user's job over it, with loss, a killed rank, and a device joined to itself for flushes."""
from guest import (CONFIG, ENDS_WITHIN_S, ZTCP_SETUP, all_reduce, check, expect, expect_end, install_module, kernel_module, on_all,
                   set_up, start_ranks, start_transfer, undo)
from machine import Failure

LIMIT_S = 2400  # The module is built from 130 MB of Debian's kernel source.
VERBS = "ztcp_setup --transport verbs --user job"


def run(lab):
    machines = lab.boot(2, nics=["virtio"])
    folder = kernel_module(lab, machines[0], "siw")
    for machine in machines:
        install_module(machine, folder, "siw")
        machine.run("modprobe -a ib_uverbs rdma_ucm siw && "
                    f"rdma link add siw0 type siw netdev {machine.interface(1)} && udevadm settle && rdma link")
    lab.say("set-up")
    for job in set_up(machines, "", command=VERBS):
        expect("setup successfully, over RDMA devices", job.output, job)
        expect("iWARP", job.output, job)
    for machine in machines:
        for text in ('device = "siw0"', f'address = "{machine.address(1)}/24"'):
            expect(text, machine.read(CONFIG), f"{machine.name}: {CONFIG}")
    check(machines)
    told = machines[0].run(f"{ZTCP_SETUP} --check", user="job", status=None)
    for text in ("port 1 of siw0 is active: iWARP, ", "/dev/infiniband/rdma_cm may be opened"):
        expect(text, told.output, told)

    lab.say("all-reduce")
    all_reduce(machines, size="--min 8 --max 256K --factor 8", pmd="RDMA verbs, siw0 port 1, iWARP")
    if lab.wire(1).forwarded < 100:
        raise Failure("the job's data did not go over its rail")
    lab.say("over four queue pairs, and with 1 % of the frames lost")
    lab.wire(1).loss = 0.01
    all_reduce(machines, size="--min 16K --max 256K --factor 16", pmd="NCCL_IB_QPS_PER_CONNECTION 4",
               prefix="env NCCL_IB_QPS_PER_CONNECTION=4", port=29550)
    lab.wire(1).loss = 0

    lab.say("a rank is killed")
    jobs = start_transfer(lab, machines, iterations=100000, port=29600)
    machines[1].run("pkill -KILL -u job -x ztcp_perf")
    expect_end(jobs[0], "is gone: it was killed, its machine failed")

    lab.say("without access to the connection manager")
    on_all(machines, "chmod 600 /dev/infiniband/rdma_cm")
    told = machines[0].run(f"{ZTCP_SETUP} --check", user="job", status=None)
    expect("may not open /dev/infiniband/rdma_cm", told.output, told)
    jobs = start_ranks(machines, "--op ping --iters 1", port=29650)
    for job in jobs:
        job.wait(ENDS_WITHIN_S)
    expect("iWARP's connection manager can't be used (/dev/infiniband/rdma_cm: Permission denied)", jobs[0].output, jobs[0])
    on_all(machines, "chmod 666 /dev/infiniband/rdma_cm")
    all_reduce(machines, size="--min 8 --max 64K --factor 64", pmd="iWARP", port=29700)

    # GPU memory is not registered here. But a device that hands it over tries at start whether it
    # can flush it.
    lab.say("two queue pairs of one device are joined")
    folder = kernel_module(lab, machines[0], "nvidia_peermem")
    for machine in machines:
        install_module(machine, folder, "nvidia_peermem")
    on_all(machines, "modprobe nvidia_peermem")
    all_reduce(machines, size="--min 8 --max 64K --factor 64", pmd="GPUDirect RDMA on (nvidia_peermem)", port=29710)
    lab.say("and are not")
    on_all(machines, "modprobe sch_netem && tc qdisc add dev lo root netem loss 100%")
    all_reduce(machines, size="--min 8 --max 64K --factor 64", pmd="GPUDirect RDMA off: it can't flush its writes into GPU memory: "
               "its queue pairs can't be joined to one another", port=29720)
    on_all(machines, "tc qdisc delete dev lo root")
    lab.say("undo")
    undo(machines)
