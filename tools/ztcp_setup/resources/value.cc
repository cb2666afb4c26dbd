// SPDX-License-Identifier: Apache-2.0
// Copyright the ztcp authors
#include "tools/ztcp_setup/resources/value.h"

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <optional>

#include <fmt/format.h>

#include "config/machine/text.h"
#include "tools/ztcp_setup/host/trust.h"

namespace ztcp::setup::resource {
namespace {

// For pages of 1 GiB the kernel searches all memory.
constexpr std::chrono::seconds kValueLimit{120};

// "always [madvise] never" means madvise; booleans read back as Y and N.
std::string meaning_of(std::string text) {
  text = std::string(config::trimmed(text));
  if (const auto open = text.find('['), close = text.find(']');
      open != std::string::npos && close != std::string::npos && close > open)
    text = text.substr(open + 1, close - open - 1);
  return text == "Y" ? "1" : text == "N" ? "0" : text;
}

std::optional<std::string> value_at(Host& host, const std::string& path) {
  auto text = host.read_value(path);
  if (!text) return std::nullopt;
  return meaning_of(std::move(*text));
}

// Settings depend on the running kernel.
config::Problem missing(const std::string& path) {
  std::string mend = fmt::format("ls {}", folder_of(path));
  if (path.find("/hugepages-") != std::string::npos)
    mend = "sudo ztcp_setup --pages 1G or 2M; ls /sys/kernel/mm/hugepages lists the sizes";
  if (path.ends_with("noiommu_mode"))
    mend =
        "boot a kernel with CONFIG_VFIO_NOIOMMU=y (grep NOIOMMU /boot/config-$(uname -r)), or "
        "sudo ztcp_setup --iommu";
  return {path, "does not exist: this kernel has no such setting", std::move(mend)};
}

}  // namespace

bool Value::fulfilled_by(const std::string& now) const {
  const std::string wanted = meaning_of(value);
  if (now == wanted) return true;
  const auto have = config::parse_number(now);
  const auto want = config::parse_number(wanted);
  return at_least && have && want && *have >= *want;
}

void Value::check(Host& host, const Others& others, config::Problems& problems) const {
  // A value may appear with its module.
  if (!value_at(host, path) && !others.load_module) problems.push_back(missing(path));
}

bool Value::holds(Host& host) const {
  const auto now = value_at(host, path);
  return now && fulfilled_by(*now);
}

Read<Value::Before> Value::before(Host& host) const {
  const auto now = value_at(host, path);
  if (!now) return tl::unexpected(missing(path));
  return Before{*now, value};
}

Preview Value::preview(Host& host) const {
  const auto now = host.read_value(path);
  return {"", std::string(now ? config::trimmed(*now) : "none"), value,
          fmt::format("echo {} > {}", value, path)};
}

Done Value::apply(Host& host, Before& before) const {
  Status written = host.write_value(path, value, kValueLimit);
  if (at_least && written && !holds(host)) {
    // Used memory is fragmented; compaction may free whole pages.
    if (host.write_value("/proc/sys/vm/compact_memory", "1", kValueLimit))
      written = host.write_value(path, value, kValueLimit);
  }
  const auto now = value_at(host, path);
  before.reached = now.value_or("");
  if (now && fulfilled_by(*now)) return {};
  const std::string mend = fmt::format("echo {} | sudo tee {}", value, path);
  if (!written) return tl::unexpected(problem_of(host, path, written.error(), mend));
  return tl::unexpected(config::Problem{
      path, fmt::format("the kernel gave {} of {}", now.value_or("nothing"), value),
      at_least ? "reboot: pages are reserved before memory is fragmented; or stop programs that "
                 "use memory and run ztcp_setup again"
               : mend});
}

void Value::hold_more(Before& before) const {
  if (!at_least) return;
  // An earlier run may have reached more.
  if (config::parse_number(before.reached).value_or(0) <= config::parse_number(value).value_or(0))
    before.reached = value;
}

std::string Value::restored(const Before& before) const {
  return fmt::format("{} is {} again", path, before.value);
}

Reverted Value::revert(Host& host, const Before& before) const {
  const auto now = value_at(host, path);
  // Unloaded with its module, or restored already.
  if (!now || *now == before.value) return {};
  std::string target = before.value;
  const auto have = config::parse_number(*now);
  const auto had = config::parse_number(before.value);
  const auto reached = config::parse_number(before.reached);
  const auto wanted = config::parse_number(value);
  if (at_least && have && had && reached && wanted) {
    if (*have < *had) return {};  // Another program removed more than we added.
    // A boot may have added the pages that were missing then.
    const auto ours = std::max(*reached, std::min(*have, *wanted));
    // Pages that another program added to ours stay.
    if (*have > ours && ours >= *had) target = fmt::format("{}", *have - (ours - *had));
  }
  const Status written = host.write_value(path, target, kValueLimit);
  const std::string mend = fmt::format("echo {} | sudo tee {}", target, path);
  if (!written) return {{problem_of(host, path, written.error(), mend)}, {}};
  const std::string left = value_at(host, path).value_or("");
  if (left == target) return {};
  return {
      {{path,
        fmt::format("is {}, wanted {} again{}", left, target,
                    at_least ? ": pages in use can't be freed; stop the job that has them" : ""),
        mend}},
      {}};
}

void Value::fields(Fields& fields) {
  fields.text("path", path);
  fields.text("value", value);
  fields.flag("at_least", at_least);
}

void Value::Before::fields(Fields& fields) {
  fields.text("value", value);
  fields.text("reached", reached);
}

}  // namespace ztcp::setup::resource
