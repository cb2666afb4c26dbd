// SPDX-License-Identifier: Apache-2.0
// Copyright the ztcp authors
#include "tools/ztcp_setup/resources/interface_restore.h"

#include <algorithm>
#include <cstring>
#include <iterator>
#include <set>

#include <fmt/format.h>

#include "tools/ztcp_setup/resources/pci_function.h"

namespace ztcp::setup {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;

// Firmware and links of large NICs need seconds; udev renames within moments.
constexpr milliseconds kStep{50};
constexpr int kStepsForInterface = 400;
constexpr int kStepsForName = 60;
// Network managers (systemd-networkd, NetworkManager) notice the returning interface, too, and may
// remove addresses between two steps: missing ones are added again.
constexpr int kRounds = 10;
constexpr milliseconds kRoundPause{500};
// A lease is requested once the carrier is up; DHCP repeats its first request after 4 s, then after
// 8 (RFC 2131 section 4.1).
constexpr milliseconds kLeaseStep{250};
constexpr int kStepsForLease = 80;
constexpr int kStepsForManager = 8;

class Restorer {
 public:
  // Waits at most `steps_left` steps for all leases together.
  Restorer(Host& host, Reverted& reverted, int& steps_left)
      : host_(host), reverted_(reverted), steps_left_(steps_left) {}

  void restore(const InterfaceState& wanted) {
    const auto now = host_.link(wanted.name);
    if (!now || !*now) {
      fault(wanted.name, "did not come back", "ip link");
      return;
    }
    if ((*now)->mac != wanted.mac || (*now)->mtu_bytes != wanted.mtu_bytes ||
        (*now)->queue_length != wanted.queue_length || (*now)->alias != wanted.alias)
      expect(host_.set_link(wanted.name, wanted), wanted.name,
             fmt::format("sudo ip link set dev {} address {} mtu {} txqueuelen {}", wanted.name,
                         wanted.mac, wanted.mtu_bytes, wanted.queue_length));
    restore_sysctls(wanted);
    if ((*now)->master != wanted.master && !wanted.master.empty())
      expect(host_.set_master(wanted.name, wanted.master), wanted.name,
             fmt::format("sudo ip link set dev {} master {}", wanted.name, wanted.master));
    if ((*now)->up != wanted.up)
      expect(host_.set_up(wanted.name, wanted.up), wanted.name,
             fmt::format("sudo ip link set dev {} {}", wanted.name, wanted.up ? "up" : "down"));
    for (const InterfaceState& child : wanted.children) restore_child(wanted.name, child);
    await_lease(wanted);
    add(wanted, wanted.addresses);
    add(wanted, wanted.neighbours);
  }

  // After all addresses: a route names its source and leads through neighbours.
  void restore_routes(const InterfaceState& wanted) {
    add(wanted, wanted.routes);
    for (const InterfaceState& child : wanted.children)
      if (!strangers_.contains(child.name)) restore_routes(child);
  }

 private:
  void restore_child(const std::string& parent, const InterfaceState& child) {
    const auto there = host_.link(child.name);
    if (there && !*there)
      expect(
          host_.add_child(parent, child), child.name,
          fmt::format("sudo ip link add link {} name {} type {}", parent, child.name, child.kind));
    if (there && *there && !has_child(parent, child)) {
      strangers_.insert(child.name);
      return fault(child.name,
                   fmt::format("is another interface than the {} that {} had, not changed",
                               child.kind, parent),
                   fmt::format("sudo ip link set dev {} name NAME, then sudo ztcp_setup --undo",
                               child.name));
    }
    restore(child);
  }

  bool has_child(const std::string& parent, const InterfaceState& child) {
    const auto now = host_.link(parent);
    return now && *now &&
           std::any_of((*now)->children.begin(), (*now)->children.end(),
                       [&](const InterfaceState& one) {
                         return one.name == child.name && is_same_child(one, child);
                       });
  }

  void restore_sysctls(const InterfaceState& wanted) {
    for (const auto& [path, value] : wanted.sysctls)
      if (host_.read_value(path) != value)
        expect(host_.write_value(path, value, seconds{10}), path,
               fmt::format("echo {} | sudo tee {}", value.substr(0, value.find('\n')), path));
  }

  // A running DHCP client adopts an address that it finds, but without its metric, and renews only
  // addresses it obtained itself. So the client goes first.
  void await_lease(const InterfaceState& wanted) {
    const auto leased = [](const NetworkItem& item) { return item.expires_unix_s != 0; };
    if (std::none_of(wanted.addresses.begin(), wanted.addresses.end(), leased)) return;
    for (int step = 0; steps_left_ > 0; --steps_left_, ++step) {
      const auto now = host_.link(wanted.name);
      const auto there = [&](const NetworkItem& item) {
        return !leased(item) || (now && *now && contains(**now, item));
      };
      if (!has_manager(wanted.name, step < kStepsForManager) ||
          std::all_of(wanted.addresses.begin(), wanted.addresses.end(), there))
        return;
      host_.pause(kLeaseStep);
    }
  }

