// SPDX-License-Identifier: Apache-2.0
// Copyright the ztcp authors
#include "config/machine/port_set.h"

#include <algorithm>
#include <charconv>

#include <fmt/format.h>

#include "config/machine/readings.h"
#include "config/machine/text.h"

namespace ztcp::config {

void add_range(PortSet& ports, unsigned first, unsigned last) {
  for (unsigned port = first; port <= last && port < ports.size(); ++port) ports.set(port);
}

PortSet parse_ports(std::string_view text) {
  PortSet ports;
  while (!text.empty()) {
    const std::string_view item = text.substr(0, text.find(','));
    text.remove_prefix(std::min(text.size(), item.size() + 1));
    unsigned first = 0;
    const char* const end = item.data() + item.size();
    const auto [dash, fault] = std::from_chars(item.data(), end, first);
    if (fault != std::errc{}) continue;
    unsigned last = first;
    if (dash != end && *dash == '-') std::from_chars(dash + 1, end, last);
    add_range(ports, first, last);
  }
  return ports;
}

std::string to_text(const PortSet& ports) {
  std::string text;
  for (std::size_t first = 0; first < ports.size(); ++first) {
    if (!ports[first]) continue;
    std::size_t last = first;
    while (last + 1 < ports.size() && ports[last + 1]) ++last;
    text += text.empty() ? "" : ",";
    text += first == last ? fmt::to_string(first) : fmt::format("{}-{}", first, last);
    first = last;
  }
  return text;
}

PortSet ephemeral_ports(Machine& machine) {
  PortSet ports;
  const auto range = read_line(machine, "/proc/sys/net/ipv4/ip_local_port_range");
  if (!range) return ports;
  const auto words = words_of(*range);
  if (words.size() != 2) return ports;
  add_range(ports, static_cast<unsigned>(parse_number(words[0]).value_or(0)),
            static_cast<unsigned>(parse_number(words[1]).value_or(0)));
  return ports & ~parse_ports(read_line(machine, kReservedPorts).value_or(std::string()));
}

}  // namespace ztcp::config
