"""RDMA (soft RoCE) and userspace TCP in one config, a job over each: one job loses its link and ends, the other goes on."""
from guest import CONFIG, all_reduce, expect, expect_end, on_all, set_up, start_transfer, undo, wait_for_frames
from machine import Failure

LIMIT_S = 2400


def run(lab):
    """Rail 1 is taken from the kernel, rail 2 belongs to RDMA."""
    machines = lab.boot(2, nics=["virtio", "virtio"])
    set_up(machines, command="ztcp_setup --nics 1 --per-gpu 1G --user job")
    for machine in machines:
        machine.run(f"modprobe -a ib_uverbs rdma_rxe && rdma link add rxe0 type rxe netdev {machine.interface(2)} && "
                    "udevadm settle && rdma link")
        machine.write(CONFIG, machine.read(CONFIG) + '\n[[nic]]\nname = "rdma0"\ndriver = "verbs"\ndevice = "rxe0"\n'
                      f'address = "{machine.address(2)}/24"\n')
    on_all(machines, "for i in $(seq 60); do rdma link show rxe0/1 | grep -q 'state ACTIVE' && exit 0; sleep 1; done; exit 1")

    lab.say("all-reduce over either")
    for nic, rail in ((0, 1), (1, 2)):
        before = lab.wire(rail).forwarded
        all_reduce(machines, size="--min 8 --max 64K --factor 8", pmd="RDMA verbs, rxe0 port 1, RoCE v2", nic=nic, port=29500 + 10 * nic)
        if lab.wire(rail).forwarded < before + 100:
            raise Failure(f"NIC {nic} did not carry its job over rail {rail}")

    lab.say("at the same time, until one loses its link")
    by_tcp = start_transfer(lab, machines, rail=1, nic=0, iterations=100000, port=29600)
    by_rdma = start_transfer(lab, machines, rail=2, nic=1, iterations=100000, port=29610)
    for job in by_tcp:
        expect("userspace TCP", job.output, job)
    machines[0].carrier(2, up=False)
    expect_end(by_rdma[0], "port 1 of rxe0 is down")
    wait_for_frames(lab, by_tcp, 1)
    machines[0].carrier(2, up=True)
    lab.say("and the other a rank")
    machines[1].run("pkill -KILL -u job -x ztcp_perf")
    expect_end(by_tcp[0], "is gone: it was killed, its machine failed")
    lab.say("undo")
    undo(machines)
