// SPDX-License-Identifier: Apache-2.0
// Copyright the ztcp authors
#include "tools/ztcp_setup/host/place_file.h"

#include <algorithm>
#include <cerrno>

#include <fmt/format.h>

#include "tools/ztcp_setup/host/trust.h"

namespace ztcp::setup {
namespace {

tl::unexpected<config::Problem> failed(Host& host, const std::string& path, const Error& error) {
  return tl::unexpected(problem_of(host, path, error));
}

std::string temporary_of(const std::string& path) {
  return fmt::format("{}/.{}.ztcp-new", folder_of(path), path.substr(path.rfind('/') + 1));
}

Done clear(Host& host, const std::string& path) {
  if (host.facts(path).kind == FileKind::kAbsent) return {};
  if (const Status removed = host.remove(path); !removed)
    return failed(host, path, removed.error());
  return {};
}

}  // namespace

Done place_file(Host& host, const std::string& path, const std::string& text, Ownership ownership) {
  const std::string temporary = temporary_of(path);
  if (Done cleared = clear(host, temporary); !cleared) return cleared;
  if (const Status made = host.create(temporary, text, ownership); !made) {
    static_cast<void>(host.remove(temporary));
    return failed(host, path, made.error());
  }
  if (const Status renamed = host.rename(temporary, path); !renamed) {
    static_cast<void>(host.remove(temporary));
    return failed(host, path, renamed.error());
  }
  return {};
}

Done clear_temporary(Host& host, const std::string& path) {
  return clear(host, temporary_of(path));
}

Done clear_file(Host& host, const std::string& path) {
  if (Done cleared = clear_temporary(host, path); !cleared) return cleared;
  return clear(host, path);
}

std::vector<std::string> missing_folders(Host& host, const std::string& path) {
  std::vector<std::string> missing;
  for (std::string folder = folder_of(path);
       folder != "/" && host.facts(folder).kind == FileKind::kAbsent; folder = folder_of(folder))
    missing.push_back(folder);
  std::reverse(missing.begin(), missing.end());
  return missing;
}

Done make_folders(Host& host, const std::vector<std::string>& folders) {
  for (const std::string& folder : folders) {
    if (host.facts(folder).kind == FileKind::kFolder) continue;
    if (const Status made = host.make_folder(folder, {0755, 0, 0}); !made)
      return failed(host, folder, made.error());
  }
  return {};
}

Done clear_folders(Host& host, const std::vector<std::string>& folders) {
  for (auto folder = folders.rbegin(); folder != folders.rend(); ++folder) {
    if (host.facts(*folder).kind != FileKind::kFolder) continue;
    const Status removed = host.remove_folder(*folder);
    // A folder that contains other files stays.
    if (!removed && removed.error().sys_errno != ENOTEMPTY)
      return failed(host, *folder, removed.error());
  }
  return {};
}

}  // namespace ztcp::setup
