// SPDX-License-Identifier: Apache-2.0
// Copyright the ztcp authors
#include "tools/ztcp_setup/resources/reserved_ports.h"

#include <chrono>

#include <fmt/format.h>

#include "config/machine/port_set.h"
#include "config/machine/readings.h"
#include "tools/ztcp_setup/host/trust.h"

namespace ztcp::setup::resource {
namespace {

using config::kReservedPorts;
using config::parse_ports;
using config::PortSet;
using config::to_text;

constexpr std::chrono::seconds kLimit{10};

PortSet present(Host& host) {
  return parse_ports(config::read_line(host, kReservedPorts).value_or(std::string()));
}

std::string command(const PortSet& ports) {
  return fmt::format("sudo sysctl -w net.ipv4.ip_local_reserved_ports={}", to_text(ports));
}

// The kernel ignores an empty write.
Done write(Host& host, const PortSet& ports) {
  const Status written = host.write_value(kReservedPorts, to_text(ports) + "\n", kLimit);
  if (written && present(host) == ports) return {};
  if (!written)
    return tl::unexpected(problem_of(host, kReservedPorts, written.error(), command(ports)));
  return tl::unexpected(config::Problem{
      kReservedPorts,
      fmt::format("is \"{}\", wanted \"{}\"", to_text(present(host)), to_text(ports)),
      command(ports)});
}

}  // namespace

std::string ReservedPorts::id() const { return kReservedPorts; }

void ReservedPorts::check(Host& host, const Others&, config::Problems& problems) const {
  if (!host.read_value(kReservedPorts))
    problems.push_back({kReservedPorts, "does not exist: this kernel has no such setting",
                        "ls /proc/sys/net/ipv4"});
}

bool ReservedPorts::holds(Host& host) const { return (parse_ports(ports) & ~present(host)).none(); }

Read<ReservedPorts::Before> ReservedPorts::before(Host& host) const {
  return Before{to_text(present(host)), ""};
}

Preview ReservedPorts::preview(Host& host) const {
  const PortSet all = present(host) | parse_ports(ports);
  return {"", to_text(present(host)), to_text(all), command(all)};
}

Done ReservedPorts::apply(Host& host, Before& before) const {
  const PortSet wanted = parse_ports(ports);
  const PortSet of_others = present(host) & ~parse_ports(before.added);
  if (Done written = write(host, of_others | wanted); !written) return written;
  before.added = to_text(wanted & ~parse_ports(before.present));
  return {};
}

Reverted ReservedPorts::revert(Host& host, const Before& before) const {
  // Those of an interrupted run, too.
  const PortSet ours =
      (parse_ports(before.added) | parse_ports(ports)) & ~parse_ports(before.present);
  if ((present(host) & ours).none()) return {};
  return reverted(write(host, present(host) & ~ours));
}

void ReservedPorts::hold_more(Before& before) const {
  before.added =
      to_text(parse_ports(before.added) | (parse_ports(ports) & ~parse_ports(before.present)));
}

std::string ReservedPorts::restored(const Before& before) const {
  return fmt::format("reserved: {}", before.present.empty() ? "none" : before.present);
}

}  // namespace ztcp::setup::resource
