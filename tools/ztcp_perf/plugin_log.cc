// SPDX-License-Identifier: Apache-2.0
// Copyright the ztcp authors
#include "tools/ztcp_perf/plugin_log.h"

#include <array>
#include <cstdarg>
#include <cstddef>
#include <cstdio>
#include <mutex>

namespace ztcp::perf {
namespace {

constexpr std::size_t kMostKept = 256;

int g_rank = 0;
LogLevel g_level = LogLevel::kWarn;
std::mutex g_mutex;
std::vector<LogLine> g_kept;

// Plugins log from several threads.
void keep(bool is_warning, const char* text) {
  const std::lock_guard lock(g_mutex);
  if (g_kept.size() < kMostKept) g_kept.push_back({is_warning, text});
}

bool is_shown(bool is_warning) {
  return g_level == LogLevel::kInfo || (is_warning && g_level == LogLevel::kWarn);
}

extern "C" {
// NOLINTBEGIN(cert-dcl50-cpp): NCCL's logger is variadic.
__attribute__((format(printf, 5, 6))) static void log_line(ncclDebugLogLevel level, unsigned long,
                                                           const char* file, int line,
                                                           const char* format, ...) {
  if (level > NCCL_LOG_INFO) return;
  const bool is_warning = level <= NCCL_LOG_WARN;
  std::array<char, 2048> text;
  va_list args;
  va_start(args, format);
  std::vsnprintf(text.data(), text.size(), format, args);
  va_end(args);
  keep(is_warning, text.data());
  if (!is_shown(is_warning)) return;
  if (is_warning && file != nullptr)
    std::fprintf(stderr, "[%d] WARN %s:%d %s\n", g_rank, file, line, text.data());
  else
    std::fprintf(stderr, "[%d] %s %s\n", g_rank, is_warning ? "WARN" : "INFO", text.data());
}
// NOLINTEND(cert-dcl50-cpp)
}

}  // namespace

ncclDebugLogger_t make_logger(int rank, LogLevel level) {
  g_rank = rank;
  g_level = level;
  return log_line;
}

std::vector<LogLine> kept_log() {
  const std::lock_guard lock(g_mutex);
  return g_kept;
}

}  // namespace ztcp::perf
