"""NICs with IPv6 alone, one static and one from a router: set-up, --check, jobs over both, undo."""
from guest import CONFIG, all_reduce, check, expect, expect_same, set_up, state, undo
from wire import RouterOnTheWire

STATIC, ADVERTISED = 1, 2  # Rails.
PREFIX = "fd77:2::"
FOREVER_S = 0xffffffff  # Routes with a lifetime would make no two states equal.

NETWORK = """[Match]
MACAddress={mac}
[Network]
{settings}
"""


def static_address(machine):
    return f"fd77:1::{10 + machine.number}/64"


def advertised_address(machine):
    """The prefix and the identifier that RFC 4862 makes of the MAC address."""
    mac = [int(part, 16) for part in machine.mac(ADVERTISED).split(":")]
    return (f"{PREFIX}{(mac[0] ^ 2) << 8 | mac[1]:x}:{mac[2] << 8 | 0xff:x}:"
            f"{0xfe00 | mac[3]:x}:{mac[4] << 8 | mac[5]:x}/64")


def wait_for_addresses(machine):
    for address in static_address(machine), advertised_address(machine):
        machine.run(f"until ip -6 address show -tentative | grep -q 'inet6 {address} '; do sleep 0.5; done")


def run(lab):
    machines = lab.boot(2, nics=["virtio", "virtio"], memory_mib=10240)
    # Its service as a default router would make set-up spare the NIC.
    router = RouterOnTheWire(lab.wire(ADVERTISED), PREFIX, lifetime_s=0, valid_s=FOREVER_S)
    router.start()
    for machine in machines:
        machine.write("/etc/systemd/network/20-rail1.network", NETWORK.format(
            mac=machine.mac(STATIC), settings=f"Address={static_address(machine)}\nIPv6AcceptRA=no"))
        machine.write("/etc/systemd/network/20-rail2.network", NETWORK.format(
            mac=machine.mac(ADVERTISED), settings="IPv6AcceptRA=yes"))
        machine.run("systemctl restart systemd-networkd && sync")
    lab.say("wait for the addresses")
    for machine in machines:
        wait_for_addresses(machine)
    before = [state(machine) for machine in machines]

    lab.say("set-up")
    set_up(machines)
    for machine in machines:
        config = machine.read(CONFIG)
        for line in f'address = "{static_address(machine)}"', 'address = "auto"':
            expect(line, config, f"{machine.name}: {CONFIG}")
    check(machines)
    lab.say("all-reduce over the static addresses")
    all_reduce(machines, nic=0)
    lab.say("all-reduce over the advertised ones")
    jobs = all_reduce(machines, nic=1)
    for machine, job in zip(machines, jobs):
        expect(f"{advertised_address(machine)} (advertised by the router {router.address})", job.output, job)

    lab.say("undo")
    undo(machines)
    for machine, was in zip(machines, before):
        wait_for_addresses(machine)
        expect_same(was, state(machine), f"{machine.name}: undo")
