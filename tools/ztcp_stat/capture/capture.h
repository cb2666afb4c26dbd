// SPDX-License-Identifier: Apache-2.0
// Copyright the ztcp authors
//
// `ztcp_stat capture`: writes the frames of a running process's userspace TCP to a pcapng file.
#pragma once

#include <cstdint>
#include <string>
#include <sys/types.h>

namespace CLI {
class App;
}

namespace ztcp::capture {

struct CaptureOptions {
  std::string device;                 // Empty: the only one that a process drives.
  std::string config;                 // Empty: ZTCP_CONFIG, or the default path.
  std::string filter;                 // As tcpdump takes it; empty: all frames.
  std::string output;                 // A file, or "-" for stdout.
  pid_t pid = 0;                      // 0: the only process that drives the device.
  std::uint32_t headers_bytes = 256;  // Kept of each frame; 0: all.
  std::uint32_t buffer_mib = 16;      // For each queue of the device.
};

// Adds the subcommand, which fills `options`.
CLI::App* add_capture_command(CLI::App& app, CaptureOptions& options);

// Captures until SIGINT, SIGTERM, the end of the process or of the reader of a pipe. Returns the
// exit status.
int run_capture(const CaptureOptions& options);

}  // namespace ztcp::capture
