// SPDX-License-Identifier: Apache-2.0
// Copyright the ztcp authors
#include "config/check/check.h"

#include <algorithm>
#include <unistd.h>

#include <fmt/format.h>

#include "config/check/checklist.h"
#include "config/file/fields.h"
#include "config/machine/container.h"
#include "config/machine/readings.h"
#include "core/shell_word.h"

namespace ztcp::config {
namespace {

void check_schema(Checklist& list) {
  const std::uint32_t schema = list.fabric.schema;
  if (schema == kSchemaVersion)
    list.good("schema", list.fabric.path, fmt::format("schema {}", schema));
  else
    list.fault("schema", list.fabric.path,
               fmt::format("schema {}, this ztcp reads {}", schema, kSchemaVersion),
               "upgrade ztcp on this host; or move the file away, and ztcp_setup writes one of its "
               "own");
}

void check_identity(Checklist& list) {
  const Host& host = list.fabric.host;
  const std::string path = "/etc/machine-id";
  if (host.machine_id.empty()) {
    list.good("host", list.fabric.path, "the config is for any host");
    return;
  }
  const auto here = read_line(list.machine, path);
  if (!here || here->empty()) {
    list.good("host", path, "not readable here, so not compared");
    return;
  }
  if (*here == host.machine_id) {
    list.good("host", path, fmt::format("{}, as in the config", *here));
    return;
  }
  const std::string what =
      fmt::format("the config was written for host {} (machine id {}), this machine id is {}",
                  host.hostname.empty() ? "unknown" : host.hostname, host.machine_id, *here);
  // An image has a machine id of its own, and the NICs below identify the host better.
  if (in_container(list.machine))
    list.good("host", path, what + "; this is a container, so that says nothing");
  else
    list.fault("host", path, what + "; a copied file or a cloned disk image?", kSetUpAnew);
}

void check_run_dir(Checklist& list) {
  const std::string& folder = list.fabric.run_dir;
  const Fabric& fabric = list.fabric;
  // Interfaces and RDMA devices are shared: there are no locks.
  if (std::all_of(fabric.nics.begin(), fabric.nics.end(), [](const Nic& nic) {
        return nic.driver == NicDriver::kSocket || nic.driver == NicDriver::kVerbs;
      }))
    return;
  const bool on_pci = std::any_of(fabric.nics.begin(), fabric.nics.end(),
                                  [](const Nic& nic) { return nic.driver == NicDriver::kPci; });
  if (exists(list.machine, folder) && !is_folder(list.machine, folder))
    list.fault("run_dir", folder, "NIC locks go here, but it is not a folder",
               "move it away, or name another run_dir");
  else if (list.machine.may_access(folder, W_OK | X_OK))
    list.good("run_dir", folder, "writable");
  else if (exists(list.machine, folder))
    list.fault("run_dir", folder, "NIC locks go here, but this user can't write to it",
               on_pci ? "sudo ztcp_setup --group GROUP, of which the user is a member"
                      : fmt::format("sudo chgrp GROUP {0} && sudo chmod 770 {0}, with a GROUP of "
                                    "which the user is a member",
                                    shell_word(folder)));
  else
    list.fault(
        "run_dir", folder, "NIC locks go here, but there is no such folder",
        on_pci ? std::string("sudo ztcp_setup") : fmt::format("mkdir -p {}", shell_word(folder)));
}

std::vector<std::string> paired_gpus(const Fabric& fabric) {
  std::vector<std::string> gpus;
  for (const Nic& nic : fabric.nics)
    if (!nic.gpu_pci.empty() && std::find(gpus.begin(), gpus.end(), nic.gpu_pci) == gpus.end())
      gpus.push_back(nic.gpu_pci);
  return gpus;
}

void check_gpus(Checklist& list) {
  const std::vector<std::string> paired = paired_gpus(list.fabric);
  if (paired.empty()) return;
  // A paired GPU that the machine lacks: the card was moved, or the machine type changed.
  for (const std::string& gpu : paired) {
    if (exists(list.machine, pci_folder(gpu)))
      list.good("gpu", gpu, "present");
    else
      list.fault("gpu", gpu, "the config pairs a NIC with this GPU, but it is not in this machine",
                 kSetUpAnew);
  }
  // A container may number PCI domains differently; then the config's UUIDs identify the GPUs.
  const bool by_uuid = std::any_of(list.fabric.nics.begin(), list.fabric.nics.end(),
                                   [](const Nic& nic) { return !nic.gpu_uuid.empty(); });
  for (const std::string& gpu : list.gpus) {
    if (std::find(paired.begin(), paired.end(), gpu) != paired.end()) continue;
    const std::string what = fmt::format("this process sees GPU {}, the config has NICs for {}",
                                         gpu, fmt::join(paired, ", "));
    if (by_uuid)
      list.warning("gpu", gpu, what, kSetUpAnew);
    else
      list.fault("gpu", gpu, what, kSetUpAnew);
  }
}

// Drivers of NICs, one bit each.
constexpr unsigned kind(NicDriver driver) { return 1U << static_cast<unsigned>(driver); }
constexpr unsigned kPci = kind(NicDriver::kPci);
constexpr unsigned kMemif = kind(NicDriver::kMemif);
constexpr unsigned kTap = kind(NicDriver::kTap);
constexpr unsigned kXdp = kind(NicDriver::kXdp);
constexpr unsigned kMlx5 = kind(NicDriver::kMlx5);
constexpr unsigned kSocket = kind(NicDriver::kSocket);
constexpr unsigned kVerbs = kind(NicDriver::kVerbs);

// Every check and the drivers it applies to, in the order of the report.
using HostCheck = void (*)(Checklist&);
constexpr HostCheck kHostChecks[] = {check_schema,  check_identity,    check_run_dir,
                                     check_gpus,    check_speed_units, check_watch_interface,
                                     check_timeouts};

struct NicCheck {
  unsigned kinds;
  Next (*judge)(Checklist&, const Nic&);
};
constexpr NicCheck kNicChecks[] = {
    {kPci, check_pci_device},      //
    {kPci, check_known_speed},     //
    {kPci, check_driver},          //
    {kPci, check_vfio_group},      //
    {kPci, check_pci_interface},   //
    {kMemif, check_memif_path},    //
    {kMemif, check_memif_socket},  //
    {kTap, check_tap_device},      //
    {kTap, check_tap_interface},
    {kXdp | kMlx5, check_xdp_interface},
    {kXdp, check_xdp_processes},
    {kMlx5, check_mlx5_nic},
    {kMlx5, check_mlx5_access},
    {kMlx5, check_mlx5_rights},
    {kXdp | kMlx5, check_xdp_ports},
    {kXdp, check_xdp_rights},
    {kXdp, check_xdp_memory},
    {kSocket, check_socket_interface},
    {kSocket, check_socket_network},
    {kSocket | kVerbs, check_listening_ports},
    {kSocket, check_socket_speed},
    {kVerbs, check_rdma_device},
    {kVerbs, check_rdma_access},
    {kVerbs, check_rdma_manager},
    {kVerbs, check_rdma_address},
    {kVerbs, check_rdma_acs},
    {kVerbs, check_rdma_pkey},
    {kVerbs, check_rdma_gid},
    {kVerbs, check_rdma_mtu},
    {kVerbs, check_rdma_cloud},
    {kPci | kXdp | kMlx5 | kSocket, check_cloud_nic},
};

// Requirements that NICs of a kind have in common.
struct SharedCheck {
  unsigned kinds;
  HostCheck judge;
};
constexpr SharedCheck kSharedChecks[] = {
    {kPci, check_equal_speeds},          {kPci | kMlx5, check_hugepages},
    {kPci | kMlx5, check_locked_memory}, {kSocket, check_socket_buffers},
    {kSocket, check_socket_switches},    {kVerbs, check_rdma_speeds},
    {kVerbs, check_rdma_memory},         {kVerbs, check_rdma_gpus},
};

}  // namespace

std::vector<Check> run_checks(const Fabric& fabric, Machine& machine, const GpuList& gpus,
                              const NicList& own_nics, const AddressList& addresses,
                              const XdpFactsByInterface& xdp) {
  Checklist list{fabric, machine, gpus, own_nics, addresses, xdp, {}, {}};
  for (const HostCheck judge : kHostChecks) judge(list);
  unsigned kinds = 0;
  for (const Nic& nic : fabric.nics) {
    kinds |= kind(nic.driver);
    for (const NicCheck& check : kNicChecks)
      if ((check.kinds & kind(nic.driver)) != 0 && check.judge(list, nic) == Next::kStop) break;
  }
  for (const SharedCheck& check : kSharedChecks)
    if ((check.kinds & kinds) != 0) check.judge(list);
  return std::move(list.checks);
}

Problems check_host(const Fabric& fabric, Machine& machine, const GpuList& gpus,
                    const NicList& own_nics, const AddressList& addresses) {
  Problems problems;
  for (Check& check : run_checks(fabric, machine, gpus, own_nics, addresses))
    if (check.severity == Severity::kFault) problems.push_back(std::move(check.problem));
  return problems;
}

}  // namespace ztcp::config
