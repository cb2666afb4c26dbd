"""A rank is killed while its forked child lives on: within 5 s its NIC is free, and the next job runs."""
import os
import re
import subprocess

from guest import all_reduce, set_up, start_transfer
from machine import Failure

FREE_LIMIT_S = 5  # By the clock of the machine, whose CPU is emulated.

# The group is busy while the rank lives, and while any process has a descriptor of it or of the
# device. The next job shows by itself that its lock and its pages are free, too.
KILL = r"""
rank=$(pgrep -o ztcp_perf)
group=/dev/vfio/$(basename $(readlink /sys/bus/pci/devices/{pci}/iommu_group))
can_open() {{ (: <>$group) 2>/dev/null; }}
can_open && {{ echo "$group was free already"; exit 1; }}
kill -9 $rank
killed=$(date +%s%N)
until can_open; do sleep 0.02; done
echo free after $((($(date +%s%N) - killed) / 1000000)) ms
"""


def preload(lab, machines):
    """Installs the library that makes a rank fork in every machine."""
    folder = lab.path("orphan")
    os.mkdir(folder)
    source = os.path.join(os.path.dirname(os.path.dirname(__file__)), "orphan.c")
    subprocess.run(["cc", "-shared", "-fPIC", "-O1", "-Wall", "-Werror", "-o",
                    os.path.join(folder, "orphan.so"), source], check=True)
    for machine in machines:
        machine.copy_tree(folder, to="/usr/local/lib")


def run(lab):
    machines = lab.boot(2, nics=["virtio"])
    preload(lab, machines)
    set_up(machines)  # Without pages to spare.
    jobs = start_transfer(lab, machines, iterations=100000, prefix="LD_PRELOAD=/usr/local/lib/orphan.so")
    lab.say("both ranks fork")
    children = []
    for machine, job in zip(machines, jobs):
        machine.run("kill -USR1 $(pgrep ztcp_perf)")
        children.append(re.search(r"child (\d+)", job.wait_for("child ").output).group(1))
    lab.say("the first is killed; the other ends when it is notified")
    output = machines[0].run(KILL.format(pci=machines[0].pci(1))).output
    lab.say(f"its NIC is {output.strip()}")
    if int(re.search(r"free after (\d+) ms", output).group(1)) > FREE_LIMIT_S * 1000:
        raise Failure(output)
    jobs[1].wait()
    lab.say("all-reduce")
    all_reduce(machines)
    for machine, child in zip(machines, children):
        machine.run(f"kill -0 {child}")  # It is still alive.
