// SPDX-License-Identifier: Apache-2.0
// Copyright the ztcp authors
#include "tools/ztcp_switch/report.h"

#include <array>
#include <iterator>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

namespace ztcp::fabric {
namespace {

double seconds(Duration d) { return std::chrono::duration<double>(d).count(); }

struct Counter {
  const char* name;
  std::uint64_t PortCounters::*value;
};
constexpr std::array kCounters = {
    Counter{"rx_frames", &PortCounters::rx_frames},
    Counter{"rx_bytes", &PortCounters::rx_bytes},
    Counter{"tx_frames", &PortCounters::tx_frames},
    Counter{"tx_bytes", &PortCounters::tx_bytes},
    Counter{"flooded", &PortCounters::flooded},
    Counter{"queued_frames", &PortCounters::queued_frames},
    Counter{"queued_bytes_max", &PortCounters::queued_bytes_max},
    Counter{"drop_malformed", &PortCounters::drop_malformed},
    Counter{"drop_same_port", &PortCounters::drop_same_port},
    Counter{"drop_oversize", &PortCounters::drop_oversize},
    Counter{"drop_queue_full", &PortCounters::drop_queue_full},
    Counter{"drop_link_down", &PortCounters::drop_link_down},
    Counter{"impaired_loss", &PortCounters::impaired_loss},
    Counter{"impaired_duplicate", &PortCounters::impaired_duplicate},
    Counter{"impaired_reorder", &PortCounters::impaired_reorder},
    Counter{"impaired_corrupt", &PortCounters::impaired_corrupt},
    Counter{"impaired_ecn", &PortCounters::impaired_ecn},
};
constexpr std::size_t kAlwaysShown = 5;

struct LinkCounter {
  const char* name;
  std::uint64_t link::LinkCounters::*value;
};
constexpr std::array kLinkCounters = {
    LinkCounter{"link_no_memory", &link::LinkCounters::rx_dropped_no_memory},
    LinkCounter{"link_tx_ring_full", &link::LinkCounters::tx_ring_full},
};

}  // namespace

std::string table_of(const FabricSwitch& fabric, TimePoint now, Duration running) {
  std::string text;
  auto out = std::back_inserter(text);
  fmt::format_to(out, "# ztcp_switch: {} ports, {:.1f} s, {} addresses known, {} moved\n",
                 fabric.port_count(), seconds(running), fabric.known_addresses(now),
                 fabric.moved_addresses());
  fmt::format_to(out, "# {:<16} {:>4} {:>12} {:>15} {:>12} {:>15} {:>8}  drops and impairments\n",
                 "port", "link", "rx frames", "rx bytes", "tx frames", "tx bytes", "flooded");
  for (PortIndex i = 0; i < fabric.port_count(); ++i) {
    const PortCounters& c = fabric.counters(i);
    fmt::format_to(out, "  {:<16} {:>4} {:12} {:15} {:12} {:15} {:8} ", fabric.port_name(i),
                   fabric.port_up(i) ? "up" : "down", c.rx_frames, c.rx_bytes, c.tx_frames,
                   c.tx_bytes, c.flooded);
    // The other counters only if not zero.
    for (std::size_t k = kAlwaysShown; k < kCounters.size(); ++k)
      if (c.*kCounters[k].value != 0)
        fmt::format_to(out, " {}={}", kCounters[k].name, c.*kCounters[k].value);
    const link::LinkCounters& l = fabric.port_link(i).counters();
    for (const LinkCounter& counter : kLinkCounters)
      if (l.*counter.value != 0) fmt::format_to(out, " {}={}", counter.name, l.*counter.value);
    text += '\n';
  }
  return text;
}

std::string json_of(const FabricSwitch& fabric, std::uint64_t seed, TimePoint now,
                    Duration running) {
  using nlohmann::json;
  json ports = json::array();
  for (PortIndex i = 0; i < fabric.port_count(); ++i) {
    json port = {{"name", fabric.port_name(i)},
                 {"link", fabric.port_link(i).describe()},
                 {"up", fabric.port_up(i)},
                 {"mtu_bytes", fabric.port_link(i).capabilities().mtu_bytes}};
    for (const Counter& counter : kCounters) port[counter.name] = fabric.counters(i).*counter.value;
    for (const LinkCounter& counter : kLinkCounters)
      port[counter.name] = fabric.port_link(i).counters().*counter.value;
    ports.push_back(std::move(port));
  }
  const json document = {{"tool", "ztcp_switch"},
                         {"version", ZTCP_VERSION},
                         {"seed", seed},
                         {"seconds", seconds(running)},
                         {"addresses_known", fabric.known_addresses(now)},
                         {"addresses_moved", fabric.moved_addresses()},
                         {"ports", ports}};
  return document.dump(2) + "\n";
}

}  // namespace ztcp::fabric