  // systemd-networkd and NetworkManager configure a returning interface by themselves, once they
  // have noticed it.
  bool has_manager(const std::string& name, bool is_new) {
    const auto index = host_.read_value(fmt::format("/sys/class/net/{}/ifindex", name));
    if (!index) return false;
    const std::string number = index->substr(0, index->find('\n'));
    const auto networkd = host_.read_value("/run/systemd/netif/links/" + number);
    const auto manager = host_.read_value("/run/NetworkManager/devices/" + number);
    if (!networkd && !manager)
      return is_new && (host_.read_value("/run/systemd/netif/state") ||
                        !host_.list("/run/NetworkManager/devices").empty());
    return (networkd && networkd->find("ADMIN_STATE=unmanaged") == std::string::npos) ||
           (manager && manager->find("managed=true") != std::string::npos);
  }

  void add(const InterfaceState& link, const std::vector<NetworkItem>& items) {
    const auto now = host_.link(link.name);
    for (const NetworkItem& item : items) {
      if (now && *now && contains(**now, item)) continue;
      expect(host_.add_item(link.name, item), link.name, "sudo " + item.command);
      if (item.expires_unix_s != 0)
        reverted_.notes.push_back(
            {link.name, fmt::format("has a lease back ({})", item.command),
             fmt::format("have the interface's manager renew it: networkctl renew {0}, "
                         "nmcli device reapply {0} or dhclient {0}",
                         link.name)});
    }
  }

  static bool contains(const InterfaceState& link, const NetworkItem& item) {
    const auto in = [&](const std::vector<NetworkItem>& items) {
      return std::any_of(items.begin(), items.end(),
                         [&](const NetworkItem& one) { return one.command == item.command; });
    };
    return in(link.addresses) || in(link.neighbours) || in(link.routes);
  }

  void expect(const Status& status, const std::string& where, std::string mend) {
    if (status) return;
    fault(where,
          fmt::format("{}: {}", status.error().where,
                      status.error().sys_errno != 0 ? std::strerror(status.error().sys_errno)
                                                    : describe(status.error().code)),
          std::move(mend));
  }
  void fault(std::string where, std::string what, std::string mend) {
    reverted_.faults.push_back({std::move(where), std::move(what), std::move(mend)});
  }

  Host& host_;
  Reverted& reverted_;
  std::set<std::string> strangers_;  // Other interfaces with names of ours.
  int& steps_left_;
};

bool all_named(const std::vector<std::string>& names, const std::vector<InterfaceState>& links) {
  return std::all_of(links.begin(), links.end(), [&](const InterfaceState& link) {
    return std::find(names.begin(), names.end(), link.name) != names.end();
  });
}

// Restores the kernel's names where nothing else renames them: by MAC, else the only one left.
void name_as_before(Host& host, const std::string& address,
                    const std::vector<InterfaceState>& links) {
  for (const InterfaceState& link : links) {
    std::vector<std::string> names = config::interfaces_of(host, address);
    if (std::find(names.begin(), names.end(), link.name) != names.end()) continue;
    std::erase_if(names, [&](const std::string& name) {
      return std::any_of(links.begin(), links.end(),
                         [&](const InterfaceState& other) { return other.name == name; });
    });
    std::string chosen = names.size() == 1 ? names.front() : "";
    for (const std::string& name : names) {
      const auto now = host.link(name);
      if (now && *now &&
          ((*now)->mac == link.mac ||
           (!link.permanent_mac.empty() && (*now)->permanent_mac == link.permanent_mac)))
        chosen = name;
    }
    if (chosen.empty()) continue;
    // An interface that is up cannot be renamed on older kernels.
    static_cast<void>(host.set_up(chosen, false));
    static_cast<void>(host.rename_link(chosen, link.name));
  }
}

}  // namespace

void restore_interfaces(Host& host, const std::string& address,
                        const std::vector<InterfaceState>& links, Reverted& reverted) {
  if (links.empty()) return;
  for (int i = 0;
       i < kStepsForInterface && config::interfaces_of(host, address).size() < links.size(); ++i)
    host.pause(kStep);
  for (int i = 0; i < kStepsForName && !all_named(config::interfaces_of(host, address), links); ++i)
    host.pause(kStep);
  if (!all_named(config::interfaces_of(host, address), links)) name_as_before(host, address, links);
  // An interface of that name may belong to another NIC.
  const std::vector<std::string> names = config::interfaces_of(host, address);
  std::vector<InterfaceState> found;
  for (const InterfaceState& link : links) {
    if (std::find(names.begin(), names.end(), link.name) != names.end())
      found.push_back(link);
    else
      reverted.faults.push_back(
          {address,
           fmt::format("its interface {} did not come back under that name; it has: {}", link.name,
                       names.empty() ? "none" : fmt::format("{}", fmt::join(names, ", "))),
           fmt::format("sudo ip link set dev NAME name {}, then sudo ztcp_setup --undo",
                       link.name)});
  }
  // Once, before addresses: each setting may reset the NIC.
  for (const InterfaceState& link : found) restore_settings(host, link, reverted);
  Reverted round;
  int steps_left = kStepsForLease;
  for (int i = 0; i < kRounds; ++i) {
    if (i > 0) host.pause(kRoundPause);
    round.faults.clear();
    Restorer restorer(host, round, steps_left);
    for (const InterfaceState& link : found) restorer.restore(link);
    for (const InterfaceState& link : found) restorer.restore_routes(link);
    if (round.faults.empty()) break;
  }
  std::move(round.faults.begin(), round.faults.end(), std::back_inserter(reverted.faults));
  std::move(round.notes.begin(), round.notes.end(), std::back_inserter(reverted.notes));
}

}  // namespace ztcp::setup
