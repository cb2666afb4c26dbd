// SPDX-License-Identifier: Apache-2.0
// Copyright the ztcp authors
#include "transport/stats/process_facts.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <fcntl.h>
#include <filesystem>
#include <limits>
#include <string>
#include <string_view>
#include <sys/stat.h>
#include <system_error>
#include <unistd.h>
#include <utility>

#include <fmt/format.h>

#include "core/descriptor.h"

namespace ztcp::stats {
namespace {

std::string small_file(const std::string& path) {
  const Descriptor fd(::open(path.c_str(), O_RDONLY | O_CLOEXEC));
  std::array<char, 4096> text;
  const ssize_t size = fd ? ::read(fd.get(), text.data(), text.size()) : 0;
  return {text.data(), size > 0 ? static_cast<std::size_t>(size) : 0};
}

// The number behind `key` and spaces; 0: there is none.
std::uint64_t number_after(std::string_view text, std::string_view key) {
  const std::size_t at = text.find(key);
  if (at == std::string_view::npos) return 0;
  text.remove_prefix(at + key.size());
  text.remove_prefix(std::min(text.find_first_not_of(' '), text.size()));
  std::uint64_t value = 0;
  std::from_chars(text.data(), text.data() + text.size(), value);
  return value;
}

// Whether the line "4:cpu,cpuacct:/job" of /proc/PID/cgroup is that of the controller `cpu`.
bool is_of_cpu(std::string_view controllers) {
  while (!controllers.empty()) {
    const std::string_view one = controllers.substr(0, controllers.find(','));
    if (one == "cpu") return true;
    controllers.remove_prefix(std::min(controllers.size(), one.size() + 1));
  }
  return false;
}

// cpu.stat of the process's cgroup. In a container the file lies at the mount's root, though the
// process is in a group below it.
std::string cpu_stat_path(std::uint32_t pid) {
  const std::string groups = small_file(fmt::format("/proc/{}/cgroup", pid));
  std::string_view rest = groups;
  while (!rest.empty()) {
    const std::string_view line = rest.substr(0, rest.find('\n'));
    rest.remove_prefix(std::min(rest.size(), line.size() + 1));
    const std::size_t first = line.find(':');
    const std::size_t second = line.find(':', first + 1);
    if (second == std::string_view::npos) continue;
    const bool is_second_version = line.starts_with("0::");
    if (!is_second_version && !is_of_cpu(line.substr(first + 1, second - first - 1))) continue;
    for (const std::string_view group : {line.substr(second + 1), std::string_view()}) {
      std::string path =
          fmt::format("/sys/fs/cgroup{}{}/cpu.stat", is_second_version ? "" : "/cpu", group);
      if (::access(path.c_str(), R_OK) == 0) return path;
    }
  }
  return {};
}

// Version 2 of cgroups counts in microseconds, version 1 in nanoseconds.
std::uint64_t throttled_ns(std::uint32_t pid) {
  const std::string path = cpu_stat_path(pid);
  if (path.empty()) return 0;
  const std::string text = small_file(path);
  return number_after(text, "throttled_usec") * 1000 + number_after(text, "throttled_time");
}

// The eighth number of the first line of /proc/stat, in ticks.
std::uint64_t stolen_ns() {
  constexpr int kStealColumn = 8;
  const std::string text = small_file("/proc/stat");
  std::string_view rest = std::string_view(text).substr(0, text.find('\n'));
  for (int column = 0; column < kStealColumn; ++column) {
    rest.remove_prefix(std::min(rest.find(' '), rest.size()));
    rest.remove_prefix(std::min(rest.find_first_not_of(' '), rest.size()));
  }
  std::uint64_t ticks = 0;
  std::from_chars(rest.data(), rest.data() + rest.size(), ticks);
  return ticks *
         (1'000'000'000U / static_cast<std::uint64_t>(std::max(1L, ::sysconf(_SC_CLK_TCK))));
}

std::uint32_t open_descriptors(std::uint32_t pid) {
  const std::string folder = fmt::format("/proc/{}/fd", pid);
  // Since Linux 6.2 the folder's size is the number of descriptors; it is 0 on older ones.
  struct stat facts {};
  if (::stat(folder.c_str(), &facts) == 0 && facts.st_size > 0)
    return static_cast<std::uint32_t>(facts.st_size);
  std::uint32_t count = 0;
  std::error_code error;
  std::filesystem::directory_iterator entry(folder, error);
  for (const std::filesystem::directory_iterator end; !error && entry != end;
       entry.increment(error))
    ++count;
  return count;
}

std::uint32_t descriptor_limit(std::uint32_t pid) {
  const std::string limits = small_file(fmt::format("/proc/{}/limits", pid));
  return static_cast<std::uint32_t>(std::min<std::uint64_t>(
      number_after(limits, "Max open files"), std::numeric_limits<std::uint32_t>::max()));
}

}  // namespace

ProcessFacts process_facts(std::uint32_t pid) {
  return {throttled_ns(pid), stolen_ns(), open_descriptors(pid), descriptor_limit(pid)};
}

}  // namespace ztcp::stats
