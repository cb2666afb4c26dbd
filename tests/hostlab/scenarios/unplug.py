"""A NIC in use is pulled out: its job ends with the reason, the job on the other NIC goes on."""
from guest import expect, expect_verified, set_up, start_transfer
from machine import Failure


def run(lab):
    machines = lab.boot(2, nics=("virtio", "virtio"), memory_mib=10240)
    set_up(machines)
    lab.say("a job on each NIC")
    hit = start_transfer(lab, machines, rail=1, iterations=100000)
    healthy = start_transfer(lab, machines, rail=2, nic=1, port=29501, iterations=60)
    lab.say("unplug NIC 1 of host1")
    machines[1].unplug(1)
    for job in hit:
        if job.wait().status == 0:
            raise Failure(f"{job} ended well without its NIC")
    expect("taken out of this machine", hit[1].output, hit[1])
    lab.say("the other job")
    expect_verified(healthy)
