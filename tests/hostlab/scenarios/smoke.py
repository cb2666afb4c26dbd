"""Two machines prepared by hand run a job over each kind of NIC."""
from guest import expect_verified, on_all, start_ranks

BY_HAND = """set -e
modprobe vfio-pci
echo 1 >/sys/kernel/mm/hugepages/hugepages-1048576kB/nr_hugepages
for nic in 0000:02:00.0 0000:03:00.0 0000:04:00.0; do
  echo vfio-pci >/sys/bus/pci/devices/$nic/driver_override
  echo $nic >/sys/bus/pci/devices/$nic/driver/unbind
  echo $nic >/sys/bus/pci/drivers_probe
  chown job /dev/vfio/$(basename $(readlink /sys/bus/pci/devices/$nic/iommu_group))
done
echo 'job - memlock unlimited' >/etc/security/limits.d/ztcp.conf
install -d -m 1777 /tmp/ztcp-run
"""


def run(lab):
    machines = lab.boot(2, nics=("virtio", "e1000e", "vmxnet3"))
    on_all(machines, BY_HAND)
    for machine in machines:
        config = ('schema = 1\nrun_dir = "/tmp/ztcp-run"\n[host]\nclass = "iommu"\n'
                  "[hugepages]\npage_kib = 1048576\nper_process_mib = 1024\n")
        for rail in 1, 2, 3:
            config += (f'[[nic]]\nname = "ztcp{rail}"\ndriver = "pci"\npci = "0000:0{rail + 1}:00.0"\n'
                       f'address = "{machine.address(rail)}/24"\nmac = "{machine.mac(rail)}"\n')
        machine.write("/tmp/ztcp.conf", config)
    for rail, model in enumerate(machines[0].nics):
        lab.say(f"all-reduce over {model}")
        expect_verified(start_ranks(
            machines, "--op all_reduce --min 8 --max 64K --factor 8 --iters 2 --warmup 1 --check",
            prefix=f"ZTCP_CONFIG=/tmp/ztcp.conf ZTCP_LOCAL_RANK={rail}"))
