// SPDX-License-Identifier: Apache-2.0
// Copyright the ztcp authors
//
// ACS, "access control services" of PCI Express (PCIe 5.0 section 7.7.11): a switch with ACS on
// sends traffic between a NIC and a GPU below it through the CPU, which makes GPUDirect RDMA slow.
#include <algorithm>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include <fmt/format.h>

#include "config/check/checklist.h"
#include "config/machine/rdma.h"
#include "config/machine/readings.h"
#include "config/machine/text.h"
#include "core/pci_path.h"

namespace ztcp::config {
namespace {

constexpr std::size_t kExtended = 0x100;  // Beyond this only root may read.
constexpr std::uint32_t kAcsCapability = 0x000d;
constexpr std::size_t kAcsControl = 6;
// Redirect requests and completions between ports of one switch upstream.
constexpr std::uint32_t kRedirects = 0x04 | 0x08;

std::uint32_t number_at(const std::string& bytes, std::size_t at, std::size_t count) {
  std::uint32_t number = 0;
  for (std::size_t i = count; i-- > 0;)
    number = number << 8U | static_cast<std::uint8_t>(bytes[at + i]);
  return number;
}

// ACS's control register; absent: the function has none, or its config space is not readable.
std::optional<std::uint32_t> acs_control(const std::string& config) {
  constexpr int kMost = 64;  // Ends a cyclic list of a broken device.
  std::size_t at = kExtended;
  for (int i = 0; i < kMost && at >= kExtended && at + 8 <= config.size(); ++i) {
    const std::uint32_t header = number_at(config, at, 4);
    if ((header & 0xffffU) == kAcsCapability) return number_at(config, at + kAcsControl, 2);
    at = header >> 20U;
  }
  return std::nullopt;
}

// The functions from the root down to this one, inclusive.
std::vector<std::string> way_to(Machine& machine, const std::string& pci) {
  const std::string target = machine.link_target(pci_folder(pci)).value_or("");
  std::vector<std::string> way;
  for (const std::string_view part : split(target, '/'))
    if (is_pci_address(part)) way.emplace_back(part);
  return way;
}

// The bridges between two functions below one switch; empty where only the root connects them.
std::vector<std::string> bridges_between(const std::vector<std::string>& a,
                                         const std::vector<std::string>& b) {
  const auto [end_a, end_b] = std::mismatch(a.begin(), a.end(), b.begin(), b.end());
  if (end_a == a.begin() || end_a == a.end() || end_b == b.end()) return {};
  std::vector<std::string> between(end_a, a.end() - 1);
  between.insert(between.end(), end_b, b.end() - 1);
  return between;
}

bool is_gpu(Machine& machine, const std::string& pci) {
  return read_line(machine, pci_folder(pci) + "/vendor") == "0x10de" &&
         read_line(machine, pci_folder(pci) + "/class").value_or("").starts_with("0x03");
}

}  // namespace

Next check_rdma_acs(Checklist& list, const Nic& nic) {
  const RdmaPort& port = list.rdma_port(nic);
  if (port.pci.empty()) return Next::kGoOn;
  const auto way = way_to(list.machine, port.pci);
  std::vector<std::string> bridges;
  for (const std::string& pci : list.machine.list("/sys/bus/pci/devices")) {
    if (!is_gpu(list.machine, pci)) continue;
    for (std::string& bridge : bridges_between(way, way_to(list.machine, pci)))
      if (std::find(bridges.begin(), bridges.end(), bridge) == bridges.end())
        bridges.push_back(std::move(bridge));
  }
  if (bridges.empty()) return Next::kGoOn;  // No GPU shares a switch with it.
  std::vector<std::string> on;
  std::vector<std::string> unknown;
  for (const std::string& bridge : bridges) {
    const std::string config = text_of(list.machine, pci_folder(bridge) + "/config");
    if (config.size() <= kExtended)
      unknown.push_back(bridge);
    else if ((acs_control(config).value_or(0) & kRedirects) != 0)
      on.push_back(bridge);
  }
  if (!on.empty())
    list.warning("rdma_acs", nic.name,
                 fmt::format("ACS is on at {}, between {} and its GPUs: their traffic detours "
                             "through the CPU",
                             fmt::join(on, ", "), port.pci),
                 fmt::format("off in the BIOS, or after each boot: for d in {}; do sudo setpci -s "
                             "$d ECAP_ACS+0x6.w=0000; done. Not on hosts that give devices to "
                             "virtual machines: ACS isolates them",
                             fmt::join(on, " ")));
  else if (!unknown.empty())
    list.good("rdma_acs", nic.name,
              fmt::format("only root can read whether ACS is on at {}: sudo ztcp_setup --check",
                          fmt::join(unknown, ", ")));
  else
    list.good(
        "rdma_acs", nic.name,
        fmt::format("off at {}, between {} and its GPUs", fmt::join(bridges, ", "), port.pci));
  return Next::kGoOn;
}

}  // namespace ztcp::config
