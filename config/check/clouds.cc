// SPDX-License-Identifier: Apache-2.0
// Copyright the ztcp authors
//
// Traps of clouds' NICs that a host can see.
#include <string>

#include <fmt/format.h>

#include "config/check/checklist.h"
#include "config/machine/rdma.h"
#include "config/machine/readings.h"
#include "core/shell_word.h"

namespace ztcp::config {
namespace {

// Alibaba Cloud, "Enable eRDMA on a GPU-accelerated instance": with LL128 and another MTU the data
// are inconsistent.
constexpr const char* kErdmaDriver = "erdma";
constexpr std::int64_t kErdmaJumboMtu = 8500;
constexpr std::int64_t kErdmaMtu = 1400;

}  // namespace

Next check_rdma_cloud(Checklist& list, const Nic& nic) {
  const RdmaPort& port = list.rdma_port(nic);
  const std::string device = fmt::format("{}/{}/device/driver", kRdmaDevices, nic.device);
  if (port.interface.empty() || link_name(list.machine, device) != kErdmaDriver) return Next::kGoOn;
  const auto mtu = read_number(list.machine, "/sys/class/net/" + port.interface + "/mtu");
  if (!mtu) return Next::kGoOn;
  const std::string found =
      fmt::format("{} is eRDMA, and {} has an MTU of {}", nic.device, port.interface, *mtu);
  if (*mtu == kErdmaJumboMtu || *mtu == kErdmaMtu) {
    list.good("rdma_cloud", nic.name, found);
    return Next::kGoOn;
  }
  list.warning(
      "rdma_cloud", nic.name,
      fmt::format("{}: Alibaba Cloud wants {} or {}, else NCCL's protocol LL128 gives wrong data",
                  found, kErdmaJumboMtu, kErdmaMtu),
      fmt::format("sudo ip link set dev {} mtu {}, or {} where the network has no jumbo frames; or "
                  "on all hosts export NCCL_PROTO=^LL128",
                  shell_word(port.interface), kErdmaJumboMtu, kErdmaMtu));
  return Next::kGoOn;
}

}  // namespace ztcp::config
