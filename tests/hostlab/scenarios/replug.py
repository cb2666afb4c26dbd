"""A taken NIC is plugged out and in: it is taken again automatically, and other NICs are not."""
from guest import all_reduce, check, expect, set_up
from machine import Failure

STRANGER = "52:54:00:77:01:ee"


def unit(machine, rail):
    """The unit that udev's rule starts."""
    return f"ztcp-setup-nic@{machine.pci(rail)}.service"


def said(machine, rail):
    return machine.run(f"journalctl -q -o cat -u {unit(machine, rail)}").output


def plug(machine, rail, mac=None):
    """Plugs the NIC and waits for one more end of the unit, with any result; returns all its
    output."""
    ends = f"journalctl -q -o cat -u {unit(machine, rail)} | grep -cE '^(Finished|Failed to start) '"
    before = int(machine.run(ends, status=None).output)
    machine.plug(rail, "virtio", mac)
    machine.run(f"until [ $({ends}) -gt {before} ]; do sleep 0.5; done")
    return said(machine, rail)


def expect_driver(machine, rail, driver):
    now = machine.run(f"basename $(readlink /sys/bus/pci/devices/{machine.pci(rail)}/driver)").output
    if now.strip() != driver:
        raise Failure(f"{machine.name}: {machine.pci(rail)} has {now.strip()}, not {driver}:\n"
                      f"{said(machine, rail)}")


def take_out(machine, rail):
    machine.unplug(rail)
    machine.wait_until_unplugged(rail)


def run(lab):
    machines = host, _ = lab.boot(2, nics=["virtio"], spare_ports=1)
    set_up(machines)
    lab.say("plug out and in on both")
    for machine in machines:
        take_out(machine, 1)
        plug(machine, 1)
        expect_driver(machine, 1, "vfio-pci")
    check(machines, user="root")
    check(machines)
    lab.say("all-reduce")
    all_reduce(machines)

    lab.say("a NIC that set-up never saw")
    plug(host, 2)
    host.run(f"until ip -4 address | grep -q {host.address(2)}/; do sleep 0.5; done")
    expect_driver(host, 2, "virtio-pci")

    lab.say("another NIC in the place of the taken one")
    take_out(host, 1)
    expect(f"{STRANGER}) than set-up took over", plug(host, 1, STRANGER), unit(host, 1))
    expect_driver(host, 1, "virtio-pci")

    lab.say("the taken one comes back")
    take_out(host, 1)
    plug(host, 1)
    expect_driver(host, 1, "vfio-pci")
    check([host])
    all_reduce(machines)
