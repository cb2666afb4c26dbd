"""Pages and NICs come back at boot: the kernel command line by GRUB, bindings by the systemd unit."""
from guest import all_reduce, check, expect, expect_same, set_up, state, undo


def reboot(lab, machines):
    lab.say("reboot")
    for machine in machines:
        machine.shut_down("systemctl reboot")
    for machine in machines:
        machine.power_on()
    for machine in machines:
        machine.wait_until_ready()


def run(lab):
    machines = lab.boot(2, nics=["virtio"])
    before = [state(machine) for machine in machines]
    lab.say("set-up")
    set_up(machines)
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
