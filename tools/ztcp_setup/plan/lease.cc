// SPDX-License-Identifier: Apache-2.0
// Copyright the ztcp authors
#include "tools/ztcp_setup/plan/lease.h"

#include <string_view>

#include <fmt/format.h>

#include "config/machine/readings.h"
#include "config/machine/text.h"

namespace ztcp::setup {
namespace {

std::uint32_t seconds_in(std::string_view text) {
  return static_cast<std::uint32_t>(config::leading_number(text));
}

// "NAME=value" lines of systemd-networkd and NetworkManager.
std::string field(const std::string& text, const std::string& name) {
  for (const std::string_view line : config::lines_of(text))
    if (line.starts_with(name + "=")) return std::string(line.substr(name.size() + 1));
  return {};
}

std::optional<Lease> from_fields(const std::string& path, const std::string& text,
                                 const std::string& address, const char* client) {
  if (field(text, "ADDRESS") != address) return std::nullopt;
  return Lease{client, path, field(text, "SERVER_ADDRESS"), seconds_in(field(text, "LIFETIME"))};
}

// In dhclient's file the last block that names interface and address is in effect.
std::optional<Lease> from_dhclient(const std::string& path, const std::string& text,
                                   const std::string& interface, const std::string& address) {
  std::optional<Lease> found;
  Lease lease;
  bool ours = false;
  bool fits = false;
  for (const std::string_view line : config::lines_of(text)) {
    const auto words = config::words_of(line.substr(0, line.find(';')));
    const auto word = [&](std::size_t i) { return i < words.size() ? words[i] : ""; };
    const std::string_view first = word(0);
    const std::string_view second = word(1);
    const std::string_view third = word(2);
    if (first == "lease") {
      lease = {"dhclient", path, "", 0};
      ours = fits = false;
    } else if (first == "interface") {
      ours = second == "\"" + interface + "\"";
    } else if (first == "fixed-address") {
      fits = second == address;
    } else if (first == "option" && second == "dhcp-lease-time") {
      lease.lifetime_s = seconds_in(third);
    } else if (first == "option" && second == "dhcp-server-identifier") {
      lease.server = third;
    } else if (first == "}" && ours && fits) {
      found = lease;
    }
  }
  return found;
}

}  // namespace

std::optional<Lease> find_lease(config::Machine& machine, const std::string& interface,
                                std::uint32_t index, Ipv4Address address) {
  const std::string text = to_string(address);
  const std::string networkd = fmt::format("/run/systemd/netif/leases/{}", index);
  if (const auto found = machine.read_value(networkd))
    if (auto lease = from_fields(networkd, *found, text, "systemd-networkd")) return lease;
  // Files are named internal-UUID-INTERFACE.lease.
  const std::string manager = "/var/lib/NetworkManager";
  for (const std::string& name : machine.list(manager))
    if (name.ends_with("-" + interface + ".lease"))
      if (auto lease =
              from_fields(manager + "/" + name, config::text_of(machine, manager + "/" + name),
                          text, "NetworkManager"))
        return lease;
  for (const std::string folder : {"/var/lib/dhcp", "/var/lib/dhclient", "/run"})
    for (const std::string& name : machine.list(folder)) {
      if (!name.starts_with("dhclient") ||
          (!name.ends_with(".leases") && !name.ends_with(".lease")))
        continue;
      const std::string path = folder + "/" + name;
      if (auto lease = from_dhclient(path, config::text_of(machine, path), interface, text))
        return lease;
    }
  // dhcpcd stores the server's raw packet.
  const std::string dhcpcd = fmt::format("/var/lib/dhcpcd/{}.lease", interface);
  if (config::exists(machine, dhcpcd)) return Lease{"dhcpcd", dhcpcd, "", 0};
  return std::nullopt;
}

}  // namespace ztcp::setup
