// SPDX-License-Identifier: Apache-2.0
// Copyright the ztcp authors
#include "tools/ztcp_setup/run/change.h"

#include <algorithm>
#include <charconv>
#include <sstream>

#include <fmt/format.h>

#include "config/machine/machine.h"
#include "tools/ztcp_setup/host/accounts.h"
#include "tools/ztcp_setup/plan/boot_line.h"
#include "transport/core/shell_word.h"

namespace ztcp::setup {
namespace {

std::string or_root(const std::string& name) { return name.empty() ? "root" : name; }

std::string have_of(const std::string& root, const std::string& path) {
  const auto found = standing_of(root, path);
  return found ? to_string(*found) : std::string();
}

std::string standing(std::uint32_t mode, const std::string& user, const std::string& group) {
  return to_string(Standing{mode, or_root(user), or_root(group)});
}

std::string none_if_empty(std::string text) { return text.empty() ? "none" : std::move(text); }

class Comparer {
 public:
  explicit Comparer(const std::string& root) : root_(root) {}

  std::optional<Change> operator()(const resource::File& file) const {
    const std::string path = root_ + file.path;
    const auto text = config::read_text(path);
    const std::string want = standing(file.mode, "", file.group);
    const std::string have = have_of(root_, file.path);
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
    const std::string have = have_of(root_, folder.path);
    if (have == want) return std::nullopt;
    return Change{
        "", none_if_empty(have), want,
        fmt::format("install -d -m {:04o} -o {} -g {} {}", folder.mode, or_root(folder.user),
                    or_root(folder.group), shell_word(folder.path))};
  }

  std::optional<Change> operator()(const resource::Value& value) const {
    const auto have = config::read_line(root_ + value.path);
    if (have == value.value) return std::nullopt;
    if (value.at_least && have && number_of(*have) >= number_of(value.value)) return std::nullopt;
    return Change{"", have.value_or("none"), value.value,
                  fmt::format("echo {} > {}", value.value, value.path)};
  }

  std::optional<Change> operator()(const resource::Module& module) const {
    std::string folder = module.name;
    std::replace(folder.begin(), folder.end(), '-', '_');
    if (config::exists(root_ + "/sys/module/" + folder) ||
        config::exists(root_ + "/sys/bus/pci/drivers/" + module.name))
      return std::nullopt;
    return Change{"", "not loaded", "loaded", "modprobe " + module.name};
  }

  std::optional<Change> operator()(const resource::Mount& mount) const {
    std::istringstream lines(config::read_text(root_ + "/proc/mounts").value_or(""));
    for (std::string line; std::getline(lines, line);) {
      std::istringstream words(line);
      std::string source, folder, type;
      words >> source >> folder >> type;
      if (folder == mount.path && type == mount.type) return std::nullopt;
    }
    return Change{"", "not mounted", fmt::format("{} {}", mount.type, mount.options),
                  fmt::format("mkdir -p {}; mount -t {} -o {} none {}", mount.path, mount.type,
                              mount.options, mount.path)};
  }

  std::optional<Change> operator()(const resource::Driver& driver) const {
    const std::string device = "/sys/bus/pci/devices/" + driver.pci;
    const std::string have = config::link_name(root_ + device + "/driver").value_or("");
    if (have == driver.driver) return std::nullopt;
    std::string command;
    for (const std::string& interface : config::interfaces_of(root_ + device))
      command += fmt::format("ip link set dev {} down; ", interface);
    command += fmt::format("echo {} > {}/driver_override; ", driver.driver, device);
    if (!have.empty()) command += fmt::format("echo {} > {}/driver/unbind; ", driver.pci, device);
    command += fmt::format("echo {} > /sys/bus/pci/drivers_probe", driver.pci);
    return Change{"", have.empty() ? "no driver" : have, driver.driver, command};
  }

  std::optional<Change> operator()(const resource::Access& access) const {
    const auto number =
        config::link_name(root_ + "/sys/bus/pci/devices/" + access.pci + "/iommu_group");
    const std::string want = standing(access.mode, access.user, access.group);
    std::string node = "/dev/vfio/GROUP";
    std::string have;
    if (number) {
      node = "/dev/vfio/" + *number;
      if (config::exists(root_ + "/dev/vfio/noiommu-" + *number))
        node = "/dev/vfio/noiommu-" + *number;
      have = have_of(root_, node);
      if (have == want) return std::nullopt;
    }
    return Change{"", none_if_empty(have), want,
                  fmt::format("chown {}:{} {}; chmod {:04o} {}", or_root(access.user),
                              or_root(access.group), node, access.mode, node)};
  }

  std::optional<Change> operator()(const resource::Unit& unit) const {
    for (const char* folder : {"/etc/systemd/system", "/usr/lib/systemd/system"})
      for (const std::string& name : config::list_folder(root_ + folder))
        if (name.ends_with(".wants") || name.ends_with(".requires"))
          if (config::link_name(fmt::format("{}{}/{}/{}", root_, folder, name, unit.name)))
            return std::nullopt;
    return Change{"", "disabled", "enabled", "systemctl enable " + unit.name};
  }

  std::optional<Change> operator()(const resource::BootArguments& boot) const {
    if (boot_entries_have(root_, boot.arguments)) return std::nullopt;
    const std::string arguments = fmt::format("{}", fmt::join(boot.arguments, " "));
    return Change{"", "without", arguments,
                  fmt::format("grubby --update-kernel=ALL --args=\"{}\"", arguments)};
  }

  std::optional<Change> operator()(const resource::Notice& notice) const {
    return Change{"", "", "", fmt::format("{}", fmt::join(notice.argv, " "))};
  }

 private:
  static std::uint64_t number_of(const std::string& text) {
    std::uint64_t number = 0;
    std::from_chars(text.data(), text.data() + text.size(), number);
    return number;
  }

  const std::string& root_;
};

}  // namespace

std::vector<Change> changes_of(const Resources& wishes, const std::string& root) {
  std::vector<Change> changes;
  // Notices in a row speak of the same wishes before them.
  bool changed = false;
  bool after_notice = false;
  for (const Resource& wish : wishes) {
    const bool notice = std::holds_alternative<resource::Notice>(wish.what);
    if (!notice && after_notice) changed = false;
    after_notice = notice;
    auto change = std::visit(Comparer(root), wish.what);
    if (!change || (notice && !changed)) continue;
    changed = true;
    change->what = wish.why;
    changes.push_back(std::move(*change));
  }
  return changes;
}

}  // namespace ztcp::setup
