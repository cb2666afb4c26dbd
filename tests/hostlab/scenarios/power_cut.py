"""Power is cut during set-up or undo: after the boot, undo or a second set-up repairs the state."""
from guest import SET_UP, check, expect_same, set_up, state, undo

LIMIT_S = 5400
# The step at which power is cut: both commands print it before they begin it.
UNDO_MENDS = "the boot loader's menu", "unlimited locked memory", "hugetlbfs", "the config"
AT_NIC = "(ztcp0) ..."


def cut(lab, machine, command, moment):
    lab.say(f"power is cut at {moment!r} of {command}")
    machine.start(command).wait_for(moment)
    machine.power_cut()
    machine.power_on()
    machine.wait_until_ready()


def undo_and_compare(machine, before, what):
    undo([machine])
    expect_same(before, state(machine), what)


def run(lab):
    machine, = lab.boot(1, nics=["virtio"], memory_mib=10240)
    before = state(machine)
    command = f"{SET_UP} --spare 0"
    for moment in UNDO_MENDS:
        cut(lab, machine, command, moment)
        undo_and_compare(machine, before, f"set-up cut off at {moment!r}, then undo,")
    cut(lab, machine, command, AT_NIC)
    set_up([machine])
    check([machine])
    undo_and_compare(machine, before, f"set-up cut off at {AT_NIC!r}, set-up, undo,")
    set_up([machine])
    cut(lab, machine, "ztcp_setup --undo", AT_NIC)
    undo_and_compare(machine, before, f"undo cut off at {AT_NIC!r}, then undo,")
