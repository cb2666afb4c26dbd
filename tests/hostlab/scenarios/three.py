"""Three machines on one rail: an all-reduce of three ranks."""
from guest import all_reduce, check, set_up


def run(lab):
    machines = lab.boot(3, nics=["virtio"])
    lab.say("set-up")
    set_up(machines)
    check(machines)
    lab.say("all-reduce")
    all_reduce(machines)
