"""Set-up from a bare boot, --check, a job by an ordinary user, undo, set-up again."""
from guest import all_reduce, answer, check, expect_same, on_all, set_up, state
from machine import Failure

BY_HAND = 3  # The rail with a NIC that no network manager knows: only undo restores its settings.

# Addresses, routes and rules on one NIC; smaller rings and no segmentation offload on another.
LIVED_IN = r"""
set -e
rm /etc/systemd/network/20-rail{rail}.network
# By default networkd removes the rules when it next sees a new NIC.
mkdir -p /etc/systemd/networkd.conf.d
printf '[Network]\nManageForeignRoutingPolicyRules=no\n' >/etc/systemd/networkd.conf.d/foreign.conf
systemctl restart systemd-networkd
nic=$(ls /sys/bus/pci/devices/{pci}/net)
ip address flush dev $nic
ip link set $nic mtu 1400 up
ip address add {address}/24 dev $nic
ip address add 10.78.0.{host}/16 dev $nic
ip -6 address add fd77:{rail}::{host}/64 dev $nic
ip route add 10.88.0.0/16 via 10.77.{rail}.1 dev $nic table 77
ip -6 route add fd88::/16 via fd77:{rail}::ff dev $nic
ip rule add from 10.77.{rail}.0/24 table 77 priority 7700
ip -6 rule add from fd77:{rail}::/64 table 77 priority 7700
perl -e '
  socket(my $socket, 2, 2, 0) or die;
  sub ethtool {{ ioctl($socket, 0x8946, my $request = pack "a16 P", $ARGV[0], $_[0]) or die "ethtool: $!" }}
  ethtool(my $rings = pack "L9", 0x10);
  my @values = unpack "L9", $rings;
  @values[0, 5, 8] = (0x11, 512, 512);
  ethtool($rings = pack "L9", @values);
  ethtool(my $segmentation = pack "L2", 0x1f, 0);
' $(ls /sys/bus/pci/devices/{other_pci}/net)
sync
"""


def run(lab):
    machines = lab.boot(2, nics=("virtio", "e1000e", "vmxnet3"), memory_mib=10240)
    for machine in machines:
        machine.run(LIVED_IN.format(rail=BY_HAND, pci=machine.pci(BY_HAND), other_pci=machine.pci(2),
                                    address=machine.address(BY_HAND), host=10 + machine.number))
    before = [state(machine) for machine in machines]
    lab.say("set-up")
    set_up(machines)
    lab.say("check")
    check(machines, user="root")
    check(machines)
    for nic, pmd in enumerate(("net_virtio", "net_e1000_em", "net_vmxnet3")):
        lab.say(f"all-reduce over {pmd}")
        all_reduce(machines, size="--min 8 --max 64K --factor 8", nic=nic, pmd=pmd)

    lab.say("set-up a second time changes nothing")
    ready = [state(machine) for machine in machines]
    for job in set_up(machines, "--spare 0 --json"):
        steps = answer(job, "set-up")["steps"]
        if any(step["result"] != "unchanged" for step in steps):
            raise Failure(f"{job} took steps:\n{job.output}")
    for machine, was in zip(machines, ready):
        expect_same(was, state(machine), f"{machine.name}: a second set-up")

    lab.say("undo")
    for machine, job in zip(machines, on_all(machines, "ztcp_setup --undo --json")):
        steps = answer(job, "undo", "undo successfully")["steps"]
        for rail in 1, 2, BY_HAND:
            if not any(machine.pci(rail) in step["what"] and step["result"] == "reverted" for step in steps):
                raise Failure(f"{job} does not say that it reverted {machine.pci(rail)}:\n{job.output}")
    for machine, was in zip(machines, before):
        expect_same(was, state(machine), f"{machine.name}: undo")

    lab.say("set-up again")
    for job in set_up(machines, "--spare 0 --json"):
        answer(job, "set-up")
    all_reduce(machines)
