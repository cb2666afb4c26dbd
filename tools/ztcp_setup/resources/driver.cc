// SPDX-License-Identifier: Apache-2.0
// Copyright the ztcp authors
#include "tools/ztcp_setup/resources/driver.h"

#include <algorithm>
#include <chrono>

#include <fmt/format.h>

#include "tools/ztcp_setup/host/trust.h"
#include "tools/ztcp_setup/resources/interface_restore.h"
#include "tools/ztcp_setup/resources/pci_function.h"

namespace ztcp::setup::resource {
namespace {

using std::chrono::seconds;

constexpr seconds kBindLimit{60};
constexpr seconds kModprobeLimit{60};
constexpr const char* kVfio = "vfio-pci";
constexpr const char* kProbe = "/sys/bus/pci/drivers_probe";

std::string or_none(const std::string& driver) { return driver.empty() ? "none" : driver; }

std::string driver_folder(const std::string& driver) { return "/sys/bus/pci/drivers/" + driver; }

config::Problem absent(const std::string& pci) {
  return {pci, "there is no such PCI device", "lspci -D | grep -i ether"};
}

Done write(Host& host, const std::string& path, const std::string& value) {
  if (const Status written = host.write_value(path, value, kBindLimit); !written)
    return tl::unexpected(
        problem_of(host, path, written.error(),
                   fmt::format("echo {} | sudo tee {}; dmesg | tail", value, path)));
  return {};
}

// Unbinds the function from its driver, if any.
Done unbind(Host& host, const std::string& address) {
  if (pci::driver_of(host, address).empty()) return {};
  Done written = write(host, config::pci_folder(address) + "/driver/unbind", address);
  const std::string driver = pci::driver_of(host, address);
  if (driver.empty()) return {};
  if (!written) return written;
  return tl::unexpected(config::Problem{
      address, fmt::format("its driver {} did not release it", driver), "dmesg | tail"});
}

bool has_addresses(const InterfaceState& link) {
  const auto has_global = [](const InterfaceState& one) {
    return std::any_of(one.addresses.begin(), one.addresses.end(), [](const NetworkItem& item) {
      return item.command.find(" fe80:") == std::string::npos;
    });
  };
  return has_global(link) || std::any_of(link.children.begin(), link.children.end(), has_global);
}

void item_fields(Fields& fields, NetworkItem& item) {
  fields.bytes("command", item.command);
  fields.text("message", item.message);
  fields.optional_time("expires_unix_s", item.expires_unix_s);
}

void group_fields(Fields& fields, SettingGroup& group) {
  fields.text("group", group.name);
  fields.number_pairs("values", group.values);
}

void interface_fields(Fields& fields, InterfaceState& state) {
  fields.bytes("name", state.name);
  fields.text("mac", state.mac);
  fields.text("permanent_mac", state.permanent_mac);
  fields.number("mtu_bytes", state.mtu_bytes);
  fields.number("queue_length", state.queue_length);
  fields.bytes("alias", state.alias);
  fields.bytes("master", state.master);
  fields.flag("up", state.up);
  fields.text("kind", state.kind);
  fields.text("info", state.info);
  fields.records("addresses", state.addresses, item_fields);
  fields.records("neighbours", state.neighbours, item_fields);
  fields.records("routes", state.routes, item_fields);
  fields.byte_pairs("sysctls", state.sysctls);
  fields.records("settings", state.settings, group_fields, Fields::Since::kNewer);
  fields.records("children", state.children, interface_fields);
}

}  // namespace

// A group goes to a process as a whole: no other member may stay with a kernel driver.
void Driver::check_group(Host& host, const Others& others, config::Problems& problems) const {
  for (const std::string& other : host.list(config::pci_folder(pci) + "/iommu_group/devices")) {
    if (other == pci || others.taken.contains(other)) continue;
    const std::string its = pci::driver_of(host, other);
    // Bridges stay with pcieport; vfio allows that.
    const bool bridge = pci::line_of(host, other, "class").starts_with("0x0604");
    if (its.empty() || its == kVfio || its == "pci-stub" || bridge) continue;
    problems.push_back(
        {pci,
         fmt::format("shares IOMMU group {} with {}, driven by {}: vfio would refuse the group",
                     config::iommu_group(host, pci), other, its),
         "move one of the two cards to another slot, or enable ACS in the firmware"});
  }
}

std::optional<config::Problem> Driver::in_use(Host& host) const {
  if (pci::driver_of(host, pci) != kVfio) return std::nullopt;
  for (const std::string& node : pci::group_nodes(config::iommu_group(host, pci))) {
    const auto holder = host.holder_of(node);
    if (!holder) continue;
    if (holder->pid == 0)
      return config::Problem{
          pci, fmt::format("an invisible process (in another container?) has {} open", node),
          "end the job that uses it, then run this again"};
    return config::Problem{
        pci, fmt::format("process {} ({}) has {} open", holder->pid, holder->command, node),
        fmt::format("end that job (kill {}), then run this again", holder->pid)};
  }
  return std::nullopt;
}

std::optional<config::Problem> Driver::another_device(Host& host, const Before& before) const {
  const std::string mend =
      "the machine's PCI addresses have moved: sudo ztcp_setup --undo, then sudo ztcp_setup";
  if (const std::string id = pci::id_of(host, pci); id != before.id)
    return config::Problem{
        pci, fmt::format("is another device ({}) than set-up took over ({})", id, before.id), mend};
  for (const std::string& name : config::interfaces_of(host, pci)) {
    const auto link = host.link(name);
    if (!link || !*link || before.links.empty()) continue;
    const auto mac_of = [](const InterfaceState& state) {
      return state.permanent_mac.empty() ? state.mac : state.permanent_mac;
    };
    if (std::none_of(before.links.begin(), before.links.end(),
                     [&](const InterfaceState& one) { return mac_of(one) == mac_of(**link); }))
      return config::Problem{pci,
                             fmt::format("is another NIC ({}, {}) than set-up took over ({})", name,
                                         mac_of(**link), mac_of(before.links.front())),
                             mend};
  }
  return std::nullopt;
}

bool Driver::replaces(const Before& before) const {
  return std::any_of(before.links.begin(), before.links.end(), has_addresses);
}

void Driver::check(Host& host, const Others& others, config::Problems& problems) const {
  const std::string device = config::pci_folder(pci);
  if (!pci::is_there(host, pci)) {
    problems.push_back(absent(pci));
    return;
  }
  if (holds(host)) return;
  if (const std::string kind = pci::line_of(host, pci, "class"); !kind.starts_with("0x02"))
    problems.push_back(
        {pci, fmt::format("is not a network device (class {}), not changed", kind),
         fmt::format("lspci -nns {} describes it; sudo ztcp_setup searches for NICs anew", pci)});
  if (const std::string functions = pci::line_of(host, pci, "sriov_numvfs");
      !functions.empty() && functions != "0")
    problems.push_back({pci, fmt::format("has {} virtual functions, which would vanish", functions),
                        fmt::format("echo 0 | sudo tee {}/sriov_numvfs", device)});
  if (host.facts(device + "/driver_override").kind == FileKind::kAbsent)
    problems.push_back(
        {device + "/driver_override", "does not exist", "Linux 3.16 or newer is needed"});
  if (!others.load_module && host.facts(driver_folder(driver)).kind == FileKind::kAbsent)
    problems.push_back({pci, fmt::format("the driver {} is not loaded", driver),
                        fmt::format("sudo modprobe {}", driver)});
  for (const std::string& name : config::interfaces_of(host, pci)) {
    const auto link = host.link(name);
    if (!link) problems.push_back(problem_of(host, name, link.error(), "ip address show"));
  }
  if (driver == kVfio) check_group(host, others, problems);
  if (auto problem = in_use(host)) problems.push_back(std::move(*problem));
}

bool Driver::holds(Host& host) const {
  return pci::driver_of(host, pci) == driver && pci::override_of(host, pci) == driver;
}

Read<Driver::Before> Driver::before(Host& host) const {
  Before before{pci::id_of(host, pci), pci::driver_of(host, pci), pci::override_of(host, pci), {}};
  for (const std::string& name : config::interfaces_of(host, pci)) {
    auto link = host.link(name);
    if (!link) return tl::unexpected(problem_of(host, name, link.error(), "ip address show"));
    if (!*link) continue;
    auto settings = host.settings(name);
    if (!settings)
      return tl::unexpected(
          problem_of(host, name, settings.error(), fmt::format("ethtool -g {}", name)));
    (*link)->settings = std::move(*settings);
    before.links.push_back(std::move(**link));
  }
  return before;
}

Preview Driver::preview(Host& host) const {
  const std::string device = config::pci_folder(pci);
  const std::string have = pci::driver_of(host, pci);
  std::string command;
  for (const std::string& name : config::interfaces_of(host, pci))
    command += fmt::format("ip link set dev {} down; ", name);
  command += fmt::format("echo {} > {}/driver_override", driver, device);
  if (have == driver) return {"", have + ", not by driver_override", driver, command};
  if (!have.empty()) command += fmt::format("; echo {} > {}/driver/unbind", pci, device);
  command += fmt::format("; echo {} > {}", pci, kProbe);
  return {"", have.empty() ? "no driver" : have, driver, command};
}

Done Driver::apply(Host& host, Before& before) const {
  if (!pci::is_there(host, pci)) return tl::unexpected(absent(pci));
  if (auto problem = another_device(host, before)) return tl::unexpected(std::move(*problem));
  // Down first: queues stop and routes are removed before the driver goes.
  for (const std::string& name : config::interfaces_of(host, pci)) {
    const auto link = host.link(name);
    if (!link || !*link || !(*link)->up) continue;
    if (const Status down = host.set_up(name, false); !down)
      return tl::unexpected(
          problem_of(host, name, down.error(), fmt::format("sudo ip link set dev {} down", name)));
  }
  if (pci::override_of(host, pci) != driver)
    if (Done written = write(host, config::pci_folder(pci) + "/driver_override", driver); !written)
      return written;
  if (pci::driver_of(host, pci) != driver) {
    if (Done let_go = unbind(host, pci); !let_go) return let_go;
    if (Done probed = write(host, kProbe, pci); !probed && !holds(host)) return probed;
  }
  if (holds(host)) return {};
  return tl::unexpected(config::Problem{
      pci, fmt::format("its driver is {}, wanted {}", or_none(pci::driver_of(host, pci)), driver),
      "dmesg | tail"});
}

std::string Driver::restored(const Before& before) const {
  std::string text = before.driver.empty() ? std::string("it has no driver again")
                                           : fmt::format("it goes back to {}", before.driver);
  for (const InterfaceState& link : before.links)
    text += fmt::format(", {} with {} addresses and {} routes", link.name, link.addresses.size(),
                        link.routes.size());
  return text;
}

Reverted Driver::revert(Host& host, const Before& before) const {
  if (!pci::is_there(host, pci))
    return {{}, {{pci, "is no longer in this machine: nothing to restore", ""}}};
  if (const std::string id = pci::id_of(host, pci); id != before.id)
    return {{},
            {{pci,
              fmt::format("is another device ({}) than set-up took over ({}): not changed", id,
                          before.id),
              ""}}};
  // After cloning a disk image or replacing a NIC: name, MAC and addresses belong to another NIC.
  if (pci::driver_of(host, pci) == before.driver)
    if (const auto other = another_device(host, before))
      return {{}, {{pci, other->what + ": not changed", ""}}};
  Reverted reverted = revert_driver(host, before);
  if (reverted.faults.empty()) restore_interfaces(host, pci, before.links, reverted);
  return reverted;
}

Reverted Driver::revert_driver(Host& host, const Before& before) const {
  if (pci::driver_of(host, pci) != before.driver)
    if (auto busy = in_use(host)) return {{std::move(*busy)}, {}};
  if (pci::override_of(host, pci) != before.driver_override)
    // An empty line clears it.
    if (Done written = write(host, config::pci_folder(pci) + "/driver_override",
                             before.driver_override.empty() ? "\n" : before.driver_override);
        !written)
      return reverted(written);
  if (pci::driver_of(host, pci) != before.driver) {
    if (Done let_go = unbind(host, pci); !let_go) return reverted(let_go);
    if (!before.driver.empty()) {
      if (host.facts(driver_folder(before.driver)).kind == FileKind::kAbsent)
        static_cast<void>(host.run({"modprobe", before.driver}, kModprobeLimit));
      static_cast<void>(write(host, kProbe, pci));
      if (pci::driver_of(host, pci).empty())
        static_cast<void>(write(host, driver_folder(before.driver) + "/bind", pci));
    }
  }
  const std::string now = pci::driver_of(host, pci);
  if (now == before.driver) return {};
  return {
      {{pci, fmt::format("its driver is {}, wanted {} again", or_none(now), or_none(before.driver)),
        fmt::format("sudo modprobe {0}; echo {1} | sudo tee /sys/bus/pci/drivers/{0}/bind",
                    before.driver, pci)}},
      {}};
}

void Driver::fields(Fields& fields) {
  fields.text("pci", pci);
  fields.text("driver", driver);
}

void Driver::Before::fields(Fields& fields) {
  fields.text("id", id);
  fields.text("driver", driver);
  fields.text("driver_override", driver_override);
  fields.records("links", links, interface_fields);
}

}  // namespace ztcp::setup::resource
