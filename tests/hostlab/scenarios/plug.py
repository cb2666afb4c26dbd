"""A NIC arrives while the machine runs: ztcp_setup --add takes it, and jobs use it."""
from guest import all_reduce, check, on_all, set_up


def run(lab):
    machines = lab.boot(2, nics=["virtio"], spare_ports=1)
    set_up(machines)
    for machine in machines:
        machine.plug(2, "virtio")
    lab.say("plugged; wait for addresses")
    for machine in machines:
        machine.run(f"until ip -4 address | grep -q {machine.address(2)}; do sleep 0.5; done")
    lab.say("ztcp_setup --add")
    on_all(machines, "ztcp_setup --add")
    check(machines)
    lab.say("all-reduce over the new NIC, then over the old one")
    all_reduce(machines, nic=1)
    all_reduce(machines)
