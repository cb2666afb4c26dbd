// SPDX-License-Identifier: Apache-2.0
// Copyright the ztcp authors
#include "bench/tails/threads.h"

#include <charconv>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <sstream>

#include <fmt/format.h>

namespace ztcp::bench {
namespace {

namespace fs = std::filesystem;

std::string text_of(const fs::path& path) {
  std::ifstream file(path);
  std::ostringstream text;
  text << file.rdbuf();
  return text.str();
}

std::uint64_t number_after(const std::string& text, const char* key) {
  const std::size_t at = text.find(key);
  return at == std::string::npos
             ? 0
             : std::strtoull(text.c_str() + at + std::string_view(key).size(), nullptr, 10);
}

// Threads of one kind have names that differ in the number at the end.
std::string kind_of(std::string name) {
  const std::size_t last = name.find_last_not_of("0123456789");
  if (last + 1 < name.size()) name.replace(last + 1, std::string::npos, "#");
  return name;
}

}  // namespace

ThreadTable read_threads() {
  ThreadTable table;
  std::error_code ignored;
  for (const fs::directory_entry& entry : fs::directory_iterator("/proc/self/task", ignored)) {
    std::istringstream counts(text_of(entry.path() / "schedstat"));
    double ran_ns = 0;
    double waited_ns = 0;
    ThreadTimes times;
    if (!(counts >> ran_ns >> waited_ns >> times.slices)) continue;
    times.ran_ms = ran_ns / 1e6;
    times.waited_ms = waited_ns / 1e6;
    const std::string status = text_of(entry.path() / "status");
    times.voluntary = number_after(status, "\nvoluntary_ctxt_switches:");
    times.involuntary = number_after(status, "\nnonvoluntary_ctxt_switches:");
    times.name = text_of(entry.path() / "comm");
    while (!times.name.empty() && times.name.back() == '\n') times.name.pop_back();
    table[std::atoi(entry.path().filename().c_str())] = std::move(times);
  }
  return table;
}

std::string threads_text(const ThreadTable& before, const ThreadTable& after) {
  struct Sum {
    int threads = 0;
    ThreadTimes times;
  };
  std::map<std::string, Sum> kinds;
  for (const auto& [thread, now] : after) {
    const auto found = before.find(thread);
    const ThreadTimes then = found == before.end() ? ThreadTimes{} : found->second;
    if (now.ran_ms - then.ran_ms < 1) continue;
    Sum& sum = kinds[kind_of(now.name)];
    ++sum.threads;
    sum.times.ran_ms += now.ran_ms - then.ran_ms;
    sum.times.waited_ms += now.waited_ms - then.waited_ms;
    sum.times.slices += now.slices - then.slices;
    sum.times.voluntary += now.voluntary - then.voluntary;
    sum.times.involuntary += now.involuntary - then.involuntary;
  }
  std::string text;
  for (const auto& [kind, sum] : kinds)
    text += fmt::format(
        "    {:<16} x{:<3} ran {:9.1f} ms, waited for a CPU {:8.1f} ms, slices {:7}, switches {} "
        "voluntary {} involuntary\n",
        kind, sum.threads, sum.times.ran_ms, sum.times.waited_ms, sum.times.slices,
        sum.times.voluntary, sum.times.involuntary);
  return text;
}

}  // namespace ztcp::bench
