// SPDX-License-Identifier: Apache-2.0
// Copyright the ztcp authors
//
// NICs from one driver to another, as the kernel wants it: driver_override names the driver that
// may have the function, then it is unbound and probed anew. Nothing here believes a write that
// succeeded; it looks at the driver link.
#include <algorithm>

#include <fmt/format.h>

#include "tools/ztcp_setup/host/trust.h"
#include "tools/ztcp_setup/resources/hands.h"
#include "tools/ztcp_setup/resources/link_restore.h"

namespace ztcp::setup {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;

constexpr seconds kBindLimit{60};
constexpr seconds kModuleLimit{60};
constexpr const char* kVfio = "vfio-pci";

std::string device_path(const std::string& pci) { return "/sys/bus/pci/devices/" + pci; }

std::string last_part(const std::string& path) { return path.substr(path.rfind('/') + 1); }

std::string line_of(Host& host, const std::string& path) {
  std::string text = host.read_value(path).value_or("");
  return text.substr(0, text.find('\n'));
}

std::string driver_of(Host& host, const std::string& pci) {
  return last_part(host.link_target(device_path(pci) + "/driver").value_or(""));
}

std::string override_of(Host& host, const std::string& pci) {
  std::string name = line_of(host, device_path(pci) + "/driver_override");
  return name == "(null)" ? "" : name;
}

bool is_there(Host& host, const std::string& pci) {
  return host.facts(device_path(pci)).kind != FileKind::kAbsent;
}

// "1af4:1041"
std::string id_of(Host& host, const std::string& pci) {
  const auto part = [&](const char* name) {
    std::string text = line_of(host, device_path(pci) + "/" + name);
    return text.starts_with("0x") ? text.substr(2) : text;
  };
  return part("vendor") + ":" + part("device");
}

std::string vfio_group(Host& host, const std::string& pci) {
  return last_part(host.link_target(device_path(pci) + "/iommu_group").value_or(""));
}

config::Problem absent(const std::string& pci) {
  return {pci, "there is no such PCI device", "lspci -D | grep -i ether"};
}

// A group is given to a process whole: nothing in it may stay with a kernel driver.
void check_group(Host& host, const wish::Driver& wish, const Earlier& earlier,
                 config::Problems& problems) {
  const std::string folder = device_path(wish.pci) + "/iommu_group/devices";
  for (const std::string& other : host.list(folder)) {
    if (other == wish.pci) continue;
    const std::string driver = driver_of(host, other);
    // Bridges stay with pcieport; vfio knows that.
    const bool bridge = line_of(host, device_path(other) + "/class").starts_with("0x0604");
    const bool ours =
        std::any_of(earlier.wishes->begin(), earlier.wishes->end(), [&](const Wish& one) {
          const auto* driver_wish = std::get_if<wish::Driver>(&one.what);
          return driver_wish != nullptr && driver_wish->pci == other;
        });
    if (driver.empty() || driver == kVfio || driver == "pci-stub" || bridge || ours) continue;
    problems.push_back(
        {wish.pci,
         fmt::format("shares IOMMU group {} with {}, which {} drives: vfio would refuse the group",
                     vfio_group(host, wish.pci), other, driver),
         "move one of the two cards to another slot, or enable ACS in the firmware"});
  }
}

Done write(Host& host, const std::string& path, const std::string& value) {
  if (const Status written = host.write_value(path, value, kBindLimit); !written)
    return tl::unexpected(
        problem_of(host, path, written.error(),
                   fmt::format("echo {} | sudo tee {}; dmesg | tail", value, path)));
  return {};
}

// Lets go of the function, whoever has it.
Done unbind(Host& host, const std::string& pci) {
  if (driver_of(host, pci).empty()) return {};
  Done written = write(host, device_path(pci) + "/driver/unbind", pci);
  if (driver_of(host, pci).empty()) return {};
  if (!written) return written;
  return tl::unexpected(config::Problem{
      pci, fmt::format("its driver {} did not let it go", driver_of(host, pci)), "dmesg | tail"});
}

Restored holding(Host& host, const std::string& pci) {
  Restored restored;
  if (auto problem = held(host, pci)) restored.faults.push_back(std::move(*problem));
  return restored;
}

}  // namespace

