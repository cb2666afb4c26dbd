"""ztcp_perf beside ib_write_lat and ib_write_bw over soft RoCE, in turn: ratios without a limit, because emulated CPUs show no speed."""
from guest import PLUGIN, finish, on_all, start_ranks
from machine import Failure

ROUNDS = 3
LATENCY_BYTES = 8
SIZES = (4096, 65536, 262144)
GID_INDEX = 1  # The IPv4 address's, RoCE v2.


def row(output, size):
    """The words of the table line that begins with the size."""
    for line in output.splitlines():
        words = line.split()
        if words and words[0] == str(size) and len(words) >= 4:
            return words
    raise Failure(f"no line of {size} bytes:\n{output[-3000:]}")


def perftest(machines, program, size, iterations):
    command = f"{program} -F -d rxe0 -x {GID_INDEX} -s {size} -n {iterations}"
    server = machines[0].start(command, "job")
    # Until the server listens.
    client = machines[1].start(f"for i in $(seq 100); do {command} {machines[0].address(1)} && exit 0; sleep 0.2; done; exit 1", "job")
    return row(finish([server, client])[1].output, size)


def ztcp_perf(machines, asked, port, arguments, size):
    jobs = start_ranks(machines, f"{arguments} --min {size} --max {size}", prefix=asked, port=port)
    return row(finish(jobs)[0].output, size)


def run(lab):
    machines = lab.boot(2, nics=["virtio"])
    names = [machine.interface(1) for machine in machines]
    on_all(machines, f"modprobe -a ib_uverbs rdma_rxe && rdma link add rxe0 type rxe netdev {names[0]} && udevadm settle")
    asked = f"env ZTCP_TRANSPORT=verbs NCCL_SOCKET_IFNAME=={names[0]} NCCL_IB_GID_INDEX={GID_INDEX}"
    version = machines[0].run("dpkg-query -W -f '${Version}' perftest").output.strip()
    lab.say(f"{PLUGIN} beside perftest {version}")
    port = 29500
    for turn in range(ROUNDS):
        # Medians: ib_write_lat's t_typical, ztcp_perf's p50.
        theirs = float(perftest(machines, "ib_write_lat", LATENCY_BYTES, 500)[4])
        ours = float(ztcp_perf(machines, asked, port, "--op ping --iters 500", LATENCY_BYTES)[5])
        port += 10
        lab.say(f"round {turn}: half a round trip of {LATENCY_BYTES} B: {ours:.1f} us, ib_write_lat {theirs:.1f} us: {ours / theirs:.2f} times")
        for size in SIZES:
            # MB/s, both directions.
            theirs = float(perftest(machines, "ib_write_bw -b", size, 200)[3])
            time_us = float(ztcp_perf(machines, asked, port, "--op sendrecv --iters 100", size)[1])
            ours = 2 * size / time_us
            port += 10
            lab.say(f"round {turn}: {size} B both ways: {ours:.1f} MB/s, ib_write_bw {theirs:.1f} MB/s: {ours / theirs:.2f} times")
