"""Not enough pages: set-up refuses more than the machine has, a job says how many are missing; 2 MiB pages."""
from guest import ZTCP_SETUP, check, expect, expect_refused, expect_same, set_up, state, undo
from machine import Failure


def run(lab):
    machine, = lab.boot(1, nics=["virtio"])
    before = state(machine)
    lab.say("set-up asks for more than the machine has")
    refused = machine.run("ztcp_setup --nics all --per-gpu 64G --spare 0 --user job", status=None)
    if refused.status == 0:
        raise Failure("64 GiB of pages were had on 6 GiB of memory")
    machine.run("ztcp_setup --undo", status=None)
    expect_same(before, state(machine), "the refused set-up")
    lab.say("the pages are gone when the job starts")
    set_up([machine])
    machine.run("echo 0 >/sys/kernel/mm/hugepages/hugepages-1048576kB/nr_hugepages")
    checked = machine.run(f"{ZTCP_SETUP} --check", user="job", status=2)
    expect("hugepages", checked.output, "--check")
    expect_refused(machine, "needs 1 x 1 GiB hugepages")
    lab.say("set-up with pages of 2 MiB, undo")
    set_up([machine], "--spare 0 --pages 2M")
    expect("512", machine.read("/sys/kernel/mm/hugepages/hugepages-2048kB/nr_hugepages"), "2 MiB pages")
    check([machine])
    undo([machine])
    expect_same(before, state(machine), "undo")