std::optional<config::Problem> held(Host& host, const std::string& pci) {
  if (driver_of(host, pci) != kVfio) return std::nullopt;
  const std::string group = vfio_group(host, pci);
  if (group.empty()) return std::nullopt;
  for (const char* prefix : {"/dev/vfio/", "/dev/vfio/noiommu-"}) {
    const auto holder = host.holder_of(prefix + group);
    if (!holder) continue;
    if (holder->pid == 0)
      return config::Problem{pci,
                             fmt::format("a process that can't be seen from here (another "
                                         "container?) holds {}{}",
                                         prefix, group),
                             "end the job that uses it, then run this again"};
    return config::Problem{
        pci, fmt::format("process {} ({}) holds {}{}", holder->pid, holder->command, prefix, group),
        fmt::format("end that job (kill {}), then run this again", holder->pid)};
  }
  return std::nullopt;
}

std::optional<config::Problem> another_device(Host& host, const wish::Driver& wish,
                                              const before::Driver& before) {
  const std::string mend =
      "the machine's PCI addresses have moved: sudo ztcp_setup --undo, then sudo ztcp_setup";
  if (const std::string id = id_of(host, wish.pci); id != before.id)
    return config::Problem{
        wish.pci, fmt::format("is another device ({}) than set-up took over ({})", id, before.id),
        mend};
  for (const std::string& name : interfaces_of(host, wish.pci)) {
    const auto link = host.link(name);
    if (!link || !*link || before.links.empty()) continue;
    const auto mac_of = [](const LinkState& state) {
      return state.permanent_mac.empty() ? state.mac : state.permanent_mac;
    };
    if (std::none_of(before.links.begin(), before.links.end(),
                     [&](const LinkState& one) { return mac_of(one) == mac_of(**link); }))
      return config::Problem{wish.pci,
                             fmt::format("is another NIC ({}, {}) than set-up took over ({})", name,
                                         mac_of(**link), mac_of(before.links.front())),
                             mend};
  }
  return std::nullopt;
}

bool has_addresses(const before::Driver& before) {
  return std::any_of(before.links.begin(), before.links.end(), [](const LinkState& link) {
    const auto global = [](const LinkState& one) {
      return std::any_of(one.addresses.begin(), one.addresses.end(), [](const NetworkItem& item) {
        return item.command.find(" fe80:") == std::string::npos;
      });
    };
    return global(link) || std::any_of(link.children.begin(), link.children.end(), global);
  });
}

void check(Host& host, const wish::Driver& wish, const Earlier& earlier,
           config::Problems& problems) {
  const std::string device = device_path(wish.pci);
  if (!is_there(host, wish.pci)) {
    problems.push_back(absent(wish.pci));
    return;
  }
  if (holds(host, wish)) return;
  if (const std::string kind = line_of(host, device + "/class"); !kind.starts_with("0x02"))
    problems.push_back(
        {wish.pci, fmt::format("is no network device (class {}), and is left alone", kind),
         fmt::format("lspci -nns {} shows what it is; sudo ztcp_setup looks for NICs anew",
                     wish.pci)});
  if (const std::string functions = line_of(host, device + "/sriov_numvfs");
      !functions.empty() && functions != "0")
    problems.push_back({wish.pci,
                        fmt::format("has {} virtual functions, which would vanish", functions),
                        fmt::format("echo 0 | sudo tee {}/sriov_numvfs", device)});
  if (host.facts(device + "/driver_override").kind == FileKind::kAbsent)
    problems.push_back({device + "/driver_override", "is not there", "wants Linux 3.16 or newer"});
  if (!has_module(earlier) &&
      host.facts("/sys/bus/pci/drivers/" + wish.driver).kind == FileKind::kAbsent)
    problems.push_back({wish.pci, fmt::format("the driver {} is not loaded", wish.driver),
                        fmt::format("sudo modprobe {}", wish.driver)});
  for (const std::string& name : interfaces_of(host, wish.pci)) {
    const auto link = host.link(name);
    if (!link) problems.push_back(problem_of(host, name, link.error(), "ip address show"));
  }
  if (wish.driver == kVfio) check_group(host, wish, earlier, problems);
  if (auto problem = held(host, wish.pci)) problems.push_back(std::move(*problem));
}

