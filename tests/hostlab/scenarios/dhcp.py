"""A VLAN with a DHCP lease: set-up takes address, gateway and MTU from it, undo gives it back."""
from guest import CONFIG, all_reduce, check, expect, expect_same, set_up, state, undo

GATEWAY = "10.77.1.1"
LEASED_MTU = 1400

NIC = """[Match]
MACAddress={mac}
Type=ether
[Network]
VLAN=data
LinkLocalAddressing=no
"""
VLAN = """[NetDev]
Name=data
Kind=vlan
[VLAN]
Id=7
"""
VLAN_NETWORK = """[Match]
Name=data
[Network]
LinkLocalAddressing=no
"""
SERVER = VLAN_NETWORK + """Address={own}/24
DHCPServer=yes
[DHCPServer]
Router={gateway}
EmitDNS=no
SendOption=26:uint16:{mtu}
[DHCPServerStaticLease]
MACAddress={mac}
Address={leased}
"""
CLIENT = VLAN_NETWORK + """DHCP=ipv4
[DHCPv4]
ClientIdentifier=mac
UseMTU=yes
"""


def configure(machine, network):
    machine.write("/etc/systemd/network/20-rail1.network", NIC.format(mac=machine.mac(1)))
    machine.write("/etc/systemd/network/30-data.netdev", VLAN)
    machine.write("/etc/systemd/network/30-data.network", network)
    machine.run("systemctl restart systemd-networkd && sync")


def wait_for_lease(machine):
    """Waits until networkd has the lease, which takes longer than the address."""
    machine.run(f"until ip -4 address show data | grep -q {machine.address(1)}/24 && "
                "index=$(cat /sys/class/net/data/ifindex) && cd /run/systemd/netif && "
                f"grep -qx ADDRESS={machine.address(1)} leases/$index && "
                "grep -qx ADMIN_STATE=configured links/$index; do sleep 1; done")


def run(lab):
    machines = server, client = lab.boot(2, nics=["virtio"])
    configure(server, SERVER.format(own=server.address(1), mac=client.mac(1), gateway=GATEWAY,
                                    leased=client.address(1), mtu=LEASED_MTU))
    configure(client, CLIENT)
    lab.say("wait for the lease")
    wait_for_lease(client)
    before = [state(machine) for machine in machines]

    lab.say("set-up")
    # The lease brought a default route: set-up takes such a NIC only when it is named.
    set_up_client, = set_up([client], f"--spare 0 --take {client.pci(1)}")
    expect(f"{client.address(1)}/24 is leased by DHCP (systemd-networkd", set_up_client.output,
           set_up_client)
    set_up([server])
    config = client.read(CONFIG)
    for line in (f'address = "{client.address(1)}/24"', f'gateway = "{GATEWAY}"', "vlan_id = 7",
                 f"mtu_bytes = {LEASED_MTU}"):
        expect(line, config, f"{client.name}: {CONFIG}")
    check(machines)
    lab.say("all-reduce")
    all_reduce(machines)

    lab.say("undo")
    undo([server])
    undo([client])
    wait_for_lease(client)
    for machine, was in zip(machines, before):
        expect_same(was, state(machine), f"{machine.name}: undo")
