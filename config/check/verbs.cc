// SPDX-License-Identifier: Apache-2.0
// Copyright the ztcp authors
//
// Checks that an RDMA device exists and may be used. Faults of one are warnings: its connections
// are refused by name, and the other NICs work.
#include <algorithm>
#include <limits>
#include <string>
#include <unistd.h>
#include <vector>

#include <fmt/format.h>

#include "config/check/checklist.h"
#include "config/machine/gpu_direct.h"
#include "config/machine/rdma.h"
#include "config/machine/readings.h"
#include "core/shell_word.h"

namespace ztcp::config {
namespace {

// The interface with the NIC's address; else a placeholder for the command.
std::string interface_for(const Checklist& list, const Nic& nic) {
  for (const LocalAddress& one : list.addresses)
    if (one.prefix.address == nic.address.address) return shell_word(one.interface);
  return "IFNAME";
}

// Modules that would make RDMA devices of NICs in this machine, and are not loaded.
std::vector<std::string> missing_modules(Machine& machine) {
  std::vector<std::string> missing;
  const std::string folder = "/sys/bus/pci/devices";
  for (const std::string& pci : machine.list(folder)) {
    const std::string driver = link_name(machine, pci_folder(pci) + "/driver").value_or("");
    const std::string module(rdma_module_of(driver));
    if (module.empty() || exists(machine, "/sys/module/" + module) ||
        std::find(missing.begin(), missing.end(), module) != missing.end())
      continue;
    missing.push_back(module);
  }
  return missing;
}

std::string mend_of_missing(Checklist& list, const Nic& nic) {
  if (nic.device.starts_with("rxe"))
    return fmt::format("sudo modprobe rdma_rxe && sudo rdma link add {} type rxe netdev {}",
                       nic.device, interface_for(list, nic));
  const std::string correct = fmt::format(
      "rdma link lists the devices; correct device in {}, or sudo ztcp_setup", list.fabric.path);
  // A device's name does not tell its module: devices are renamed after their place on the bus.
  const auto modules = missing_modules(list.machine);
  return modules.empty()
             ? correct
             : fmt::format("sudo modprobe -a {}; else {}", fmt::join(modules, " "), correct);
}

std::string mend_of_port(const RdmaPort& port) {
  if (port.is_infiniband)
    return "plug the cable in; the network needs a subnet manager (opensm): sudo ibstat";
  if (port.interface.empty()) return "plug the cable in; rdma link shows its interface";
  return fmt::format("sudo ip link set dev {} up, and plug the cable in",
                     shell_word(port.interface));
}

std::string text_of(const RdmaPort& port) {
  return fmt::format("port {} of {} is active: {}{}{}", port.port, port.device, port.network(),
                     port.speed_mbps == 0 ? "" : fmt::format(", {} Mb/s", port.speed_mbps),
                     port.interface.empty() ? "" : ", " + port.interface);
}

}  // namespace

Next check_rdma_device(Checklist& list, const Nic& nic) {
  if (!exists(list.machine, fmt::format("{}/{}", kRdmaDevices, nic.device))) {
    const std::vector<std::string> others = list.machine.list(kRdmaDevices);
    list.warning("rdma_device", nic.name,
                 fmt::format("no RDMA device {} is here; this host has {}", nic.device,
                             others.empty() ? "none" : fmt::format("{}", fmt::join(others, ", "))),
                 mend_of_missing(list, nic));
    return Next::kStop;
  }
  const RdmaPort& port = list.rdma_port(nic);
  if (port.kind == RdmaKind::kOther) {
    list.warning("rdma_device", nic.name,
                 fmt::format("{} is of a kind that has no reliable connections", nic.device),
                 "sudo ztcp_setup --transport sockets, over its interface");
    return Next::kStop;
  }
  if (port.kind == RdmaKind::kIwarp && !nic.merge.empty()) {
    list.warning(
        "rdma_device", nic.name,
        fmt::format("{} is an iWARP device, and those can't be merged", nic.device),
        fmt::format("remove merge = \"{}\" of that NIC from {}", nic.merge, list.fabric.path));
    return Next::kStop;
  }
  if (!port.is_active()) {
    const bool is_there = !port.state.empty();
    list.warning(
        "rdma_device", nic.name,
        is_there ? fmt::format("port {} of {} is {}", port.port, nic.device, port.state)
                 : fmt::format("{} has no port {}", nic.device, nic.device_port),
        is_there ? mend_of_port(port) : fmt::format("correct device_port in {}", list.fabric.path));
    return Next::kStop;
  }
  list.good("rdma_device", nic.name, text_of(port));
  return Next::kGoOn;
}

// Checks this device's node: access to other nodes does not help.
Next check_rdma_access(Checklist& list, const Nic& nic) {
  const std::string node = uverbs_node(list.machine, nic.device);
  if (node.empty())
    list.warning(
        "rdma_access", nic.name,
        fmt::format("the kernel lets no process use {}: ib_uverbs is not loaded", nic.device),
        "sudo modprobe ib_uverbs");
  else if (!exists(list.machine, node))
    list.warning("rdma_access", nic.name, fmt::format("{} has no {} here", nic.device, node),
                 "in a container pass it in: --device /dev/infiniband; on a host sudo udevadm "
                 "trigger --subsystem-match=infiniband_verbs");
  else if (!list.machine.may_access(node, R_OK | W_OK))
    list.warning(
        "rdma_access", nic.name,
        fmt::format("user {} may not open {}, which is {}'s", ::geteuid(), node, nic.device),
        fmt::format("sudo chmod 666 {}; to keep it so, install rdma-core: its udev rules do that",
                    node));
  else
    list.good("rdma_access", nic.name, fmt::format("{} may be opened", node));
  return Next::kGoOn;
}

// iWARP connects its queue pairs through it.
Next check_rdma_manager(Checklist& list, const Nic& nic) {
  constexpr const char* kCheck = "rdma_manager";
  if (list.rdma_port(nic).kind != RdmaKind::kIwarp) return Next::kGoOn;
  if (!exists(list.machine, kManagerNode))
    list.warning(
        kCheck, nic.name,
        fmt::format("there is no {}, through which iWARP connects queue pairs", kManagerNode),
        "sudo modprobe rdma_ucm; in a container pass it in: --device /dev/infiniband");
  else if (!list.machine.may_access(kManagerNode, R_OK | W_OK))
    list.warning(kCheck, nic.name,
                 fmt::format("user {} may not open {}, through which iWARP connects queue pairs",
                             ::geteuid(), kManagerNode),
                 fmt::format("sudo chmod 666 {}; to keep it so, install rdma-core: its udev rules "
                             "do that",
                             kManagerNode));
  else
    list.good(kCheck, nic.name, fmt::format("{} may be opened", kManagerNode));
  return Next::kGoOn;
}

Next check_rdma_address(Checklist& list, const Nic& nic) {
  const auto found = std::find_if(
      list.addresses.begin(), list.addresses.end(),
      [&](const LocalAddress& one) { return one.prefix.address == nic.address.address; });
  const RdmaPort& port = list.rdma_port(nic);
  const bool is_elsewhere = found != list.addresses.end() && port.kind == RdmaKind::kIwarp &&
                            !port.interface.empty() && found->interface != port.interface;
  if (is_elsewhere) {
    list.warning("rdma_address", nic.name,
                 fmt::format("{} is on {}, but iWARP's queue pairs use {}, {}'s own",
                             to_string(nic.address), found->interface, port.interface, nic.device),
                 fmt::format("write an address of {} into {}", port.interface, list.fabric.path));
    return Next::kGoOn;
  }
  if (found != list.addresses.end()) {
    list.good("rdma_address", nic.name,
              fmt::format("{} is on {}", to_string(nic.address), found->interface));
    return Next::kGoOn;
  }
  list.warning(
      "rdma_address", nic.name,
      fmt::format("address = \"{}\" is not an address of this host", to_string(nic.address)),
      fmt::format("ip -brief address shows them; write one through which the peers reach "
                  "this host into {}",
                  list.fabric.path));
  return Next::kGoOn;
}

// Memory registered with a NIC is locked, page by page.
void check_rdma_memory(Checklist& list) {
  const auto limit = locked_memory_limit(list.machine);
  const std::string where = "/proc/self/limits";
  if (!limit) return;
  if (*limit == std::numeric_limits<std::uint64_t>::max())
    return list.good("rdma_memory", where, "unlimited");
  const std::string found = fmt::format("max locked memory is {} KiB", *limit >> 10);
  if (has_capability(list.machine, kCapIpcLock))
    list.good("rdma_memory", where, found + ", but CAP_IPC_LOCK lifts the limit");
  else if (*limit >= kEnoughForRdmaBytes)
    list.good("rdma_memory", where, found);
  else
    list.warning("rdma_memory", where,
                 fmt::format("{}, wanted unlimited, or {} KiB: all that NCCL registers with RDMA "
                             "devices counts against it",
                             found, kEnoughForRdmaBytes >> 10),
                 "ulimit -l unlimited; docker run --ulimit memlock=-1; LimitMEMLOCK=infinity; sudo "
                 "ztcp_setup --user USER lifts it for sessions and services");
}

void check_rdma_gpus(Checklist& list) {
  const GpuDirect found = read_gpu_direct(list.machine);
  if (!found.has_gpu_driver) return;
  const std::string text = "GPUDirect RDMA " + to_string(found);
  if (found.is_on()) return list.good("rdma_gpu", "this machine", text);
  list.warning("rdma_gpu", "this machine", text + ": GPU data goes through host memory",
               found.is_module_at_hand
                   ? fmt::format("sudo modprobe {}", kPeerMemoryModule)
                   : "NVIDIA's open kernel module on Linux 5.12 or later, or the nvidia_peermem of "
                     "its driver with the RDMA drivers of DOCA (MLNX_OFED)");
}

}  // namespace ztcp::config
