// SPDX-License-Identifier: Apache-2.0
// Copyright the ztcp authors
#include "tools/ztcp_stat/look/look.h"

#include <algorithm>
#include <charconv>
#include <cstring>
#include <ctime>
#include <fstream>
#include <iterator>
#include <sys/stat.h>
#include <unistd.h>

#include <fmt/format.h>

#include "tools/common/printable.h"
#include "transport/stats/page_reader.h"

namespace ztcp::stat {
namespace {

std::int64_t read_clock(clockid_t clock) {
  timespec now{};
  clock_gettime(clock, &now);
  return std::int64_t{now.tv_sec} * 1'000'000'000 + now.tv_nsec;
}

char state_of(const stats::Process& process) {
  if (!process.is_running) return '-';
  std::ifstream file(fmt::format("/proc/{}/stat", process.pid));
  const std::string text(std::istreambuf_iterator<char>(file), {});
  const ProcessState state = parse_process_state(text);
  // In another pid namespace the number belongs to another process.
  return state.start_ticks == process.start_ticks ? state.letter : '?';
}

std::string reason_of(const Error& error) {
  if (error.sys_errno != 0)
    return fmt::format("{}: {}", error.where, std::strerror(error.sys_errno));
  // A file is no peer, which describe() would name.
  if (error.code == Errc::kProtocol) return error.where;
  return fmt::format("{} ({})", describe(error.code), error.where);
}

bool is_foreign(const std::filesystem::path& file) {
  if (::geteuid() == 0) return false;
  struct ::stat facts {};
  return ::lstat(file.c_str(), &facts) == 0 && facts.st_uid != ::geteuid();
}

Page read(const std::filesystem::path& file) {
  Page page;
  page.file = file;
  auto snapshot = stats::read_page(file);
  if (!snapshot) {
    page.error = reason_of(snapshot.error());
    return page;
  }
  page.snapshot = std::move(*snapshot);
  make_printable(page.snapshot);
  page.state = state_of(page.snapshot.process);
  return page;
}

void clean(std::string& text) { text = tools::printable(text); }

bool is_same_file(const std::filesystem::path& one, const std::filesystem::path& other) {
  std::error_code error;
  return std::filesystem::weakly_canonical(one, error) ==
         std::filesystem::weakly_canonical(other, error);
}

}  // namespace

ProcessState parse_process_state(std::string_view text) {
  // The command, field 2, is in parentheses and may contain any character.
  const auto end = text.rfind(')');
  if (end == std::string_view::npos || end + 2 >= text.size()) return {};
  ProcessState state;
  state.letter = text[end + 2];
  std::size_t at = end + 2;
  for (int field = 3; field < 22; ++field) {
    at = text.find(' ', at);
    if (at == std::string_view::npos) return {};
    ++at;
  }
  const auto [rest, error] =
      std::from_chars(text.data() + at, text.data() + text.size(), state.start_ticks);
  return error == std::errc{} ? state : ProcessState{};
}

void make_printable(stats::Snapshot& snapshot) {
  stats::Process& process = snapshot.process;
  for (std::string* text :
       {&process.version, &process.host, &process.command, &process.config_path})
    clean(*text);
  for (stats::Device& device : snapshot.devices)
    for (std::string* text :
         {&device.name, &device.nic, &device.plan, &device.address, &device.gpu})
      clean(*text);
  for (stats::Connection& connection : snapshot.connections)
    for (std::string* text : {&connection.state, &connection.peer, &connection.peer_host})
      clean(*text);
  for (stats::Flow& flow : snapshot.flows)
    for (std::string* text : {&flow.state, &flow.local, &flow.remote}) clean(*text);
  for (stats::Latency& latency : snapshot.latencies) {
    clean(latency.peer);
    clean(latency.host);
  }
}

Result<Look> look_at(const Selection& selection) {
  Look look;
  std::vector<std::filesystem::path> files;
  if (!selection.crash_file.empty()) {
    files.emplace_back(selection.crash_file);
  } else {
    for (const std::filesystem::path& folder : ZTCP_TRY(folders_of(selection))) {
      auto found = stats::find_pages(folder);
      if (!found) {
        look.pages.push_back({folder, reason_of(found.error()), {}, '?'});
        continue;
      }
      for (std::filesystem::path& file : *found)
        if (!is_foreign(file)) files.push_back(std::move(file));
    }
  }
  for (const std::filesystem::path& file : files) {
    Page page = read(file);
    if (!selection.config.empty() && page.error.empty() &&
        !is_same_file(selection.config, page.snapshot.process.config_path))
      continue;
    if (selection.pid != 0 && (!page.error.empty() || page.snapshot.process.pid != selection.pid))
      continue;
    look.pages.push_back(std::move(page));
  }
  look.monotonic_ns = read_clock(CLOCK_MONOTONIC);
  look.realtime_ns = read_clock(CLOCK_REALTIME);
  return look;
}

}  // namespace ztcp::stat
