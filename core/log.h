// SPDX-License-Identifier: Apache-2.0
// Copyright the ztcp authors
//
// All log lines of the library. They leave through a sink (NCCL's logger, bound by plugin/) and,
// when ZTCP_LOG=FILE is set, through that file too; never through stdout or stderr. Before a sink
// is bound nothing is printed, but the file gets its lines.
//
// WARN: an operator must act; gives the failure, the value, and the mending command.
// INFO: one line per device and per decision. Never called in steady state: the hot path counts.
//
// Thread-safe; formats into a stack buffer and cuts long lines rather than allocate.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include <fmt/format.h>

#include "core/result.h"

namespace ztcp::log {

enum class Level : std::uint8_t { kWarn, kInfo };

using Sink = void (*)(Level level, const char* file, int line, const char* text);
// Sets the destination of lines besides the file; nullptr unbinds. The last call wins.
void bind(Sink sink) noexcept;
// Opens the file, for appending, that gets every line with a time stamp and the pid; empty closes
// it. The descriptor is close-on-exec. A failure closes the file that was open and is the caller's
// to report. Refused are links, files with several names and irregular files: in a world-writable
// folder they may be a trap, and a FIFO would block the training. A file with other content than
// our lines is refused, too: its name was mistyped. `origin` stands in front of each line
// (log_origin.h), so that the lines of several hosts and ranks can be told apart. When the file
// accepts no more (a full disk, ulimit -f), the sink is told once, and later the file how many
// lines it lacks.
Status open_file(const std::string& path, std::string_view origin = {});

// These throw nothing, but are not noexcept: a logger may end its thread (pthread_exit(), as
// Python's does while the interpreter finalises), and that unwinds the callers of the logger.
void write(Level level, const char* file, int line, std::string_view text);
void vwrite(Level level, const char* file, int line, fmt::string_view format,
            fmt::format_args args);

// Carries the caller's file and line beside the format string, so that log functions need no macro.
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
