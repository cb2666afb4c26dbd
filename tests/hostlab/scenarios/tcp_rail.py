"""RDMA (soft RoCE) and the kernel's TCP as one device: each carries the job while the other's link is down; a rank is killed."""
from guest import all_reduce, expect_end, expect_verified, on_all, pull_and_put_back, start_transfer, wait_for_frames
from machine import Failure

CONFIG = "/etc/ztcp-tcp-rail.conf"
LIMIT_S = 2400


def write_config(machine):
    """Rail 1 belongs to RDMA, rail 2 to TCP, each with its own address."""
    # Neither reports a usable rate: equal ones, so that each gets a share.
    both = 'merge = "both"\nspeed_mbps = 10000\n'
    machine.write(CONFIG, 'schema = 1\nname = "tcp-rail"\n'
                  f'\n[[nic]]\nname = "ztcp0"\ndriver = "verbs"\ndevice = "rxe0"\naddress = "{machine.address(1)}/24"\n{both}'
                  f'\n[[nic]]\nname = "ztcp1"\ndriver = "socket"\ninterface = "{machine.interface(2)}"\n'
                  f'address = "{machine.address(2)}/24"\n{both}')


def run(lab):
    machines = lab.boot(2, nics=["virtio", "virtio"])
    for machine in machines:
        machine.run(f"modprobe -a ib_uverbs rdma_rxe && rdma link add rxe0 type rxe netdev {machine.interface(1)} && "
                    "udevadm settle && rdma link")
        write_config(machine)
    on_all(machines, "for i in $(seq 60); do rdma link show rxe0/1 | grep -q 'state ACTIVE' && exit 0; sleep 1; done; exit 1")
    asked = f"env ZTCP_CONFIG={CONFIG}"

    lab.say("all-reduce over both")
    all_reduce(machines, size="--min 8 --max 256K --factor 8", pmd="RDMA verbs and TCP over 2 rails", prefix=asked)
    for rail in (1, 2):
        if lab.wire(rail).forwarded < 100:
            raise Failure(f"the job's data did not go over rail {rail}")

    jobs = start_transfer(lab, machines, prefix=asked, iterations=600, port=29600)
    pull_and_put_back(lab, machines, jobs, 0, rail=1, device="rxe0 port 1", other=2)
    wait_for_frames(lab, jobs, 1)
    expect_verified(jobs)

    jobs = start_transfer(lab, machines, prefix=asked, iterations=700, port=29610)
    pull_and_put_back(lab, machines, jobs, 1, rail=2, device=f"TCP on {machines[1].interface(2)}", other=1)
    wait_for_frames(lab, jobs, 2)
    expect_verified(jobs)

    lab.say("a rank is killed")
    jobs = start_transfer(lab, machines, prefix=asked, iterations=100000, port=29620)
    machines[1].run("pkill -KILL -u job -x ztcp_perf")
    expect_end(jobs[0], "is gone: it was killed, its machine failed")
