// SPDX-License-Identifier: Apache-2.0
// Copyright the ztcp authors
//
// Chooses the process to capture by the config and the sockets in its run directory, and says why a
// device can't be captured.
#pragma once

#include <string>
#include <vector>

#include <tl/expected.hpp>

#include "config/settings.h"
#include "tools/ztcp_stat/capture/capture.h"
#include "tools/ztcp_stat/capture/jobs.h"

namespace ztcp::capture {

struct Choice {
  Job job;
  std::string device;
};
// All errors are sentences for the user, without a full stop.
//
// Why the config's device of this name can't be captured; empty: it can, or `device` is empty.
std::string obstacle(const config::Fabric& fabric, const std::string& device);
// The only job that fits the options.
tl::expected<Choice, std::string> choose(const CaptureOptions& options, const Jobs& jobs,
                                         const std::string& run_dir);

}  // namespace ztcp::capture
