// SPDX-License-Identifier: Apache-2.0
// Copyright the ztcp authors
#include "tools/ztcp_stat/hosts/command.h"

#include <cerrno>
#include <cstdio>
#include <cstring>
#include <fcntl.h>
#include <filesystem>
#include <memory>
#include <string>
#include <unistd.h>
#include <unordered_map>
#include <utility>
#include <vector>

#include <CLI/CLI.hpp>

#include "tools/ztcp_stat/hosts/merge.h"
#include "tools/ztcp_stat/hosts/output.h"
#include "tools/ztcp_stat/hosts/report.h"

namespace ztcp::stat::hosts {
namespace {

struct Wishes {
  std::vector<std::string> files;
  bool json = false;
};

tl::expected<std::string, std::string> read_file(const std::string& path) {
  constexpr std::size_t kMostBytes = std::size_t{16} << 20U;  // A report has a few thousand.
  const int fd = open(path.c_str(), O_RDONLY | O_CLOEXEC);
  if (fd < 0) return tl::unexpected(std::string(std::strerror(errno)));
  std::string text;
  char chunk[16384];
  ssize_t size = 0;
  while (text.size() <= kMostBytes) {
    size = read(fd, chunk, sizeof chunk);
    if (size < 0 && errno == EINTR) continue;
    if (size <= 0) break;
    text.append(chunk, static_cast<std::size_t>(size));
  }
  const int error = errno;
  close(fd);
  if (size < 0) return tl::unexpected(std::string(std::strerror(error)));
  if (text.size() > kMostBytes) return tl::unexpected(std::string("it is larger than 16 MiB"));
  return text;
}

// A host's name is that of its file, without the folder and ".json"; the whole path where two files
// have the same name.
std::vector<std::string> names_of(const std::vector<std::string>& files) {
  std::vector<std::string> names;
  std::unordered_map<std::string, int> count;
  for (const std::string& file : files) {
    const std::filesystem::path path(file);
    names.push_back((path.extension() == ".json" ? path.stem() : path.filename()).string());
    ++count[names.back()];
  }
  for (std::size_t i = 0; i < files.size(); ++i)
    if (count[names[i]] > 1) names[i] = files[i];
  return names;
}

int run_hosts(const Wishes& wishes) {
  std::vector<Report> reports;
  const std::vector<std::string> names = names_of(wishes.files);
  bool is_complete = true;
  for (std::size_t i = 0; i < names.size(); ++i) {
    auto report = read_file(wishes.files[i]).and_then([&](const std::string& text) {
      return parse_report(names[i], text);
    });
    if (report) {
      reports.push_back(std::move(*report));
      continue;
    }
    is_complete = false;
    std::fprintf(stderr, "ztcp_stat hosts: %s: %s\n", wishes.files[i].c_str(),
                 report.error().c_str());
  }
  // The good ones are worth a table all the same.
  const Merged merged = merge(reports);
  const int exit_code = !is_complete                 ? kExitBadInput
                        : merged.differences.empty() ? kExitEqual
                                                     : kExitDifferent;
  std::fputs((wishes.json ? to_json(merged, exit_code) : to_text(merged)).c_str(), stdout);
  return exit_code;
}

}  // namespace

void add_hosts(CLI::App& app, std::function<int()>& run) {
  const auto wishes = std::make_shared<Wishes>();
  CLI::App* command = app.add_subcommand(
      "hosts", "Merge the reports of ztcp_setup --check --json of many hosts: which checks differ");
  command->add_option("FILE", wishes->files, "A host's report; its name is the host's")
      ->required()
      ->type_name("");
  command->add_flag("--json", wishes->json, "Write JSON to stdout");
  command->footer(
      "Exit status: 0 all hosts are equal, 1 they differ, 2 a file is no report (the others are\n"
      "compared all the same).");
  command->callback([wishes, &run] { run = [wishes] { return run_hosts(*wishes); }; });
}

}  // namespace ztcp::stat::hosts
