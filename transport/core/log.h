// SPDX-License-Identifier: Apache-2.0
// Copyright the ztcp authors
//
// Every line the library says. It leaves through a sink (NCCL's logger, bound by plugin/) and,
// when ZTCP_LOG=FILE is set, through that file too; never through stdout or stderr. Before a sink
// is bound nothing is printed but the file still gets its lines.
//
// WARN: an operator must act; says what failed, the value, and the mending command.
// INFO: one line per device and per decision. Never called in steady state: the hot path counts.
//
// Thread-safe; formats into a stack buffer and drops the tail rather than allocate.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include <fmt/format.h>

#include "transport/core/result.h"

namespace ztcp::log {

enum class Level : std::uint8_t { kWarn, kInfo };

using Sink = void (*)(Level level, const char* file, int line, const char* text);
// Binds where lines go besides the file; nullptr unbinds. The last one wins.
void bind(Sink sink) noexcept;
// Opens (appending) the file that gets every line with a time stamp and the pid; empty closes it.
// The descriptor is close-on-exec. A failure closes the file that was open and is the caller's to
// report. Links, files of several names and what is no regular file are refused: in a folder open
// to all they are somebody's trap, and a FIFO would hold up the training; and files that hold
// something else than lines of ours, whose name was typed by mistake. `origin` stands in front of
// each line (log_origin.h), so that the lines of several hosts and ranks can be told apart. When
// the file takes no more (a full disk, ulimit -f) the sink is told once, and the file how many
// lines it lacks.
Status open_file(const std::string& path, std::string_view origin = {});

// These throw nothing, but are not noexcept: a logger may end its thread (pthread_exit(), as
// Python's does while the interpreter finalises), and that unwinds the callers of the logger.
void write(Level level, const char* file, int line, std::string_view text);
void vwrite(Level level, const char* file, int line, fmt::string_view format,
            fmt::format_args args);

// Carries the caller's place beside the format string, so that log functions need no macro.
struct Format {
  fmt::string_view text;
  const char* file;
  int line;
  // NOLINTNEXTLINE(google-explicit-constructor): a string literal must convert.
  template <class S>
  consteval Format(const S& s, const char* f = __builtin_FILE(), int l = __builtin_LINE())
      : text(s), file(f), line(l) {}
};

template <class... Args>
void warn(Format format, const Args&... args) {
  vwrite(Level::kWarn, format.file, format.line, format.text, fmt::make_format_args(args...));
}
template <class... Args>
void info(Format format, const Args&... args) {
  vwrite(Level::kInfo, format.file, format.line, format.text, fmt::make_format_args(args...));
}

}  // namespace ztcp::log
