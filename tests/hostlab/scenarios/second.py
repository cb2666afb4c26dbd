"""A second job wants a NIC that has an owner: its error names the owner, which is not disturbed."""
from guest import CONFIG, expect, expect_verified, set_up, start_ranks, start_transfer
from machine import Failure

ANOTHER_CONFIG = "/home/job/ztcp.conf"


def ping_in_vain(machines, **options):
    """Starts a second job on the same NICs; returns its first rank."""
    second = start_ranks(machines, "--op ping --iters 1", port=29501, **options)
    for job in second:
        if job.wait().status == 0:
            raise Failure(f"{job} got a NIC that has an owner")
    return second[0]


def run(lab):
    machines = lab.boot(2, nics=["virtio"], memory_mib=10240)
    set_up(machines, "--spare 1G")  # Pages for both jobs, so that only the NIC is missing.
    for machine in machines:
        machine.run("mkdir -p ~/run && sed 's|^run_dir *=.*|run_dir = \"/home/job/run\"|' "
                    f"{CONFIG} >{ANOTHER_CONFIG} && grep home/job/run {ANOTHER_CONFIG}", user="job")
    first = start_transfer(lab, machines, iterations=1000)
    owner = machines[0].run("pgrep ztcp_perf").output.split()[0]
    lab.say("a second job on the same NICs")
    second = ping_in_vain(machines)
    expect(owner, second.output, second)
    lab.say("one that keeps its locks elsewhere, as in another container: it is the kernel that refuses")
    third = ping_in_vain(machines, prefix=f"ZTCP_CONFIG={ANOTHER_CONFIG}")
    expect("is held by another process (pid unknown, another container?)", third.output, third)
    expect_verified(first)
