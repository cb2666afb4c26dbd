// SPDX-License-Identifier: Apache-2.0
// Copyright the ztcp authors
//
// Values of sysfs and procfs, modules and mounts.
#include <algorithm>
#include <charconv>
#include <cstdint>
#include <optional>
#include <sstream>

#include <fmt/format.h>

#include "tools/ztcp_setup/host/trust.h"
#include "tools/ztcp_setup/resources/hands.h"

namespace ztcp::setup {
namespace {

using std::chrono::seconds;

// Pages of 1 GiB are looked for all over the memory.
constexpr seconds kValueLimit{120};
constexpr seconds kModuleLimit{60};

std::string trimmed(const std::string& text) {
  const auto first = text.find_first_not_of(" \t\n");
  if (first == std::string::npos) return {};
  return text.substr(first, text.find_last_not_of(" \t\n") - first + 1);
}

// "always [madvise] never" means madvise; Y and N are how booleans read.
std::string meaning_of(std::string text) {
  text = trimmed(text);
  if (const auto open = text.find('['), close = text.find(']');
      open != std::string::npos && close != std::string::npos && close > open)
    text = text.substr(open + 1, close - open - 1);
  return text == "Y" ? "1" : text == "N" ? "0" : text;
}

std::optional<std::uint64_t> number_of(const std::string& text) {
  std::uint64_t number = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (error != std::errc{} || end != text.data() + text.size() || text.empty()) return std::nullopt;
  return number;
}

std::optional<std::string> value_at(Host& host, const std::string& path) {
  auto text = host.read_value(path);
  if (!text) return std::nullopt;
  return meaning_of(std::move(*text));
}

// Settings come with the kernel that was booted.
config::Problem missing(const std::string& path) {
  std::string mend = fmt::format("ls {}", folder_of(path));
  if (path.find("/hugepages-") != std::string::npos)
    mend = "sudo ztcp_setup --pages 1G or 2M; ls /sys/kernel/mm/hugepages shows what there is";
  if (path.ends_with("noiommu_mode"))
    mend =
        "boot a kernel with CONFIG_VFIO_NOIOMMU=y (grep NOIOMMU /boot/config-$(uname -r)), or "
        "sudo ztcp_setup --iommu";
  return {path, "is not there: this kernel has no such setting", std::move(mend)};
}

bool fulfils(const wish::Value& wish, const std::string& value) {
  const std::string wanted = meaning_of(wish.value);
  if (value == wanted) return true;
  const auto have = number_of(value);
  const auto want = number_of(wanted);
  return wish.at_least && have && want && *have >= *want;
}

std::string module_folder(std::string name) {
  std::replace(name.begin(), name.end(), '-', '_');
  return "/sys/module/" + name;
}

struct Mounted {
  std::string type;
  std::string options;
};

// The topmost mount at `folder`.
std::optional<Mounted> mounted_at(Host& host, const std::string& folder) {
  std::istringstream lines(host.read_value("/proc/self/mountinfo").value_or(""));
  std::optional<Mounted> found;
  for (std::string line; std::getline(lines, line);) {
    std::istringstream words(line);
    std::string word;
    std::string point;
    for (int i = 0; i < 5; ++i) words >> point;  // Its fifth field.
    while (words >> word && word != "-") {
    }
    Mounted mounted;
    std::string source;
    words >> mounted.type >> source >> mounted.options;
    if (point == folder) found = std::move(mounted);
  }
  return found;
}

// "1048576K" and "1024M" are the same.
std::string option_of(std::string option) {
  constexpr std::string_view kPageSize = "pagesize=";
  if (!option.starts_with(kPageSize)) return option;
  const std::string size = option.substr(kPageSize.size());
  const std::string units = "KMGT";
  const auto unit = size.empty() ? std::string::npos : units.find(size.back());
  const auto number = number_of(unit == std::string::npos ? size : size.substr(0, size.size() - 1));
  if (!number) return option;
  return fmt::format("pagesize={}",
                     unit == std::string::npos ? *number : *number << (10 * (unit + 1)));
}

std::vector<std::string> options_of(const std::string& text) {
  std::vector<std::string> options;
  std::istringstream words(text);
  for (std::string word; std::getline(words, word, ',');)
    if (!word.empty()) options.push_back(option_of(word));
  return options;
}

bool fulfils(const wish::Mount& wish, const Mounted& mounted) {
  if (mounted.type != wish.type) return false;
  const auto have = options_of(mounted.options);
  for (const std::string& option : options_of(wish.options))
    if (std::find(have.begin(), have.end(), option) == have.end()) return false;
  return true;
}

}  // namespace

bool has_module(const Earlier& earlier) {
  return std::any_of(
      earlier.wishes->begin(), earlier.wishes->begin() + static_cast<std::ptrdiff_t>(earlier.count),
      [](const Wish& wish) { return std::holds_alternative<wish::Module>(wish.what); });
}

void check(Host& host, const wish::Value& wish, const Earlier& earlier,
           config::Problems& problems) {
  if (!value_at(host, wish.path) && !has_module(earlier)) problems.push_back(missing(wish.path));
}

bool holds(Host& host, const wish::Value& wish) {
  const auto value = value_at(host, wish.path);
  return value && fulfils(wish, *value);
}

Read<before::Value> record(Host& host, const wish::Value& wish) {
  const auto value = value_at(host, wish.path);
  if (!value) return tl::unexpected(missing(wish.path));
  return before::Value{*value, wish.value};
}

Done carry_out(Host& host, const wish::Value& wish, before::Value& before) {
  Status written = host.write_value(wish.path, wish.value, kValueLimit);
  if (wish.at_least && written && !holds(host, wish)) {
    // Memory in use lies scattered; the kernel can move it together.
    if (host.write_value("/proc/sys/vm/compact_memory", "1", kValueLimit))
      written = host.write_value(wish.path, wish.value, kValueLimit);
  }
  const auto now = value_at(host, wish.path);
  before.reached = now.value_or("");
  if (now && fulfils(wish, *now)) return {};
  const std::string mend = fmt::format("echo {} | sudo tee {}", wish.value, wish.path);
  if (!written) return tl::unexpected(problem_of(host, wish.path, written.error(), mend));
  return tl::unexpected(config::Problem{
      wish.path, fmt::format("the kernel granted {} of {}", now.value_or("nothing"), wish.value),
      wish.at_least ? "reboot: pages are reserved while memory is still whole; or stop what uses "
                      "memory and run ztcp_setup again"
                    : mend});
}

Restored restore(Host& host, const wish::Value& wish, const before::Value& before) {
  const auto now = value_at(host, wish.path);
  // Gone with its module, or back.
  if (!now || *now == before.value) return {};
  std::string target = before.value;
  const auto have = number_of(*now);
  const auto had = number_of(before.value);
  const auto reached = number_of(before.reached);
  const auto wanted = number_of(wish.value);
  if (wish.at_least && have && had && reached && wanted) {
    if (*have < *had) return {};  // Somebody took more than we gave.
    // What could not be had then, a boot may have brought since.
    const auto ours = std::max(*reached, std::min(*have, *wanted));
    // Somebody added to ours: that part stays.
    if (*have > ours && ours >= *had) target = fmt::format("{}", *have - (ours - *had));
  }
  const Status written = host.write_value(wish.path, target, kValueLimit);
  const std::string mend = fmt::format("echo {} | sudo tee {}", target, wish.path);
  if (!written) return {{problem_of(host, wish.path, written.error(), mend)}, {}};
  const std::string left = value_at(host, wish.path).value_or("");
  if (left == target) return {};
  return {{{wish.path,
            fmt::format("is {}, wanted {} again{}", left, target,
                        wish.at_least ? ": pages in use can't be given back; stop the job that has "
                                        "them"
                                      : ""),
            mend}},
          {}};
}

void check(Host& host, const wish::Module& wish, const Earlier&, config::Problems& problems) {
  if (holds(host, wish)) return;
  const auto tried = host.run({"modprobe", "--dry-run", wish.name}, kModuleLimit);
  if (!tried || tried->exit_status != 0)
    problems.push_back(
        {"module " + wish.name, tried ? trimmed(tried->output) : "modprobe could not be run",
         fmt::format("install the modules of this kernel ($(uname -r)): modinfo {}", wish.name)});
}

bool holds(Host& host, const wish::Module& wish) {
  return host.facts(module_folder(wish.name)).kind != FileKind::kAbsent ||
         host.facts("/sys/bus/pci/drivers/" + wish.name).kind != FileKind::kAbsent;
}

Read<before::Module> record(Host&, const wish::Module&) { return before::Module{}; }

Done carry_out(Host& host, const wish::Module& wish, before::Module&) {
  const auto loaded = host.run({"modprobe", wish.name}, kModuleLimit);
  if (holds(host, wish)) return {};
  return tl::unexpected(config::Problem{
      "module " + wish.name,
      fmt::format("was not loaded: {}", loaded ? trimmed(loaded->output) : "modprobe did not run"),
      fmt::format("sudo modprobe {}; dmesg | tail", wish.name)});
}

Restored restore(Host& host, const wish::Module& wish, const before::Module&) {
  if (!holds(host, wish)) return {};
  // Devices that others have given to it since would be taken from them.
  for (const std::string& name : host.list("/sys/bus/pci/drivers/" + wish.name))
    if (name.find(':') != std::string::npos)
      return {{}, {{"module " + wish.name, "stays: it drives " + name, ""}}};
  const auto unloaded = host.run({"modprobe", "--remove", wish.name}, kModuleLimit);
  if (!holds(host, wish)) return {};
  return {{{"module " + wish.name,
            fmt::format("is still loaded: {}",
                        unloaded ? trimmed(unloaded->output) : "modprobe did not run"),
            fmt::format("sudo modprobe --remove {}", wish.name)}},
          {}};
}

void check(Host& host, const wish::Mount& wish, const Earlier&, config::Problems& problems) {
  const auto mounted = mounted_at(host, wish.path);
  if (mounted && !fulfils(wish, *mounted))
    problems.push_back({wish.path,
                        fmt::format("has {} ({}) mounted, wanted {} ({})", mounted->type,
                                    mounted->options, wish.type, wish.options),
                        fmt::format("sudo umount {}", wish.path)});
}

bool holds(Host& host, const wish::Mount& wish) {
  const auto mounted = mounted_at(host, wish.path);
  return mounted && fulfils(wish, *mounted);
}

Read<before::Mount> record(Host& host, const wish::Mount& wish) {
  return before::Mount{missing_folders(host, wish.path + "/.")};
}

Done carry_out(Host& host, const wish::Mount& wish, before::Mount& before) {
  if (Done made = make_folders(host, before.made_folders); !made) return made;
  const std::string mend =
      fmt::format("sudo mount -t {} -o {} none {}", wish.type, wish.options, wish.path);
  if (const Status mounted = host.mount(wish.path, wish.type, wish.options); !mounted)
    return tl::unexpected(problem_of(host, wish.path, mounted.error(), mend));
  if (holds(host, wish)) return {};
  return tl::unexpected(config::Problem{wish.path, "was mounted with other options", mend});
}

Restored restore(Host& host, const wish::Mount& wish, const before::Mount& before) {
  const auto mounted = mounted_at(host, wish.path);
  const bool ours = mounted && mounted->type == wish.type;
  if (const Status done = ours ? host.unmount(wish.path) : Status{}; !done)
    return {
        {problem_of(host, wish.path, done.error(),
                    fmt::format("stop what uses it (fuser -vm {0}), sudo umount {0}", wish.path))},
        {}};
  if (Done cleared = clear_folders(host, before.made_folders); !cleared)
    return {{cleared.error()}, {}};
  return {};
}

}  // namespace ztcp::setup
