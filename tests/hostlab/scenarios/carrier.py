"""A link is down for 3 s in the middle of a transfer: the job goes on, every byte right."""
import time

from guest import expect_verified, set_up, start_transfer
from machine import Failure


def run(lab):
    machines = lab.boot(2, nics=["virtio"])
    set_up(machines)
    jobs = start_transfer(lab, machines)
    lab.say("link down")
    machines[0].carrier(1, up=False)
    time.sleep(1)
    before = lab.wire(1).counters()
    time.sleep(2)
    lab.say(f"link up; before: {before}")
    if any(job.status is not None for job in jobs):
        raise Failure("a rank ended while the link was down")
    machines[0].carrier(1, up=True)
    expect_verified(jobs)
