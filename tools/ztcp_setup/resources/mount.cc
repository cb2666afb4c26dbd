// SPDX-License-Identifier: Apache-2.0
// Copyright the ztcp authors
#include "tools/ztcp_setup/resources/mount.h"

#include <algorithm>
#include <optional>

#include <fmt/format.h>

#include "config/machine/text.h"
#include "tools/ztcp_setup/host/trust.h"

namespace ztcp::setup::resource {
namespace {

// The topmost mount at `folder`.
std::optional<config::Mount> mounted_at(Host& host, const std::string& folder) {
  std::optional<config::Mount> found;
  for (config::Mount& mounted : config::mounts_of(host))
    if (mounted.folder == folder) found = std::move(mounted);
  return found;
}

}  // namespace

bool Mount::fulfilled_by(const config::Mount& mounted) const {
  if (mounted.type != type) return false;
  const auto wanted = config::split(options, ',');
  return std::all_of(wanted.begin(), wanted.end(),
                     [&](std::string_view option) { return mounted.has(option); });
}

void Mount::check(Host& host, const Others&, config::Problems& problems) const {
  const auto mounted = mounted_at(host, path);
  if (mounted && !fulfilled_by(*mounted))
    problems.push_back({path,
                        fmt::format("has {} ({}) mounted, wanted {} ({})", mounted->type,
                                    mounted->options, type, options),
                        fmt::format("sudo umount {}", path)});
}

bool Mount::holds(Host& host) const {
  const auto mounted = mounted_at(host, path);
  return mounted && fulfilled_by(*mounted);
}

Read<Mount::Before> Mount::before(Host& host) const {
  return Before{missing_folders(host, path + "/.")};
}

Preview Mount::preview(Host& host) const {
  const auto mounted = mounted_at(host, path);
  return {"", mounted ? fmt::format("{} {}", mounted->type, mounted->options) : "not mounted",
          fmt::format("{} {}", type, options),
          fmt::format("mkdir -p {}; mount -t {} -o nosuid,nodev,{} none {}", path, type, options,
                      path)};
}

Done Mount::apply(Host& host, Before& before) const {
  if (Done made = make_folders(host, before.made_folders); !made) return made;
  const std::string mend =
      fmt::format("sudo mount -t {} -o nosuid,nodev,{} none {}", type, options, path);
  if (const Status mounted = host.mount(path, type, options); !mounted)
    return tl::unexpected(problem_of(host, path, mounted.error(), mend));
  if (holds(host)) return {};
  return tl::unexpected(config::Problem{path, "was mounted with other options", mend});
}

std::string Mount::restored(const Before&) const { return fmt::format("{} is unmounted", path); }

Reverted Mount::revert(Host& host, const Before& before) const {
  const auto mounted = mounted_at(host, path);
  if (mounted && !fulfilled_by(*mounted))
    return {{},
            {{path,
              fmt::format("has {} ({}) mounted, which is not set-up's; not changed", mounted->type,
                          mounted->options),
              ""}}};
  if (const Status done = mounted ? host.unmount(path) : Status{}; !done)
    return {
        {problem_of(
            host, path, done.error(),
            fmt::format("stop the programs that use it (fuser -vm {0}), sudo umount {0}", path))},
        {}};
  return reverted(clear_folders(host, before.made_folders));
}

void Mount::fields(Fields& fields) {
  fields.text("path", path);
  fields.text("type", type);
  fields.text("options", options);
}

}  // namespace ztcp::setup::resource
