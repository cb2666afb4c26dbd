"""A config written by a newer version: jobs and set-up refuse it and say so."""
from guest import CONFIG, SET_UP, expect, expect_refused, set_up
from machine import Failure


def run(lab):
    machine, = lab.boot(1, nics=["virtio"])
    set_up([machine])
    machine.run(f"sed -i 's/^schema *= *1$/schema = 99/' {CONFIG} && grep 'schema = 99' {CONFIG}")
    expect("99", machine.run("ztcp_setup --check", status=None).output, "--check")
    expect_refused(machine, "schema")
    again = machine.run(SET_UP + " --spare 0", status=None)
    if again.status == 0:
        raise Failure("set-up wrote over the config of a newer version")
    expect("schema = 99", machine.read(CONFIG), CONFIG)
