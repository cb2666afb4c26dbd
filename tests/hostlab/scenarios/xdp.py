"""AF_XDP on virtio, native mode: jobs with CAP_NET_RAW beside the kernel's traffic, faults, shared queues, undo."""
import re
import time

from guest import (CONFIG, all_reduce, expect, expect_end, expect_same, expect_verified, finish, on_all, set_up, start_ranks,
                   start_transfer, state, undo, wait_for_frames)
from machine import Failure

LIMIT_S = 3600
XDP = "ztcp_setup --transport xdp --user job"
# As a container with --cap-add NET_RAW and --ulimit memlock=-1.
JOB = ("ulimit -l unlimited; exec setpriv --reuid=job --regid=job --init-groups --inh-caps=-all,+net_raw "
       "--ambient-caps=-all,+net_raw")
AS_JOB = {"user": "root", "prefix": JOB}
RESERVED_PORTS = "/proc/sys/net/ipv4/ip_local_reserved_ports"
RAIL, RAIL_OF_QUEUES = 1, 2  # The second has several queues, and no wire.
QUEUES_AT_REST = 2  # One for each CPU. The driver adds one for each CPU while a program is there.
QUEUES = 4

SERVE = """perl -MIO::Socket::INET -e '
  $SIG{PIPE} = "IGNORE";
  my $server = IO::Socket::INET->new(LocalAddr => "0.0.0.0", LocalPort => 2222, Listen => 9, ReuseAddr => 1) or die $!;
  open my $file, "<", "/usr/bin/perl" or die $!;
  local $/; my $text = <$file>;
  while (my $client = $server->accept) { print $client $text; close $client }'"""


class KernelTraffic:
    """Each machine fetches a file from the other, again and again, through the kernel's TCP over
    the interface of AF_XDP."""

    def __init__(self, machines):
        self._machines = machines
        for machine in machines:
            machine.start(SERVE)

    def start(self, rail):
        on_all(self._machines, "rm -f /run/fetched")
        return [machine.start(f"while [ ! -e /run/fetched ]; do cmp - /usr/bin/perl </dev/tcp/{other.address(rail)}/2222 || "
                              "exit 1; count=$((count + 1)); done; echo $count fetched")
                for machine, other in zip(self._machines, reversed(self._machines))]

    def end(self, fetches):
        on_all(self._machines, "touch /run/fetched")
        for fetch in finish(fetches, limit_s=120):
            if int(fetch.output.split()[0]) < 1:
                raise Failure(f"{fetch} did not end once:\n{fetch.output}")


def interfaces(machine):
    return [machine.interface(rail) for rail in (RAIL, RAIL_OF_QUEUES)]


def has_program(machine, interface):
    return "prog/xdp" in machine.run(f"ip -d link show {interface}").output


def expect_queues(jobs, queues):
    for job in jobs:
        expect(f"{queues} queue{'s' if queues > 1 else ''}, native mode", job.output, job)


def expect_set_up(machines):
    for machine in machines:
        expect('driver = "xdp"', machine.read(CONFIG), f"{machine.name}: {CONFIG}")
        for interface in interfaces(machine):
            if not has_program(machine, interface):
                raise Failure(f"{machine.name}: {interface} has no XDP program")
        job = machine.run(f"{JOB} /usr/sbin/ztcp_setup --check", status=None)
        if job.status not in (0, 1):
            raise Failure(f"{job} found faults:\n{job.output}")
        for queues in (1, QUEUES):
            expect_queues([job], queues)


def change_nothing(lab, machines, traffic):
    """Loss, a link that is down for some seconds, and the kernel's traffic meanwhile."""
    lab.say("1 % of the frames lost")
    lab.wire(RAIL).loss = 0.01
    all_reduce(machines, size="--min 64K --max 256K --factor 4", pmd="native mode", **AS_JOB)
    lab.wire(RAIL).loss = 0
    lab.say("link down for 3 s under load")
    jobs = start_transfer(lab, machines, iterations=60, **AS_JOB)
    machines[0].carrier(RAIL, up=False)  # systemd-networkd takes the address off meanwhile.
    time.sleep(3)
    if any(job.status is not None for job in jobs):
        raise Failure("a rank ended while the link was down")
    machines[0].carrier(RAIL, up=True)
    machines[0].run(f"until ip address show {machines[0].interface(RAIL)} | grep -q {machines[0].address(RAIL)}; do sleep 0.2; done")
    fetches = traffic.start(RAIL)
    expect_verified(jobs)
    traffic.end(fetches)


