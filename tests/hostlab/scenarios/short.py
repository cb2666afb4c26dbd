"""The shortest scenario: set-up, --check, a job between two machines, undo."""
from guest import all_reduce, check, expect_same, set_up, state, undo


def run(lab):
    machines = lab.boot(2, nics=["virtio"])
    before = [state(machine) for machine in machines]
    lab.say("set-up")
    set_up(machines)
    check(machines)
    lab.say("all-reduce")
    all_reduce(machines)
    lab.say("undo")
    undo(machines)
    for machine, was in zip(machines, before):
        expect_same(was, state(machine), f"{machine.name}: undo")
