// SPDX-License-Identifier: Apache-2.0
// Copyright the ztcp authors
#include "transport/verbs/port_address.h"

#include <algorithm>
#include <cstring>
#include <fstream>
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

GidType type_of(const GidRule& rule, int index, bool is_infiniband) {
  std::ifstream file(rule.types + "/" + std::to_string(index));
  std::string line;
  std::getline(file, line);
  // An entry of a network that the container has not can't be read: so it is none of ours.
  return parse_gid_type(line, is_infiniband);
}

tl::expected<Table, std::string> read_table(const OpenDevice& device, std::uint8_t port,
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

tl::expected<PortAddress, std::string> choose(const Table& table, const OpenDevice& device,
                                              std::uint8_t port, const GidRule& rule) {
  if (rule.index < 0) {
    if (const auto chosen = choose_gid(table.gids, table.is_infiniband))
      return PortAddress{*chosen, table.lid};
    return tl::unexpected(
        fmt::format("port {} of {} has no GID that can be used; has its interface an address?",
                    port, device.name));
  }
  const auto found = std::ranges::find(table.gids, rule.index, &GidEntry::index);
  if (found != table.gids.end() && found->gid != Gid{}) return PortAddress{*found, table.lid};
  return tl::unexpected(
      fmt::format("GID {} of port {} of {} ({}) is empty; remove it, and one is chosen", rule.index,
                  port, device.name, rule.by));
}

}  // namespace

tl::expected<PortAddress, std::string> read_address(const OpenDevice& device, std::uint8_t port,
                                                    const GidRule& rule) {
  const auto table = read_table(device, port, rule);
  if (!table) return tl::unexpected(table.error());
  return choose(*table, device, port, rule);
}

tl::expected<PortAddress, std::string> read_address_again(const OpenDevice& device,
                                                          std::uint8_t port, const GidRule& rule,
                                                          const GidEntry& had) {
  const auto table = read_table(device, port, rule);
  if (!table) return tl::unexpected(table.error());
  const auto same = std::ranges::find_if(
      table->gids, [&](const GidEntry& one) { return one.gid == had.gid && one.type == had.type; });
  if (same != table->gids.end()) return PortAddress{*same, table->lid};
  return choose(*table, device, port, rule);
}

}  // namespace ztcp::verbs
