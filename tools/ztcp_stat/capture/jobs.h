// SPDX-License-Identifier: Apache-2.0
// Copyright the ztcp authors
//
// The processes whose frames can be captured, found by their sockets in a run directory, and the
// start of a capture (stats/capture_wire.h).
#pragma once

#include <cstdint>
#include <string>
#include <sys/types.h>
#include <vector>

#include <tl/expected.hpp>

#include "core/descriptor.h"
#include "transport/stats/capture_wire.h"

namespace ztcp::capture {

// A process that answered.
struct Job {
  std::string socket_path;
  pid_t pid = 0;  // As this program sees it; 0: it can't be seen from here (another container).
  std::string command;
  std::vector<std::string> devices;
};
struct Jobs {
  std::vector<Job> found;
  // Sentences about sockets without an answer: other users' processes, other versions.
  std::vector<std::string> passed_over;
};
// Removes sockets of this user's dead processes.
Jobs find_jobs(const std::string& run_dir);

// "process 4711 (python3)".
std::string to_string(const Job& job);

struct StartedCapture {
  Descriptor socket;  // Readable when the process ends the capture.
  Descriptor rings;
  Descriptor cursors;
  stats::CaptureAnswer facts;
};
// The error is a sentence for the user, without a full stop.
tl::expected<StartedCapture, std::string> start(const Job& job, const std::string& device,
                                                std::uint32_t ring_bytes, std::uint32_t snap_bytes);

}  // namespace ztcp::capture
