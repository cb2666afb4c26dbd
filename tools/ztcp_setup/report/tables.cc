// SPDX-License-Identifier: Apache-2.0
// Copyright the ztcp authors
#include "tools/ztcp_setup/report/tables.h"

#include <algorithm>
#include <vector>

#include <fmt/format.h>

namespace ztcp::setup {
namespace {

const std::string& name_of(const config::HostNic& nic) {
  return nic.rdma ? nic.rdma->device : nic.pci;
}

// Columns as wide as their widest cell.
class Table {
 public:
  void add(std::vector<std::string> row) { rows_.push_back(std::move(row)); }

  std::string text() const {
    std::vector<std::size_t> widths;
    for (const auto& row : rows_) {
      widths.resize(std::max(widths.size(), row.size()));
      for (std::size_t i = 0; i < row.size(); ++i) widths[i] = std::max(widths[i], row[i].size());
    }
    std::string out;
    for (const auto& row : rows_) {
      std::string line = " ";
      for (std::size_t i = 0; i < row.size(); ++i)
        line += fmt::format(" {:<{}} ", row[i], widths[i]);
      out += line.substr(0, line.find_last_not_of(' ') + 1) + "\n";
    }
    return out;
  }

 private:
  std::vector<std::vector<std::string>> rows_;
};

std::string or_dash(std::string text) { return text.empty() ? "-" : std::move(text); }
std::string number_or_dash(std::int64_t number, bool known) {
  return known ? fmt::format("{}", number) : "-";
}

std::string rdma_pairs_text(const Plan& plan) {
  Table table;
  table.add({"device", "GPU", "model", "NUMA", "RDMA device", "link", "interface", "GID", "address",
             "MTU", "Mb/s", "why this NIC"});
  for (const config::Pair& pair : plan.pairs) {
    const config::Gpu gpu = pair.gpu ? plan.topology.gpus[*pair.gpu] : config::Gpu{};
    const config::HostNic& found = plan.topology.nics[pair.nic];
    const config::Nic& nic = plan.fabric_nic(pair);
    const std::uint32_t mbps = nic.speed_mbps != 0 ? nic.speed_mbps : found.speed_mbps;
    table.add({nic.name, or_dash(gpu.pci), or_dash(gpu.model),
               number_or_dash(nic.numa_node, nic.numa_node >= 0),
               fmt::format("{} port {}", nic.device, nic.device_port), found.rdma->network(),
               or_dash(found.interface), found.gid, to_string(nic.address),
               number_or_dash(found.mtu_bytes, found.mtu_bytes > 0), number_or_dash(mbps, mbps > 0),
               pair.reason});
  }
  return table.text();
}

}  // namespace

std::string pairs_text(const Plan& plan) {
  if (plan.verbs) return rdma_pairs_text(plan);
  Table table;
  table.add({"device", "GPU", "model", "NUMA", "NIC", "interface", "driver", "address", "VLAN",
             "MTU", "Mb/s", "why this NIC"});
  for (const config::Pair& pair : plan.pairs) {
    const config::Gpu gpu = pair.gpu ? plan.topology.gpus[*pair.gpu] : config::Gpu{};
    const config::HostNic& found = plan.topology.nics[pair.nic];
    const config::Nic& nic = plan.fabric_nic(pair);
    const bool addressed = nic.address != IpPrefix();
    // Kernel interfaces keep their own settings.
    const std::uint32_t mtu_bytes = plan.sockets ? found.mtu_bytes : nic.mtu_bytes;
    const std::uint32_t mbps =
        plan.sockets && nic.speed_mbps == 0 ? found.speed_mbps : nic.speed_mbps;
    table.add(
        {nic.name, or_dash(gpu.pci), or_dash(gpu.model),
         number_or_dash(nic.numa_node, nic.numa_node >= 0), found.pci,
         or_dash(plan.sockets ? nic.interface : found.interface), or_dash(found.driver),
         addressed ? to_string(nic.address) : "-", number_or_dash(nic.vlan_id, nic.vlan_id > 0),
         number_or_dash(mtu_bytes, mtu_bytes > 0), number_or_dash(mbps, mbps > 0), pair.reason});
  }
  return table.text();
}

std::string inventory_text(const config::Topology& topology) {
  Table table;
  for (const config::Gpu& gpu : topology.gpus) table.add({"GPU", gpu.pci, or_dash(gpu.model), ""});
  for (const config::HostNic& nic : topology.nics)
    table.add({nic.rdma ? "RDMA" : "NIC", name_of(nic), or_dash(nic.interface),
               nic.unfit.empty() ? "free" : "not for ztcp: " + nic.unfit});
  return table.text();
}

std::string left_alone_text(const Plan& plan) {
  std::string out;
  for (const config::HostNic& nic : plan.topology.nics)
    if (!nic.unfit.empty())
      out += fmt::format("  {} {} is {}: it {}\n", name_of(nic), or_dash(nic.interface),
                         plan.takes_nics() ? "left alone" : "not used", nic.unfit);
  return out;
}

std::string idle_rdma_text(const Plan& plan) {
  std::string out;
  if (plan.verbs) return out;
  for (const config::HostNic& nic : plan.topology.rdma)
    if (nic.rdma->is_active() && nic.rdma->kind != config::RdmaKind::kOther)
      out +=
          fmt::format("{}{} port {} ({}, {} Mb/s, {})", out.empty() ? "" : ", ", nic.rdma->device,
                      nic.rdma->port, nic.rdma->network(),
                      number_or_dash(nic.speed_mbps, nic.speed_mbps > 0), or_dash(nic.interface));
  return out;
}

}  // namespace ztcp::setup
