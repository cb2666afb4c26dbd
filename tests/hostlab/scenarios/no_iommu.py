"""A machine without an IOMMU: no-IOMMU mode when asked for by name, jobs with two capabilities and with neither alone."""
from guest import SET_UP, all_reduce, expect, install_module, kernel_module, set_up, start_ranks, undo
from machine import Failure

LIMIT_S = 2400  # The module is built from 130 MB of Debian's kernel source.
AS_JOB = ("ulimit -l unlimited; setpriv --reuid job --regid job --init-groups "
          "--bounding-set -all,{0} --inh-caps -all,{0} --ambient-caps -all,{0}")
# The kernel's own answers: whether the page map shows the address of a page of the caller's, and
# whether the NIC's node can be opened.
ASK_KERNEL = r"""bash -c '
exec 3</proc/self/pagemap
page=$((16#$(sed -n "s/-.*\[heap\]//p" /proc/$$/maps) / 4096))
entry=$(dd bs=8 count=1 skip=$page <&3 2>/dev/null | od -An -tx8)
(( 16#${entry// } & 0x7fffffffffffff )) && echo addresses told || echo addresses hidden
(: <>$(echo /dev/vfio/noiommu-*)) 2>/dev/null && echo node opened || echo node refused'"""
# Capabilities of a job, the kernel's answers, and the capabilities that ztcp finds missing.
ATTEMPTS = [("-all", "addresses hidden\nnode refused", "missing: CAP_SYS_RAWIO, CAP_SYS_ADMIN"),
            ("+sys_rawio", "addresses hidden\nnode opened", "missing: CAP_SYS_ADMIN"),
            ("+sys_admin", "addresses told\nnode refused", "missing: CAP_SYS_RAWIO")]
ENOUGH = "+sys_rawio,+sys_admin"


def run(lab):
    machines = lab.boot(2, nics=["virtio"], iommu=False)
    folder = kernel_module(lab, machines[0], "vfio")
    for machine in machines:
        refused = machine.run(SET_UP + " --spare 0", status=None)
        if refused.status == 0:
            raise Failure("set-up without an IOMMU succeeded without --no-iommu")
        expect("--no-iommu", refused.output, refused)
        install_module(machine, folder, "vfio")
    lab.say("set-up --no-iommu")
    set_up(machines, "--spare 0 --no-iommu")
    lab.say("jobs: no capability, each alone, both")
    for too_few, answer, missing in ATTEMPTS:
        asked = machines[0].run(f"{AS_JOB.format(too_few)} {ASK_KERNEL}")
        expect(answer, asked.output, asked)
        for job in start_ranks(machines, "--op ping --iters 1", user="root", prefix=AS_JOB.format(too_few)):
            if job.wait().status == 0:
                raise Failure(f"capabilities {too_few} were enough, so the set shown here is too large")
            expect(missing, job.output, job)
    asked = machines[0].run(f"{AS_JOB.format(ENOUGH)} {ASK_KERNEL}")
    expect("addresses told\nnode opened", asked.output, asked)
    all_reduce(machines, user="root", prefix=AS_JOB.format(ENOUGH))
    undo(machines)
