# SPDX-License-Identifier: Apache-2.0
# Copyright the ztcp authors
"""Functions for scenarios: a machine's state as text, set-up, and jobs of ranks over the plugin."""
import difflib
import json
import os
import subprocess
import time

from machine import Failure

PLUGIN = "/usr/lib/x86_64-linux-gnu/libnccl-net.so"
ZTCP_SETUP = "/usr/sbin/ztcp_setup"  # An ordinary user's PATH has no sbin.
CONFIG = "/usr/local/tfabric/tools/config/ztcp.conf"
TAKE_ALL = "ztcp_setup --nics all --per-gpu 1G"
SET_UP = TAKE_ALL + " --user job"
SETUP_LIMIT_S = 300
JOB_LIMIT_S = 400
ENDS_WITHIN_S = 120  # A CPU is emulated: the transports' own limits are 10 to 40 s.
SAID_WITHIN_S = 90

# All state that set-up may change and undo must restore. One item a line, so that two states
# compare. IPv6 must first finish its duplicate address detection.
_STATE = r"""
while ip -6 address show tentative | grep -q .; do sleep 0.2; done
for nic in /sys/bus/pci/devices/*; do
  case $(cat $nic/class) in 0x0200*) echo "driver ${nic##*/} $(basename "$(readlink $nic/driver)") \
    override $(cat $nic/driver_override)" ;; esac
done
ip -br link | awk '$1 != "lo" {print "link", $1, $2, $3}'
ip -br address | awk '{$2 = ""; print "address", $0}'
for family in -4 -6; do
  ip $family route show table all | sed "s/^/route $family /"
  ip $family rule | sed "s/^/rule $family /"
done
systemctl show -p LoadState -p UnitFileState -p NeedDaemonReload ztcp-setup.service | sed 's/^/unit /'
for link in /sys/class/net/*; do echo "mtu ${link##*/} $(cat $link/mtu)"; done
for pages in /sys/devices/system/node/node*/hugepages/*/nr_hugepages; do echo "pages $pages $(cat $pages)"; done
findmnt -rn -o TARGET,FSTYPE,OPTIONS -t hugetlbfs | sed 's/^/mount /'
cat /sys/module/vfio/parameters/enable_unsafe_noiommu_mode 2>/dev/null | sed 's/^/noiommu /'
keep='-path /var/lib/systemd -o -path /var/lib/dpkg'
find /etc /boot /usr/local /var/lib -xdev \( $keep \) -prune -o -printf 'entry %p %M %u:%g %l\n'
find /etc /boot /usr/local /var/lib -xdev \( $keep \) -prune -o -type f -print0 | xargs -0 md5sum |
  sed 's/^/content /'
"""
# The output of `ethtool -c -g -l -k`, which the machines lack: rings, for example, by ioctl number.
_STATE += r"""perl -e '
  socket(my $socket, 2, 2, 0) or die;
  for my $nic (grep { $_ ne "lo" } map { s|.*/||r } glob "/sys/class/net/*") {
    for my $get (0x0e, 0x10, 0x14, 0x16, 0x18, 0x1e, 0x23, 0x25, 0x2b, 0x3c) {
      my $values = pack "L x128", $get;
      my $request = pack "a16 P", $nic, $values;
      ioctl($socket, 0x8946, $request) or next;
      printf "ethtool %s 0x%02x: %s\n", $nic, $get, join " ", unpack "x4 L22", $values;
    }
  }'
"""


def kernel_module(lab, machine, name):
    """The folder of a module that Debian leaves out, for the base image's kernel; built once."""
    release = machine.run("uname -r").output.strip()
    version = machine.run(f"dpkg-query -W -f '${{Version}}' linux-image-{release}").output.strip()
    folder = os.path.join(lab.cache, f"{name}-{version}")
    if not os.path.exists(os.path.join(folder, f"{name}.ko")):
        lab.say(f"build {name}.ko {version}")
        os.makedirs(folder, exist_ok=True)
        builder = os.path.join(os.path.dirname(__file__), "build-module")
        with open(lab.path("build-module.out"), "wb") as output:
            subprocess.run([builder, folder, release, version, name], stdout=output, stderr=output,
                           stdin=subprocess.DEVNULL, check=True)
    return folder


def install_module(machine, folder, name):
    machine.copy_tree(folder, to="/usr/local/share")
    machine.run(f"install -D -t /lib/modules/$(uname -r)/updates /usr/local/share/{name}.ko && depmod")


def state(machine):
    lines = machine.run(_STATE).output.splitlines()
    return sorted(lines + ["memlock of job " + machine.run("ulimit -l", user="job").output.strip()])


def expect_same(before, after, what):
    changes = [line for line in difflib.unified_diff(before, after, lineterm="", n=0)
               if not line.startswith(("---", "+++", "@@"))]
    if changes:
        raise Failure(f"{what} left changes:\n" + "\n".join(changes))


def expect(text, output, where):
    if text not in output:
        raise Failure(f"{where} does not say {text!r}:\n{output[-6000:]}")


def on_all(machines, command, limit_s=SETUP_LIMIT_S, **options):
    """Runs the command on all machines at once; all must end with status 0."""
    return finish([machine.start(command, **options) for machine in machines], limit_s)


def finish(jobs, limit_s=JOB_LIMIT_S):
    return [job.wait(limit_s).expect(0) for job in jobs]


def set_up(machines, options="--spare 0", command=SET_UP):
    """Takes every data NIC, with 1 GiB of pages for each, for jobs of the ordinary user `job`."""
    # A 1 GiB page needs memory without unmovable data; caches need not stand in its way.
    on_all(machines, "sync; echo 3 > /proc/sys/vm/drop_caches")
    jobs = on_all(machines, f"{command} {options}")
    for job in jobs:
        expect("setup successfully", job.output, job)
    return jobs


