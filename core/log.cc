// SPDX-License-Identifier: Apache-2.0
// Copyright the ztcp authors
#include "core/log.h"

#include <algorithm>
#include <array>
#include <atomic>
#include <cerrno>
#include <csignal>
#include <cstring>
#include <ctime>
#include <exception>
#include <fcntl.h>
#include <iterator>
#include <string>
#include <sys/stat.h>
#include <unistd.h>

#include "core/file_size_signal.h"
#include "core/standard_streams.h"

namespace ztcp::log {
namespace {

constexpr std::size_t kMaxLine = 1024;

std::atomic<Sink> g_sink{nullptr};
std::atomic<int> g_file{-1};
std::atomic<std::uint64_t> g_lost{0};  // Lines that the file has refused since the last one it
                                       // accepted.
std::atomic<bool> g_torn{false};       // The file holds a part of a line.

// The text before the pid in each line of the file. Two buffers, so that a line that is being
// formatted keeps its text when another origin is set. A process sets it once, or the same again.
constexpr std::size_t kMaxOrigin = 96;
std::array<std::array<char, kMaxOrigin>, 2> g_origins{};
std::atomic<const char*> g_origin{g_origins[0].data()};

void set_origin(std::string_view origin) {
  const char* const now = g_origin.load(std::memory_order_relaxed);
  origin = origin.substr(0, kMaxOrigin - sizeof " pid ");
  std::array<char, kMaxOrigin> text{};
  if (!origin.empty()) fmt::format_to_n(text.begin(), text.size() - 1, "{} pid ", origin);
  if (std::strcmp(now, text.data()) == 0) return;
  auto& other = g_origins[now == g_origins[0].data() ? 1 : 0];
  other = text;
  g_origin.store(other.data(), std::memory_order_release);
}

// 0, or the errno for which `text` is not in the file, or not as a whole.
int append(int fd, std::string_view text) {
  FileSizeSignal signal;
  const std::size_t whole = text.size();
  while (!text.empty()) {
    const ssize_t written = ::write(fd, text.data(), text.size());
    if (written > 0) {
      // A short write: the next attempt writes nothing and returns the reason.
      text.remove_prefix(static_cast<std::size_t>(written));
    } else if (written == 0 || errno != EINTR) {
      const int why = written == 0 ? EIO : errno;
      if (why == EFBIG) signal.raised();
      if (text.size() < whole) g_torn.store(true, std::memory_order_relaxed);
      return why;
    }
  }
  return 0;
}

std::string_view advice(int why) {
  switch (why) {
    case EFBIG:
      return "raise the limit of file sizes (ulimit -f), or name another file";
    case ENOSPC:
    case EDQUOT:
      return "make room there (df -h), or name another file";
    default:
      return "look at its disk, or name another file";
  }
}

// One warning each time that the file stops accepting lines.
void tell_loss(int why) {
  const Sink sink = g_sink.load(std::memory_order_acquire);
  if (g_lost.fetch_add(1, std::memory_order_release) != 0 || sink == nullptr) return;
  std::array<char, kMaxLine> text;
  const auto end = fmt::format_to_n(text.begin(), text.size() - 1,
                                    "ZTCP_LOG takes no more lines ({}), so only NCCL's log has "
                                    "them: {}",
                                    std::strerror(why), advice(why));
  *end.out = '\0';
  sink(Level::kWarn, __FILE__, __LINE__, text.data());
}

using Line = std::array<char, kMaxLine + 64 + kMaxOrigin>;

// Formats `text` in `line`, as a line of the file.
std::string_view form(Line& line, Level level, std::string_view text) {
  timespec now{};
  clock_gettime(CLOCK_REALTIME, &now);
  tm parts{};
  gmtime_r(&now.tv_sec, &parts);
  const auto end = fmt::format_to_n(
      line.begin(), line.size() - 1, "{:04}-{:02}-{:02}T{:02}:{:02}:{:02}.{:03}Z [{}{}] {} {}",
      parts.tm_year + 1900, parts.tm_mon + 1, parts.tm_mday, parts.tm_hour, parts.tm_min,
      parts.tm_sec, now.tv_nsec / 1'000'000, g_origin.load(std::memory_order_acquire), getpid(),
      level == Level::kWarn ? "WARN" : "INFO", text);
  *end.out = '\n';
  return {line.data(), static_cast<std::size_t>(end.out - line.begin()) + 1};
}

// Writes into the file that lines are missing. False: it still accepts nothing.
bool tell_gap(int fd) {
  if (g_lost.load(std::memory_order_relaxed) == 0) return true;
  // One thread takes the count, and restores it if its write fails.
  const std::uint64_t lost = g_lost.exchange(0, std::memory_order_acquire);  // With g_torn.
  const bool torn = g_torn.exchange(false, std::memory_order_relaxed);
  std::array<char, 64> text;
  const auto end = fmt::format_to_n(text.begin(), text.size(), "{} lines are missing here", lost);
  Line line;
  const bool told = (!torn || append(fd, "\n") == 0) &&
                    append(fd, form(line, Level::kWarn, {text.data(), end.size})) == 0;
  if (told) return true;
  if (torn) g_torn.store(true, std::memory_order_relaxed);
  g_lost.fetch_add(lost, std::memory_order_release);
  return false;
}

void write_file(Level level, std::string_view text) {
  const int fd = g_file.load(std::memory_order_acquire);
  if (fd < 0) return;
  // One write per line: O_APPEND keeps lines of several ranks whole.
  Line line;
  const int why = tell_gap(fd) ? append(fd, form(line, level, text)) : EIO;
  if (why != 0) tell_loss(why);
}

// Whether the file begins as our lines do: a mistyped name may be that of any other file.
bool may_be_log(int fd) {
  constexpr std::string_view kForm = "dddd-dd-ddTdd:dd:dd.dddZ [";
  std::array<char, kForm.size()> begin;
  const ssize_t size = ::pread(fd, begin.data(), begin.size(), 0);
  // A file that may be written but not read is accepted.
  for (ssize_t i = 0; i < size; ++i) {
    const char c = begin[static_cast<std::size_t>(i)];
    const char wanted = kForm[static_cast<std::size_t>(i)];
    if (wanted == 'd' ? c < '0' || c > '9' : c != wanted) return false;
  }
  return true;
}

Result<int> open_regular(const std::string& path) {
  // O_NONBLOCK: opening a FIFO without a reader fails at once.
  constexpr int kFlags = O_CREAT | O_APPEND | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY;
  int fd = off_standard_streams(::open(path.c_str(), O_RDWR | kFlags, 0644));
  if (fd < 0 && errno == EACCES)
    fd = off_standard_streams(::open(path.c_str(), O_WRONLY | kFlags, 0644));
  if (fd < 0) return fail_errno("open");
  struct stat file {};
  const bool plain = ::fstat(fd, &file) == 0 && S_ISREG(file.st_mode) && file.st_nlink == 1;
  if (plain && may_be_log(fd)) return fd;
  ::close(fd);
  return fail(Errc::kInvalidArgument,
              plain ? "its content is not a ztcp log" : "not a regular file of one name");
}

}  // namespace

void bind(Sink sink) noexcept { g_sink.store(sink, std::memory_order_release); }

Status open_file(const std::string& path, std::string_view origin) {
  set_origin(origin);
  Result<int> opened = path.empty() ? Result<int>(-1) : open_regular(path);
  const int fd = opened.value_or(-1);
  g_lost.store(0, std::memory_order_relaxed);
  g_torn.store(false, std::memory_order_relaxed);
  const int old = g_file.load(std::memory_order_acquire);
  if (old >= 0 && fd >= 0 && ::dup3(fd, old, O_CLOEXEC) >= 0) {
    // Keeps the descriptor's number: another thread may be about to write to it.
    ::close(fd);
    return {};
  }
  g_file.store(fd, std::memory_order_release);
  if (old >= 0) ::close(old);
  if (!opened) return tl::unexpected(opened.error());
  return {};
}

void write(Level level, const char* file, int line, std::string_view text) {
  try {
    std::array<char, kMaxLine> buffer;
    const std::size_t n = std::min(text.size(), buffer.size() - 1);
    text.copy(buffer.data(), n);
    buffer[n] = '\0';
    if (const Sink sink = g_sink.load(std::memory_order_acquire))
      sink(level, file, line, buffer.data());
    write_file(level, {buffer.data(), n});
  } catch (const std::exception&) {  // A line that can't be formatted is dropped; the run goes on.
  }
}

void vwrite(Level level, const char* file, int line, fmt::string_view format,
            fmt::format_args args) {
  try {
    std::array<char, kMaxLine> buffer;
    const auto end = fmt::vformat_to_n(buffer.begin(), buffer.size(), format, args);
    write(level, file, line, {buffer.data(), std::min(end.size, buffer.size())});
  } catch (const std::exception&) {
  }
}

}  // namespace ztcp::log
