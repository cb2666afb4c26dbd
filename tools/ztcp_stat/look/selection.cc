// SPDX-License-Identifier: Apache-2.0
// Copyright the ztcp authors
#include "tools/ztcp_stat/look/selection.h"

#include <algorithm>
#include <cstdio>
#include <unistd.h>

#include "config/environment.h"
#include "config/file/load.h"
#include "config/machine/live_machine.h"
#include "transport/stats/page_reader.h"

namespace ztcp::stat {
namespace {

namespace fs = std::filesystem;

bool is_number(const std::string& text) {
  return !text.empty() &&
         std::all_of(text.begin(), text.end(), [](char c) { return c >= '0' && c <= '9'; });
}

std::vector<fs::path> entries_of(const fs::path& folder) {
  std::vector<fs::path> entries;
  std::error_code error;
  for (fs::directory_iterator at(folder, error), end; !error && at != end; at.increment(error))
    entries.push_back(at->path());
  return entries;
}

// The run_dir of a config file; empty: the file can't be used.
std::string run_dir_of(const std::string& path, bool says_why) {
  config::LiveMachine machine;
  const config::LoadResult loaded = config::load(machine, path);
  if (says_why)
    for (const config::Problem& problem : loaded.problems)
      std::fprintf(stderr, "ztcp_stat: %s\n", config::to_string(problem).c_str());
  if (loaded.fabric) return loaded.fabric->run_dir;
  if (loaded.without_nics) return loaded.without_nics->run_dir;
  return {};
}

}  // namespace

std::vector<fs::path> folders_of_all_users(const fs::path& root) {
  std::vector<fs::path> folders;
  std::error_code error;
  for (const fs::path& user : entries_of(root / "run/user"))
    if (is_number(user.filename()) && fs::is_directory(user / "ztcp", error))
      folders.push_back(user / "ztcp");
  for (const char* shared : {"dev/shm", "tmp"}) {
    for (const fs::path& entry : entries_of(root / shared)) {
      const std::string name = entry.filename();
      if (name.starts_with("ztcp-") && is_number(name.substr(5)) && fs::is_directory(entry, error))
        folders.push_back(entry);
    }
  }
  std::sort(folders.begin(), folders.end());
  return folders;
}

Result<std::vector<fs::path>> folders_of(const Selection& selection) {
  if (!selection.folder.empty()) return std::vector<fs::path>{selection.folder};
  const bool is_named = !selection.config.empty();
  const std::string run_dir =
      run_dir_of(is_named ? selection.config : config::read_environment().config_path, is_named);
  if (is_named && run_dir.empty()) return fail(Errc::kBadConfig, "--config");
  std::vector<fs::path> folders = stats::page_folders(run_dir);
  if (::geteuid() == 0)
    for (fs::path& folder : folders_of_all_users("/"))
      if (std::find(folders.begin(), folders.end(), folder) == folders.end())
        folders.push_back(std::move(folder));
  return folders;
}

}  // namespace ztcp::stat
