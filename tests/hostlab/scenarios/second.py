"""A second process wants the same NIC: it is told who has it, and the first is not disturbed."""
from guest import expect, expect_verified, set_up, start_ranks, start_transfer
from machine import Failure


def run(lab):
    machines = lab.boot(2, nics=["virtio"], memory_mib=10240)
    set_up(machines, "--spare 1G")  # Pages for both, so that it is the NIC that is missing.
    first = start_transfer(lab, machines)
    owner = machines[0].run("pgrep ztcp_perf").output.split()[0]
    lab.say("a second job on the same NICs")
    second = start_ranks(machines, "--op ping --iters 1", port=29501)
    for job in second:
        if job.wait().status == 0:
            raise Failure(f"{job} got a NIC that has an owner")
    expect(owner, second[0].output, second[0])
    expect_verified(first)
