// SPDX-License-Identifier: Apache-2.0
// Copyright the ztcp authors
#include "tools/ztcp_setup/plan/lease.h"

#include <charconv>
#include <sstream>

#include <fmt/format.h>

#include "config/machine/machine.h"

namespace ztcp::setup {
namespace {

std::uint32_t seconds(std::string_view text) {
  std::uint32_t value = 0;
  std::from_chars(text.data(), text.data() + text.size(), value);
  return value;
}

// "NAME=value" lines, of systemd-networkd and NetworkManager.
std::string field(const std::string& text, const std::string& name) {
  std::istringstream lines(text);
  for (std::string line; std::getline(lines, line);)
    if (line.starts_with(name + "=")) return line.substr(name.size() + 1);
  return {};
}

std::optional<Lease> from_fields(const std::string& path, const std::string& text,
                                 const std::string& address, const char* client) {
  if (field(text, "ADDRESS") != address) return std::nullopt;
  return Lease{client, path, field(text, "SERVER_ADDRESS"), seconds(field(text, "LIFETIME"))};
}

// dhclient's blocks; the last one that names interface and address is the one that holds.
std::optional<Lease> from_dhclient(const std::string& path, const std::string& text,
                                   const std::string& interface, const std::string& address) {
  std::optional<Lease> found;
  Lease lease;
  bool ours = false;
  bool fits = false;
  std::istringstream lines(text);
  for (std::string line; std::getline(lines, line);) {
    std::istringstream words(line.substr(0, line.find(';')));
    std::string first, second, third;
    words >> first >> second >> third;
    if (first == "lease") {
      lease = {"dhclient", path, "", 0};
      ours = fits = false;
    } else if (first == "interface") {
      ours = second == "\"" + interface + "\"";
    } else if (first == "fixed-address") {
      fits = second == address;
    } else if (first == "option" && second == "dhcp-lease-time") {
      lease.lifetime_s = seconds(third);
    } else if (first == "option" && second == "dhcp-server-identifier") {
      lease.server = third;
    } else if (first == "}" && ours && fits) {
      found = lease;
    }
  }
  return found;
}

}  // namespace

std::optional<Lease> find_lease(const std::string& root, const std::string& interface,
                                std::uint32_t index, Ipv4Address address) {
  const std::string text = to_string(address);
  const std::string networkd = fmt::format("/run/systemd/netif/leases/{}", index);
  if (const auto found = config::read_text(root + networkd))
    if (auto lease = from_fields(networkd, *found, text, "systemd-networkd")) return lease;
  // internal-UUID-INTERFACE.lease
  const std::string manager = "/var/lib/NetworkManager";
  for (const std::string& name : config::list_folder(root + manager))
    if (name.ends_with("-" + interface + ".lease"))
      if (auto lease = from_fields(manager + "/" + name,
                                   config::read_text(root + manager + "/" + name).value_or(""),
                                   text, "NetworkManager"))
        return lease;
  for (const std::string folder : {"/var/lib/dhcp", "/var/lib/dhclient", "/run"})
    for (const std::string& name : config::list_folder(root + folder)) {
      if (!name.starts_with("dhclient") ||
          (!name.ends_with(".leases") && !name.ends_with(".lease")))
        continue;
      const std::string path = folder + "/" + name;
      if (auto lease =
              from_dhclient(path, config::read_text(root + path).value_or(""), interface, text))
        return lease;
    }
  // dhcpcd keeps the server's packet as it came.
  const std::string dhcpcd = fmt::format("/var/lib/dhcpcd/{}.lease", interface);
  if (config::exists(root + dhcpcd)) return Lease{"dhcpcd", dhcpcd, "", 0};
  return std::nullopt;
}

}  // namespace ztcp::setup
