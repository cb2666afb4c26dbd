"""RDMA over two NICs as one (soft RoCE): a job goes on while one link is down, on either machine, or one NIC's queue pairs break, and uses the NIC again."""
from guest import SAID_WITHIN_S, all_reduce, break_queue_pairs, expect_verified, install_break_qp, on_all, pull_and_put_back, start_transfer
from machine import Failure

CONFIG = "/etc/ztcp-rails.conf"
SILENCE_S = 12  # user_timeout_ms is 8000.


def write_config(machine):
    # With two addresses, the failure of a rail is reported over the other rail's address.
    nics = "".join(f'\n[[nic]]\nname = "ztcp{i}"\ndriver = "verbs"\ndevice = "rxe{i}"\naddress = "{machine.address(i + 1)}/24"\nmerge = "both"\n'
                   for i in range(2))
    machine.write(CONFIG, f'schema = 1\nname = "rails"\n{nics}')


def run(lab):
    machines = lab.boot(2, nics=["virtio", "virtio"])
    for machine in machines:
        names = [machine.interface(rail) for rail in (1, 2)]
        machine.run("modprobe -a ib_uverbs rdma_rxe && " + " && ".join(
            f"rdma link add rxe{i} type rxe netdev {name}" for i, name in enumerate(names)) + " && udevadm settle && rdma link")
        write_config(machine)
    on_all(machines, "for i in $(seq 60); do [ $(rdma link | grep -c 'state ACTIVE') = 2 ] && exit 0; sleep 1; done; exit 1")
    asked = f"env ZTCP_CONFIG={CONFIG}"

    lab.say("all-reduce over both")
    all_reduce(machines, size="--min 8 --max 256K --factor 32", pmd=f"RDMA verbs over 2 rails that {CONFIG} merges: rxe0 port 1", prefix=asked)
    for rail in (1, 2):
        if lab.wire(rail).forwarded < 100:
            raise Failure(f"the job's data did not go over rail {rail}")

    for number, rail in ((0, 2), (1, 1)):
        jobs = start_transfer(lab, machines, prefix=asked, iterations=1500 * (3 - rail), port=29600 + 10 * rail)
        # The queue pairs were negotiated over the first rail: that connection does not survive it.
        pull_and_put_back(lab, machines, jobs, number, rail, f"rxe{rail - 1} port 1", other=3 - rail, for_s=0 if rail == 2 else SILENCE_S)
        expect_verified(jobs)

    install_break_qp(lab, machines)
    jobs = start_transfer(lab, machines, prefix=asked, iterations=1500, port=29700)
    break_queue_pairs(lab, machines[0], "rxe1")
    jobs[0].wait_for("the rail over rxe1 port 1 has failed", SAID_WITHIN_S)
    jobs[0].wait_for("is back", SAID_WITHIN_S)
    expect_verified(jobs)
