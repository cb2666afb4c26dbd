// SPDX-License-Identifier: Apache-2.0
// Copyright the ztcp authors
#include "tools/ztcp_setup/run/change.h"

#include <algorithm>

#include <fmt/format.h>

#include "config/machine/mounts.h"
#include "config/machine/readings.h"
#include "config/machine/text.h"
#include "tools/ztcp_setup/plan/boot_line.h"
#include "transport/core/shell_word.h"

namespace ztcp::setup {
namespace {

std::string or_root(const std::string& name) { return name.empty() ? "root" : name; }

// "0660 root:ztcp"
std::string standing(std::uint32_t mode, const std::string& user, const std::string& group) {
  return fmt::format("{:04o} {}:{}", mode, or_root(user), or_root(group));
}

std::string have_of(Host& host, const std::string& path) {
  const FileFacts found = host.facts_behind(path);
  const Ownership& who = found.ownership;
  return found.kind == FileKind::kAbsent
             ? std::string()
             : standing(who.mode, host.user_name(who.user), host.group_name(who.group));
}

std::string none_if_empty(std::string text) { return text.empty() ? "none" : std::move(text); }

class Comparer {
 public:
  explicit Comparer(Host& host) : host_(host) {}

  std::optional<Change> operator()(const resource::File& file) const {
    const auto text = host_.read_value(file.path);
    const std::string want = standing(file.mode, "", file.group);
    const std::string have = have_of(host_, file.path);
    if (text == file.text && have == want) return std::nullopt;
    if (text == file.text)
      return Change{"", have, want,
                    fmt::format("chown root:{} {}; chmod {:04o} {}", or_root(file.group),
                                shell_word(file.path), file.mode, shell_word(file.path))};
    return Change{"", text.value_or(""), file.text,
                  fmt::format("install -D -m {:04o} -g {} /dev/stdin {}", file.mode,
                              or_root(file.group), shell_word(file.path)),
                  true};
  }

  std::optional<Change> operator()(const resource::Folder& folder) const {
    const std::string want = standing(folder.mode, folder.user, folder.group);
    const std::string have = have_of(host_, folder.path);
    if (have == want) return std::nullopt;
    return Change{
        "", none_if_empty(have), want,
        fmt::format("install -d -m {:04o} -o {} -g {} {}", folder.mode, or_root(folder.user),
                    or_root(folder.group), shell_word(folder.path))};
  }

  std::optional<Change> operator()(const resource::Value& value) const {
    const auto have = config::read_line(host_, value.path);
    if (have == value.value) return std::nullopt;
    if (value.at_least && have &&
        config::leading_number(*have) >= config::leading_number(value.value))
      return std::nullopt;
    return Change{"", have.value_or("none"), value.value,
                  fmt::format("echo {} > {}", value.value, value.path)};
  }

  std::optional<Change> operator()(const resource::Module& module) const {
    std::string folder = module.name;
    std::replace(folder.begin(), folder.end(), '-', '_');
    if (config::exists(host_, "/sys/module/" + folder) ||
        config::exists(host_, "/sys/bus/pci/drivers/" + module.name))
      return std::nullopt;
    return Change{"", "not loaded", "loaded", "modprobe " + module.name};
  }

  std::optional<Change> operator()(const resource::Mount& mount) const {
    const auto mounts = config::mounts_of(host_);
    if (std::any_of(mounts.begin(), mounts.end(), [&](const config::Mount& one) {
          return one.folder == mount.path && one.type == mount.type;
        }))
      return std::nullopt;
    return Change{"", "not mounted", fmt::format("{} {}", mount.type, mount.options),
                  fmt::format("mkdir -p {}; mount -t {} -o {} none {}", mount.path, mount.type,
                              mount.options, mount.path)};
  }

  std::optional<Change> operator()(const resource::Driver& driver) const {
    const std::string device = "/sys/bus/pci/devices/" + driver.pci;
    const std::string have = config::link_name(host_, device + "/driver").value_or("");
    if (have == driver.driver) return std::nullopt;
    std::string command;
    for (const std::string& interface : config::interfaces_of(host_, driver.pci))
      command += fmt::format("ip link set dev {} down; ", interface);
    command += fmt::format("echo {} > {}/driver_override; ", driver.driver, device);
    if (!have.empty()) command += fmt::format("echo {} > {}/driver/unbind; ", driver.pci, device);
    command += fmt::format("echo {} > /sys/bus/pci/drivers_probe", driver.pci);
    return Change{"", have.empty() ? "no driver" : have, driver.driver, command};
  }

  std::optional<Change> operator()(const resource::Access& access) const {
    const auto number =
        config::link_name(host_, "/sys/bus/pci/devices/" + access.pci + "/iommu_group");
    const std::string want = standing(access.mode, access.user, access.group);
    std::string node = "/dev/vfio/GROUP";
    std::string have;
    if (number) {
      node = "/dev/vfio/" + *number;
      if (config::exists(host_, "/dev/vfio/noiommu-" + *number))
        node = "/dev/vfio/noiommu-" + *number;
      have = have_of(host_, node);
      if (have == want) return std::nullopt;
    }
    return Change{"", none_if_empty(have), want,
                  fmt::format("chown {}:{} {}; chmod {:04o} {}", or_root(access.user),
                              or_root(access.group), node, access.mode, node)};
  }

  std::optional<Change> operator()(const resource::Unit& unit) const {
    for (const char* folder : {"/etc/systemd/system", "/usr/lib/systemd/system"})
      for (const std::string& name : host_.list(folder))
        if (name.ends_with(".wants") || name.ends_with(".requires"))
          if (config::link_name(host_, fmt::format("{}/{}/{}", folder, name, unit.name)))
            return std::nullopt;
    return Change{"", "disabled", "enabled", "systemctl enable " + unit.name};
  }

  std::optional<Change> operator()(const resource::BootArguments& boot) const {
    if (boot_entries_have(host_, boot.arguments)) return std::nullopt;
    const std::string arguments = fmt::format("{}", fmt::join(boot.arguments, " "));
    return Change{"", "without", arguments,
                  fmt::format("grubby --update-kernel=ALL --args=\"{}\"", arguments)};
  }

  std::optional<Change> operator()(const resource::Notice& notice) const {
    return Change{"", "", "", fmt::format("{}", fmt::join(notice.argv, " "))};
  }

 private:
  Host& host_;
};

}  // namespace

std::vector<Change> changes_of(const Resources& wishes, Host& host) {
  std::vector<Change> changes;
  // Notices in a row speak of the same wishes before them.
  bool changed = false;
  bool after_notice = false;
  for (const Resource& wish : wishes) {
    const bool notice = std::holds_alternative<resource::Notice>(wish.what);
    if (!notice && after_notice) changed = false;
    after_notice = notice;
    auto change = std::visit(Comparer(host), wish.what);
    if (!change || (notice && !changed)) continue;
    changed = true;
    change->what = wish.why;
    changes.push_back(std::move(*change));
  }
  return changes;
}

}  // namespace ztcp::setup
