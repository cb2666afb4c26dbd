"""A NIC is plugged in while the machine runs: --add takes it, and the members of a group use it in turn."""
from guest import TAKE_ALL, all_reduce, answer, check, on_all, set_up
from machine import Failure

MEMBERS = "job", "mate"  # Neither of the two owns a thing that both need.


def found_group(machine):
    machine.run("groupadd train && useradd -m -s /bin/bash mate && cp -a ~job/.ssh ~mate/ && "
                "chown -R mate: ~mate/.ssh && "
                + " && ".join(f"usermod -aG train {user}" for user in MEMBERS))


def run(lab):
    machines = lab.boot(2, nics=["virtio"], memory_mib=10240, spare_ports=1)
    for machine in machines:
        found_group(machine)
    set_up(machines, command=f"{TAKE_ALL} --group train")
    for machine in machines:
        machine.plug(2, "virtio")
    lab.say("plugged; wait for addresses")
    for machine in machines:
        machine.run(f"until ip -4 address | grep -q {machine.address(2)}; do sleep 0.5; done")
    lab.say("ztcp_setup --add")
    for machine, job in zip(machines, on_all(machines, "ztcp_setup --add --json")):
        taken = [step["what"] for step in answer(job, "add")["steps"] if step["result"] == "changed"]
        if f"{machine.pci(2)} (ztcp1)" not in taken or f"{machine.pci(1)} (ztcp0)" in taken:
            raise Failure(f"{job} did not take {machine.pci(2)} alone: {taken}")
    for user in MEMBERS:
        check(machines, user)
        lab.say(f"all-reduce over the new NIC by {user}")
        all_reduce(machines, nic=1, user=user)
    lab.say("all-reduce over the old NIC")
    all_reduce(machines)