def answer(job, mode, result="setup successfully"):
    """Parses the output of a command with --json, which must report success."""
    try:
        said = json.loads(job.output)
        good = (said["mode"] == mode and said["exit_code"] == 0 and said["stopped"] is False and
                said["result"].startswith(result) and said["steps"] and
                all(problem["severity"] == "warning" for problem in said["problems"]))
    except (ValueError, KeyError) as wrong:
        raise Failure(f"{job}: {wrong!r}:\n{job.output}") from None
    if not good:
        raise Failure(f"{job} does not say that {mode} went well:\n{job.output}")
    return said


def check(machines, user="job"):
    """--check must find no fault. (One emulated CPU is less than pollers want: a warning.)"""
    jobs = [machine.start(f"{ZTCP_SETUP} --check", user) for machine in machines]
    for job in jobs:
        if job.wait().status not in (0, 1):
            raise Failure(f"{job} found faults:\n{job.output}")


def undo(machines):
    return on_all(machines, "ztcp_setup --undo")


def start_ranks(machines, arguments, user="job", nic=0, prefix="", port=29500):
    """Starts a rank on each machine, over NIC `nic` of the config; they meet on the control rail.
    `prefix` may end with a program that runs the rank."""
    return [machine.start(f"ZTCP_LOCAL_RANK={nic}; export ZTCP_LOCAL_RANK; {prefix} ztcp_perf --plugin {PLUGIN} --ranks {len(machines)} --rank {rank} "
                          f"--rendezvous {machines[0].address(0)}:{port} --connect-timeout 200 "
                          f"--stall-timeout 200 --log info {arguments}", user)
            for rank, machine in enumerate(machines)]


def expect_refused(machine, reason):
    """A job of two ranks on one machine must fail with `reason`."""
    job = machine.run(f"ztcp_perf --plugin {PLUGIN} --ranks 2 --log info --op ping --iters 1", "job",
                      status=None)
    if job.status == 0:
        raise Failure(f"{job} ended well:\n{job.output}")
    expect(reason, job.output, job)


def expect_verified(jobs):
    """All ranks must succeed and report that they have verified every element."""
    finish(jobs)
    expect("Out of bounds values : 0 OK", jobs[0].output, jobs[0])


def all_reduce(machines, size="--min 8 --max 256K --factor 8", pmd="net_virtio", **options):
    """8 B to 256 KiB over a NIC with DPDK driver `pmd`; returns the ranks' jobs."""
    jobs = start_ranks(machines, f"--op all_reduce {size} --iters 2 --warmup 1 --check", **options)
    expect_verified(jobs)
    for job in jobs:
        expect(pmd, job.output, job)
    return jobs


def start_transfer(lab, machines, rail=1, iterations=200, **options):
    """Starts a long job; returns when its data is on the wire."""
    jobs = start_ranks(machines, "--op all_reduce --min 256K --max 256K --warmup 1 "
                       f"--iters {iterations} --check", **options)
    target = lab.wire(rail).forwarded + 1000
    end = time.monotonic() + JOB_LIMIT_S
    while lab.wire(rail).forwarded < target:
        if time.monotonic() > end or any(job.status is not None for job in jobs):
            raise Failure("no transfer began:\n" + "\n".join(job.output for job in jobs))
        time.sleep(0.1)
    return jobs


def install_break_qp(lab, machines):
    """Installs break_qp in every machine."""
    folder = lab.path("break_qp")
    os.mkdir(folder)
    source = os.path.join(os.path.dirname(__file__), "break_qp.c")
    subprocess.run(["cc", "-static", "-O1", "-Wall", "-Werror", "-o", os.path.join(folder, "break_qp"), source],
                   check=True)
    for machine in machines:
        machine.copy_tree(folder, to="/usr/local/lib")


def break_queue_pairs(lab, machine, device):
    """Breaks the queue pairs of this machine's rank on a device such as "rxe0"."""
    job = machine.run("for one in /sys/class/infiniband_verbs/uverbs*; do if [ $(cat $one/ibdev) = "
                      f"{device} ]; then /usr/local/lib/break_qp $(pgrep -o -x -u job ztcp_perf) ${{one##*/}}; fi; done")
    lab.say(f"{job.output.strip()} queue pairs of {device} are broken")


def expect_end(job, text):
    """The job must end by itself, with an error that contains `text`."""
    job.wait(ENDS_WITHIN_S)
    if job.status == 0:
        raise Failure(f"{job} ended well:\n{job.output}")
    expect(text, job.output, job)


def wait_for_frames(lab, jobs, rail, count=100):
    """Waits until the job's frames go over that rail."""
    wire = lab.wire(rail)
    target = wire.forwarded + count
    end = time.monotonic() + SAID_WITHIN_S
    while wire.forwarded < target:
        if time.monotonic() > end or any(job.status is not None for job in jobs):
            raise Failure(f"rail {rail} does not carry the job:\n" + "\n".join(job.output for job in jobs))
        time.sleep(0.1)


def pull_and_put_back(lab, machines, jobs, number, rail, device, other, for_s=0):
    """Takes a rail of a merged device down for at least `for_s` seconds and up again; the other
    carries the job meanwhile."""
    lab.say(f"machine {number} loses rail {rail}")
    machines[number].carrier(rail, up=False)
    jobs[number].wait_for(f"the rail over {device} has failed", SAID_WITHIN_S)
    time.sleep(for_s)
    wait_for_frames(lab, jobs, other)
    lab.say("and has it back")
    machines[number].carrier(rail, up=True)
    jobs[number].wait_for("is back", SAID_WITHIN_S)
    if any(job.status is not None for job in jobs):
        raise Failure("the job ended:\n" + "\n".join(job.output for job in jobs))
