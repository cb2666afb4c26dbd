"""A machine without an IOMMU: no-IOMMU mode by name, jobs with two capabilities and with neither alone."""
import os
import subprocess

from guest import SET_UP, all_reduce, expect, set_up, start_ranks, undo
from machine import Failure

LIMIT_S = 2400  # The module is built from 130 MB of Debian's kernel source.
AS_JOB = ("ulimit -l unlimited; setpriv --reuid job --regid job --init-groups "
          "--bounding-set -all,{0} --inh-caps -all,{0} --ambient-caps -all,{0}")
# What the kernel itself says: whether the page map tells where a page of the caller's lies, and
# whether the NIC's node opens.
ASK_KERNEL = r"""bash -c '
exec 3</proc/self/pagemap
page=$((16#$(sed -n "s/-.*\[heap\]//p" /proc/$$/maps) / 4096))
entry=$(dd bs=8 count=1 skip=$page <&3 2>/dev/null | od -An -tx8)
(( 16#${entry// } & 0x7fffffffffffff )) && echo addresses told || echo addresses hidden
(: <>$(echo /dev/vfio/noiommu-*)) 2>/dev/null && echo node opened || echo node refused'"""
# Capabilities of a job, what the kernel says to it, and what ztcp finds missing.
ATTEMPTS = [("-all", "addresses hidden\nnode refused", "missing: CAP_SYS_RAWIO, CAP_SYS_ADMIN"),
            ("+sys_rawio", "addresses hidden\nnode opened", "missing: CAP_SYS_ADMIN"),
            ("+sys_admin", "addresses told\nnode refused", "missing: CAP_SYS_RAWIO")]
ENOUGH = "+sys_rawio,+sys_admin"


def vfio_module(lab, machine):
    """vfio.ko with no-IOMMU mode for the kernel of the base image; built once."""
    release = machine.run("uname -r").output.strip()
    version = machine.run(f"dpkg-query -W -f '${{Version}}' linux-image-{release}").output.strip()
    folder = os.path.join(lab.cache, f"vfio-{version}")
    if not os.path.exists(os.path.join(folder, "vfio.ko")):
        lab.say(f"build vfio.ko {version} with no-IOMMU mode")
        os.makedirs(folder, exist_ok=True)
        builder = os.path.join(os.path.dirname(os.path.dirname(__file__)), "build-vfio")
        with open(lab.path("build-vfio.out"), "wb") as output:
            subprocess.run([builder, folder, release, version], stdout=output, stderr=output,
                           stdin=subprocess.DEVNULL, check=True)
    return folder


def run(lab):
    machines = lab.boot(2, nics=["virtio"], iommu=False)
    folder = vfio_module(lab, machines[0])
    for machine in machines:
        refused = machine.run(SET_UP + " --spare 0", status=None)
        if refused.status == 0:
            raise Failure("set-up without an IOMMU succeeded although nobody asked for it by name")
        expect("--no-iommu", refused.output, refused)
        machine.copy_tree(folder, to="/usr/local/share")
        machine.run("install -D -t /lib/modules/$(uname -r)/updates /usr/local/share/vfio.ko && depmod")
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