def take_program_off(lab, machines, options):
    lab.say("ip link set xdp off under load: the kernel refuses")
    jobs = start_transfer(lab, machines, iterations=1000000, **AS_JOB)
    interface = machines[0].interface(RAIL)
    refused = machines[0].run(f"ip link set dev {interface} xdp off", status=2)
    expect("BPF XDP link", refused.output, refused)
    wait_for_frames(lab, jobs, RAIL)
    lab.say("its pinned link removed under load: the job ends")
    machines[0].run(f"rm /run/ztcp-bpf/{interface}/link")
    expect_end(jobs[0], "has lost its XDP program")
    expect_end(jobs[1], "")
    set_up(machines[:1], options, command=XDP)


def share(lab, machines, options):
    """Two processes of each machine on the interface with several queues; each rank of the ring
    connects to ranks of the other machine."""
    lab.say("2 processes on an interface")
    for machine in machines:
        interface = machine.interface(RAIL_OF_QUEUES)
        machine.run(f"sed -i '/^interface *= *\"{interface}\"/a processes = 2' {CONFIG}")
    set_up(machines, options, command=XDP)
    jobs = start_ranks(machines * 2, "--op all_reduce --min 8 --max 256K --factor 8 --iters 2 --warmup 1 --check", nic=1,
                       **AS_JOB)
    expect_verified(jobs)
    for number, machine in enumerate(machines):
        said = "".join(job.output for job in jobs[number::2])
        slots = re.findall(r"slot (\d) of 0-1 \(queues ([\d, ]+)\), 2 queues, native mode", said)
        if sorted(slots) != [("0", "0, 2"), ("1", "1, 3")]:
            raise Failure(f"{machine.name}: slots {slots}:\n{said}")


def attach_by_process(lab, machines):
    """The driver raises its number of queues when the program comes."""
    lab.say("a program of the process's own")
    for machine in machines:
        interface = machine.interface(RAIL_OF_QUEUES)
        machine.run(f"rm -r /run/ztcp-bpf/{interface} && sed -i '/^processes = 2$/d' {CONFIG}")
        if has_program(machine, interface):
            raise Failure(f"{machine.name}: the program stayed without its files")
    for _ in range(4):
        jobs = all_reduce(machines, size="--min 8 --max 64K --factor 8", pmd="native mode", user="root", nic=1)
        expect_queues(jobs, QUEUES)
    for machine in machines:
        if has_program(machine, machine.interface(RAIL_OF_QUEUES)):
            raise Failure(f"{machine.name}: the program stayed on the interface")


def run(lab):
    machines = lab.boot(2, nics=["virtio", f"virtio*{QUEUES}"], cpus=QUEUES_AT_REST, iommu=False, memory_mib=2048)
    before = [state(machine) for machine in machines]
    reserved = [machine.read(RESERVED_PORTS) for machine in machines]
    traffic = KernelTraffic(machines)
    options = f"--keep {machines[0].pci(0)} --speed 10000"
    lab.say(f"set-up, Linux {machines[0].run('uname -r').output.strip()}")
    for job in set_up(machines, options, command=XDP):
        expect("setup successfully, over AF_XDP", job.output, job)
    for machine in machines:
        expect("7471,61000-65535", machine.read(RESERVED_PORTS), machine.name)
    expect_set_up(machines)

    for nic, rail, queues in ((0, RAIL, 1), (1, RAIL_OF_QUEUES, QUEUES)):
        lab.say(f"all-reduce over rail {rail}, and the kernel's traffic beside it")
        fetches = traffic.start(rail)
        expect_queues(all_reduce(machines, pmd="copy mode", nic=nic, **AS_JOB), queues)
        traffic.end(fetches)
    if lab.wire(RAIL).forwarded < 100:
        raise Failure("the job's data did not go over its rail")
    change_nothing(lab, machines, traffic)
    take_program_off(lab, machines, options)
    lab.say("through a reboot")
    machines[0].reboot()
    expect_set_up(machines)
    all_reduce(machines, size="--min 8 --max 64K --factor 8", pmd="native mode", **AS_JOB)
    share(lab, machines, options)
    attach_by_process(lab, machines)
    lab.say("undo")
    undo(machines)
    for machine, was, ports in zip(machines, before, reserved):
        expect_same(was, state(machine), f"{machine.name}: undo")
        for interface in interfaces(machine):
            if has_program(machine, interface):
                raise Failure(f"{machine.name}: undo left the program on {interface}")
        if machine.read(RESERVED_PORTS) != ports:
            raise Failure(f"{machine.name}: undo left ports reserved")
    on_all(machines, "test ! -e /run/ztcp-bpf")
