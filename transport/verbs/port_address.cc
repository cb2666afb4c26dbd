// SPDX-License-Identifier: Apache-2.0
// Copyright the ztcp authors
#include "transport/verbs/port_address.h"

#include <algorithm>
#include <cstring>
#include <fstream>
#include <optional>
#include <vector>

#include <fmt/format.h>

#include "transport/verbs/device.h"

namespace ztcp::verbs {
namespace {

struct Table {
  std::vector<GidEntry> gids;
  bool is_infiniband = false;
  std::uint16_t lid = 0;
};

// Absent: not in sysfs.
std::optional<std::string> type_line(const GidRule& rule, int index) {
  std::ifstream file(rule.types + "/" + std::to_string(index));
  if (!file.is_open()) return std::nullopt;
  std::string line;
  std::getline(file, line);
  return line;
}

GidType type_of(const GidRule& rule, int index, bool is_infiniband) {
  return parse_gid_type(type_line(rule, index).value_or(""), is_infiniband);
}

// Why the GID that the rule names can't be used; empty: it can.
std::string fault_of(const Table& table, const GidEntry* named, const GidRule& rule) {
  if (rule.index > kMaxGidIndex)
    return fmt::format("is beyond {}, the last index that a queue pair takes", kMaxGidIndex);
  if (named == nullptr || named->gid == Gid{}) return "is empty";
  // The kernel does not let us read the type of an entry if its interface is in another network
  // namespace. Packets from here can't leave by such an entry.
  if (!table.is_infiniband && type_line(rule, rule.index) == "")
    return "belongs to another network namespace (another container)";
  return {};
}

Result<Table, std::string> read_table(const OpenDevice& device, std::uint8_t port,
                                      const GidRule& rule) {
  ibv_context* const context = device.context.get();
  ibv_port_attr attr{};
  if (const int error = device.api->query_port(context, port, &attr); error != 0)
    return tl::unexpected(
        fmt::format("port {} of {} does not answer: {}", port, device.name, std::strerror(error)));
  Table table{
      .gids = {}, .is_infiniband = attr.link_layer == IBV_LINK_LAYER_INFINIBAND, .lid = attr.lid};
  for (int i = 0; i < attr.gid_tbl_len; ++i) {
    ibv_gid gid{};
    if (device.api->query_gid(context, port, i, &gid) != 0) continue;
    GidEntry entry{.index = i};
    std::copy(std::begin(gid.raw), std::end(gid.raw), entry.gid.begin());
    entry.type = type_of(rule, i, table.is_infiniband);
    table.gids.push_back(entry);
  }
  return table;
}

Result<PortAddress, std::string> choose(const Table& table, const OpenDevice& device,
                                        std::uint8_t port, const GidRule& rule) {
  if (rule.index < 0) {
    if (const auto chosen = choose_gid(table.gids, table.is_infiniband, rule.wish))
      return PortAddress{*chosen, table.lid};
    return tl::unexpected(
        fmt::format("port {} of {} has no GID that can be used; has its interface an address?",
                    port, device.name));
  }
  const auto found = std::ranges::find(table.gids, rule.index, &GidEntry::index);
  const GidEntry* const named = found == table.gids.end() ? nullptr : &*found;
  const std::string fault = fault_of(table, named, rule);
  if (fault.empty()) return PortAddress{*named, table.lid};
  return tl::unexpected(fmt::format("GID {} of port {} of {} ({}) {}; remove it, and one is chosen",
                                    rule.index, port, device.name, rule.by, fault));
}

}  // namespace

std::string choice_text(const GidRule& rule, const GidEntry& chosen) {
  if (rule.index >= 0) return "by " + rule.by;
  if (rule.wished_by.empty()) return "chosen by itself";
  const bool is_wished = fits(chosen, rule.wish) &&
                         (chosen.type == rule.wish.version || chosen.type == GidType::kInfiniBand);
  return is_wished ? "chosen by " + rule.wished_by
                   : "chosen by itself: none fits " + rule.wished_by;
}

Result<PortAddress, std::string> read_address(const OpenDevice& device, std::uint8_t port,
                                              const GidRule& rule) {
  const Table table = ZTCP_TRY(read_table(device, port, rule));
  return choose(table, device, port, rule);
}

Result<PortAddress, std::string> read_address_again(const OpenDevice& device, std::uint8_t port,
                                                    const GidRule& rule, const GidEntry& had) {
  const Table table = ZTCP_TRY(read_table(device, port, rule));
  const auto same = std::ranges::find_if(table.gids, [&](const GidEntry& one) {
    return one.gid == had.gid && one.type == had.type && one.index <= kMaxGidIndex;
  });
  if (same != table.gids.end()) return PortAddress{*same, table.lid};
  return choose(table, device, port, rule);
}

}  // namespace ztcp::verbs
