// SPDX-License-Identifier: Apache-2.0
// Copyright the ztcp authors
//
// Checks that a NIC is of the mlx5 family, and that a process may steer its frames. The interface
// and the ports are checked as for AF_XDP (xdp.cc).
#include <string>
#include <unistd.h>

#include <fmt/format.h>

#include "config/check/checklist.h"
#include "config/machine/readings.h"
#include "core/kernel_release.h"
#include "core/nic_families.h"

namespace ztcp::config {
namespace {

constexpr unsigned kCapNetRaw = 13;  // linux/capability.h

std::string mlx5_folder(const Nic& nic) { return "/sys/class/net/" + nic.interface + "/device"; }

}  // namespace

Next check_mlx5_nic(Checklist& list, const Nic& nic) {
  const std::string driver = link_name(list.machine, mlx5_folder(nic) + "/driver").value_or("none");
  if (driver != kMlx5KernelDriver) {
    list.fault("mlx5", nic.name,
               fmt::format("{} has the kernel driver {}, and driver = \"mlx5\" is for NICs of {}",
                           nic.interface, driver, kMlx5KernelDriver),
               fmt::format("write driver = \"xdp\" in {}", list.fabric.path));
    return Next::kStop;
  }
  const std::string release =
      read_line(list.machine, "/proc/sys/kernel/osrelease").value_or(std::string());
  if (!release.empty() && kernel_version(release) < kForksCopyPinnedPages)
    list.fault(
        "mlx5", nic.name,
        fmt::format("kernel {} moves memory away from the NIC when a job forks", release),
        fmt::format("Linux {}.{} or newer; or write driver = \"xdp\" in {}",
                    kForksCopyPinnedPages.major, kForksCopyPinnedPages.minor, list.fabric.path));
  return Next::kGoOn;
}

// The kernel's RDMA device of the NIC: rdma-core reaches it through its device file.
Next check_mlx5_access(Checklist& list, const Nic& nic) {
  const auto devices = list.machine.list(mlx5_folder(nic) + "/infiniband");
  const std::string node =
      devices.empty() ? std::string() : uverbs_node(list.machine, devices.front());
  if (node.empty())
    list.fault("mlx5_access", nic.name,
               fmt::format("{} has no RDMA device, through which DPDK's driver reaches the NIC",
                           nic.interface),
               "sudo modprobe -a mlx5_ib ib_uverbs");
  else if (!exists(list.machine, node))
    list.fault("mlx5_access", nic.name, fmt::format("{} has no {} here", devices.front(), node),
               "in a container pass it in: --device /dev/infiniband; on a host sudo udevadm "
               "trigger --subsystem-match=infiniband_verbs");
  else if (!list.machine.may_access(node, R_OK | W_OK))
    list.fault(
        "mlx5_access", nic.name,
        fmt::format("user {} may not open {}, which is {}'s", ::geteuid(), node, devices.front()),
        fmt::format("sudo chmod 666 {}; to keep it so, install rdma-core: its udev rules do that",
                    node));
  else
    list.good("mlx5_access", nic.name, fmt::format("{} may be opened", node));
  return Next::kGoOn;
}

// For the process that runs the check, as for a job with its rights.
Next check_mlx5_rights(Checklist& list, const Nic& nic) {
  if (has_capability(list.machine, kCapNetRaw))
    list.good("rights", nic.name, "this process may steer the NIC's frames");
  else
    list.warning("rights", nic.name, fmt::format("user {} lacks CAP_NET_RAW here", ::geteuid()),
                 "give it to the job: a container with --cap-add NET_RAW, or a service with "
                 "AmbientCapabilities=CAP_NET_RAW");
  return Next::kGoOn;
}

}  // namespace ztcp::config
