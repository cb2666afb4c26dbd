// SPDX-License-Identifier: Apache-2.0
// Copyright the ztcp authors
#include "tools/ztcp_setup/resources/module.h"

#include <algorithm>
#include <chrono>

#include <fmt/format.h>

#include "config/machine/text.h"

namespace ztcp::setup::resource {
namespace {

constexpr std::chrono::seconds kModuleLimit{60};

std::string said(const Result<ProgramResult>& modprobe, const char* otherwise) {
  return std::string(modprobe ? config::trimmed(modprobe->output) : otherwise);
}

}  // namespace

void Module::check(Host& host, const Others&, config::Problems& problems) const {
  if (holds(host)) return;
  const auto tried = host.run({"modprobe", "--dry-run", name}, kModuleLimit);
  if (!tried || tried->exit_status != 0)
    problems.push_back(
        {"module " + name, said(tried, "modprobe could not be run"),
         fmt::format("install the modules of this kernel ($(uname -r)): modinfo {}", name)});
}

bool Module::holds(Host& host) const {
  std::string folder = name;
  std::replace(folder.begin(), folder.end(), '-', '_');
  return host.facts("/sys/module/" + folder).kind != FileKind::kAbsent ||
         host.facts("/sys/bus/pci/drivers/" + name).kind != FileKind::kAbsent;
}

Preview Module::preview(Host&) const { return {"", "not loaded", "loaded", "modprobe " + name}; }

Done Module::apply(Host& host, Before&) const {
  const auto loaded = host.run({"modprobe", name}, kModuleLimit);
  if (holds(host)) return {};
  return tl::unexpected(config::Problem{
      "module " + name, fmt::format("was not loaded: {}", said(loaded, "modprobe did not run")),
      fmt::format("sudo modprobe {}; dmesg | tail", name)});
}

std::string Module::restored(const Before&) const {
  return fmt::format("{} is unloaded, unless something uses it", name);
}

Reverted Module::revert(Host& host, const Before&) const {
  if (!holds(host)) return {};
  // Unloading would take devices away that it drives for other programs.
  for (const std::string& device : host.list("/sys/bus/pci/drivers/" + name))
    if (device.find(':') != std::string::npos)
      return {{}, {{"module " + name, "stays: it drives " + device, ""}}};
  const auto unloaded = host.run({"modprobe", "--remove", name}, kModuleLimit);
  if (!holds(host)) return {};
  return {{{"module " + name,
            fmt::format("is still loaded: {}", said(unloaded, "modprobe did not run")),
            fmt::format("sudo modprobe --remove {}", name)}},
          {}};
}

}  // namespace ztcp::setup::resource
