"""RDMA by soft RoCE (rxe): an ordinary user's job without any set-up, with loss, a killed rank, a broken queue pair and a link that is down."""
from guest import all_reduce, break_queue_pairs, expect, expect_end, install_break_qp, on_all, start_transfer
from machine import Failure


def run(lab):
    machines = lab.boot(2, nics=["virtio"])
    names = [machine.interface(1) for machine in machines]
    if names[0] != names[1]:
        raise Failure(f"rail 1 is {names[0]} on one machine and {names[1]} on the other")
    asked = f"env ZTCP_TRANSPORT=verbs NCCL_SOCKET_IFNAME=={names[0]}"

    lab.say("without a device")
    refused = machines[0].run(f"{asked} ztcp_perf --plugin /usr/lib/x86_64-linux-gnu/libnccl-net.so --ranks 2 --log info "
                              "--op ping --iters 1", "job", status=None)
    if refused.status == 0:
        raise Failure(f"{refused} ended well without a device")
    expect("this host has no RDMA device", refused.output, refused)

    on_all(machines, f"modprobe -a ib_uverbs rdma_rxe && rdma link add rxe0 type rxe netdev {names[0]} && "
           "udevadm settle && rdma link")
    lab.say("all-reduce")
    all_reduce(machines, size="--min 8 --max 64K --factor 8", pmd="RDMA verbs, rxe0 port 1, RoCE v2", prefix=asked)
    if lab.wire(1).forwarded < 100:
        raise Failure("the job's data did not go over its rail")

    lab.say("with 1 % of the frames lost")
    lab.wire(1).loss = 0.01
    all_reduce(machines, size="--min 16K --max 16K --factor 2", pmd="RDMA verbs", prefix=asked)
    lab.wire(1).loss = 0

    lab.say("a rank is killed")
    jobs = start_transfer(lab, machines, prefix=asked, iterations=100000)
    machines[1].run("pkill -KILL -u job -x ztcp_perf")
    expect_end(jobs[0], "is gone: it was killed, its machine failed")

    lab.say("queue pairs are broken")
    install_break_qp(lab, machines)
    jobs = start_transfer(lab, machines, prefix=asked, iterations=100000, port=29550)
    break_queue_pairs(lab, machines[0], "rxe0")
    expect_end(jobs[0], "rxe0")
    expect_end(jobs[1], "rxe0")
    all_reduce(machines, size="--min 64K --max 64K --factor 2", pmd="RDMA verbs", prefix=asked, port=29560)

    lab.say("the link goes down")
    jobs = start_transfer(lab, machines, prefix=asked, iterations=100000, port=29600)
    machines[0].carrier(1, up=False)
    expect_end(jobs[0], "port 1 of rxe0 is down")
    machines[1].run("pkill -KILL -u job -x ztcp_perf", status=None)
    machines[0].carrier(1, up=True)
    machines[0].run("for i in $(seq 60); do rdma link show rxe0/1 | grep -q 'state ACTIVE' && exit 0; sleep 1; done; exit 1")

    lab.say("and up again")
    all_reduce(machines, size="--min 64K --max 64K --factor 2", pmd="RDMA verbs", prefix=asked, port=29700)