bool holds(Host& host, const wish::Driver& wish) {
  return driver_of(host, wish.pci) == wish.driver && override_of(host, wish.pci) == wish.driver;
}

Read<before::Driver> record(Host& host, const wish::Driver& wish) {
  before::Driver before{
      id_of(host, wish.pci), driver_of(host, wish.pci), override_of(host, wish.pci), {}};
  for (const std::string& name : interfaces_of(host, wish.pci)) {
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

Done carry_out(Host& host, const wish::Driver& wish, before::Driver& before) {
  if (!is_there(host, wish.pci)) return tl::unexpected(absent(wish.pci));
  if (auto problem = another_device(host, wish, before)) return tl::unexpected(std::move(*problem));
  // Down first: its queues are still and its routes gone before its driver goes.
  for (const std::string& name : interfaces_of(host, wish.pci)) {
    const auto link = host.link(name);
    if (!link || !*link || !(*link)->up) continue;
    if (const Status down = host.set_up(name, false); !down)
      return tl::unexpected(
          problem_of(host, name, down.error(), fmt::format("sudo ip link set dev {} down", name)));
  }
  if (override_of(host, wish.pci) != wish.driver)
    if (Done written = write(host, device_path(wish.pci) + "/driver_override", wish.driver);
        !written)
      return written;
  if (driver_of(host, wish.pci) != wish.driver) {
    if (Done let_go = unbind(host, wish.pci); !let_go) return let_go;
    if (Done probed = write(host, "/sys/bus/pci/drivers_probe", wish.pci);
        !probed && !holds(host, wish))
      return probed;
  }
  if (holds(host, wish)) return {};
  const std::string now = driver_of(host, wish.pci);
  return tl::unexpected(config::Problem{
      wish.pci, fmt::format("its driver is {}, wanted {}", now.empty() ? "none" : now, wish.driver),
      "dmesg | tail"});
}

Restored restore(Host& host, const wish::Driver& wish, const before::Driver& before) {
  const std::string& pci = wish.pci;
  if (!is_there(host, pci))
    return {{}, {{pci, "is no longer in this machine: nothing to give back", ""}}};
  if (id_of(host, pci) != before.id)
    return {{},
            {{pci,
              fmt::format("is another device ({}) than set-up took over ({}): left alone",
                          id_of(host, pci), before.id),
              ""}}};
  // A cloned disk image or a NIC attached in its place: name, MAC and addresses are not for it.
  if (driver_of(host, pci) == before.driver)
    if (const auto other = another_device(host, wish, before))
      return {{}, {{pci, other->what + ": left alone", ""}}};
  const auto faulty = [](const Done& done) { return Restored{{done.error()}, {}}; };
  if (driver_of(host, pci) != before.driver)
    if (Restored busy = holding(host, pci); !busy.faults.empty()) return busy;
  if (override_of(host, pci) != before.driver_override)
    // An empty line clears it.
    if (Done written = write(host, device_path(pci) + "/driver_override",
                             before.driver_override.empty() ? "\n" : before.driver_override);
        !written)
      return faulty(written);
  if (driver_of(host, pci) != before.driver) {
    if (Done let_go = unbind(host, pci); !let_go) return faulty(let_go);
    if (!before.driver.empty()) {
      const std::string driver = "/sys/bus/pci/drivers/" + before.driver;
      if (host.facts(driver).kind == FileKind::kAbsent)
        static_cast<void>(host.run({"modprobe", before.driver}, kModuleLimit));
      static_cast<void>(write(host, "/sys/bus/pci/drivers_probe", pci));
      if (driver_of(host, pci).empty()) static_cast<void>(write(host, driver + "/bind", pci));
    }
  }
  if (const std::string now = driver_of(host, pci); now != before.driver)
    return {{{pci,
              fmt::format("its driver is {}, wanted {} again", now.empty() ? "none" : now,
                          before.driver.empty() ? "none" : before.driver),
              fmt::format("sudo modprobe {0}; echo {1} | sudo tee /sys/bus/pci/drivers/{0}/bind",
                          before.driver, pci)}},
            {}};
  Restored restored;
  put_back_links(host, pci, before.links, restored);
  return restored;
}

}  // namespace ztcp::setup
