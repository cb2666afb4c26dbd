"""Pages and NICs are restored at boot: the kernel command line by GRUB, bindings by the systemd unit."""
from guest import all_reduce, check, expect, expect_same, set_up, state, undo


UNIT = "/etc/systemd/system/ztcp-setup.service"  # Where set-up writes one if no package brought it.


def reboot(lab, machines):
    lab.say("reboot")
    for machine in machines:
        machine.shut_down("systemctl reboot")
    for machine in machines:
        machine.power_on()
    for machine in machines:
        machine.wait_until_ready()


def run(lab):
    machines = packaged, bare = lab.boot(2, nics=["virtio"])
    bare.run("rm -r /usr/lib/systemd/system/ztcp-* /usr/lib/udev/rules.d/*-ztcp.rules")
    before = [state(machine) for machine in machines]
    lab.say("set-up")
    set_up(machines)
    packaged.run(f"test ! -e {UNIT}")
    bare.run(f"test -e {UNIT}")
    reboot(lab, machines)
    for machine in machines:
        expect("hugepages=0:1", machine.read("/proc/cmdline"), f"{machine.name}: /proc/cmdline")
    lab.say("check and all-reduce, with nothing done since boot")
    check(machines)
    all_reduce(machines)
    lab.say("undo")
    undo(machines)
    reboot(lab, machines)
    for machine, was in zip(machines, before):
        expect_same(was, state(machine), f"{machine.name}: undo and reboot")
