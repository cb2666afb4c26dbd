// SPDX-License-Identifier: Apache-2.0
// Copyright the ztcp authors
#include "transport/core/log.h"

#include <algorithm>
#include <array>
#include <atomic>
#include <ctime>
#include <fcntl.h>
#include <iterator>
#include <string>
#include <sys/stat.h>
#include <unistd.h>

namespace ztcp::log {
namespace {

constexpr std::size_t kMaxLine = 1024;

std::atomic<Sink> g_sink{nullptr};
std::atomic<int> g_file{-1};

void write_file(Level level, std::string_view text) {
  const int fd = g_file.load(std::memory_order_acquire);
  if (fd < 0) return;
  timespec now{};
  clock_gettime(CLOCK_REALTIME, &now);
  tm parts{};
  gmtime_r(&now.tv_sec, &parts);
  std::array<char, kMaxLine + 64> line;
  const auto end = fmt::format_to_n(
      line.begin(), line.size() - 1, "{:04}-{:02}-{:02}T{:02}:{:02}:{:02}.{:03}Z [{}] {} {}",
      parts.tm_year + 1900, parts.tm_mon + 1, parts.tm_mday, parts.tm_hour, parts.tm_min,
      parts.tm_sec, now.tv_nsec / 1'000'000, getpid(), level == Level::kWarn ? "WARN" : "INFO",
      text);
  *end.out = '\n';
  // One write per line: O_APPEND keeps lines of several ranks whole.
  [[maybe_unused]] const auto written =
      ::write(fd, line.data(), static_cast<std::size_t>(end.out - line.begin()) + 1);
}

Result<int> open_regular(const std::string& path) noexcept {
  // O_NONBLOCK: a FIFO that nobody reads fails at once.
  const int fd =
      ::open(path.c_str(),
             O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY, 0644);
  if (fd < 0) return fail_errno("open");
  struct stat file {};
  if (::fstat(fd, &file) == 0 && S_ISREG(file.st_mode) && file.st_nlink == 1) return fd;
  ::close(fd);
  return fail(Errc::kInvalidArgument, "not a regular file of one name");
}

}  // namespace

void bind(Sink sink) noexcept { g_sink.store(sink, std::memory_order_release); }

Status open_file(const std::string& path) noexcept {
  Result<int> opened = path.empty() ? Result<int>(-1) : open_regular(path);
  const int fd = opened.value_or(-1);
  const int old = g_file.load(std::memory_order_acquire);
  if (old >= 0 && fd >= 0 && ::dup3(fd, old, O_CLOEXEC) >= 0) {
    // Under the same number: another thread may be about to write to it.
    ::close(fd);
    return {};
  }
  g_file.store(fd, std::memory_order_release);
  if (old >= 0) ::close(old);
  if (!opened) return tl::unexpected(opened.error());
  return {};
}

void write(Level level, const char* file, int line, std::string_view text) noexcept {
  try {
    std::array<char, kMaxLine> buffer;
    const std::size_t n = std::min(text.size(), buffer.size() - 1);
    text.copy(buffer.data(), n);
    buffer[n] = '\0';
    if (const Sink sink = g_sink.load(std::memory_order_acquire))
      sink(level, file, line, buffer.data());
    write_file(level, {buffer.data(), n});
  } catch (...) {  // A line that cannot be formatted is lost; the training run is not.
  }
}

void vwrite(Level level, const char* file, int line, fmt::string_view format,
            fmt::format_args args) noexcept {
  try {
    std::array<char, kMaxLine> buffer;
    const auto end = fmt::vformat_to_n(buffer.begin(), buffer.size(), format, args);
    write(level, file, line, {buffer.data(), std::min(end.size, buffer.size())});
  } catch (...) {
  }
}

}  // namespace ztcp::log
