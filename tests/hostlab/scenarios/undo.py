"""Set-up from a bare boot, --check, a job by an ordinary user, undo, set-up again."""
from guest import all_reduce, check, expect_same, set_up, state, undo


def run(lab):
    machines = lab.boot(2, nics=("virtio", "e1000e", "vmxnet3"), memory_mib=10240)
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
    set_up(machines)
    for machine, was in zip(machines, ready):
        expect_same(was, state(machine), f"{machine.name}: a second set-up")

    lab.say("undo")
    undo(machines)
    for machine, was in zip(machines, before):
        expect_same(was, state(machine), f"{machine.name}: undo")

    lab.say("set-up again")
    set_up(machines)
    all_reduce(machines)
