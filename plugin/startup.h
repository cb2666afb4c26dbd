// SPDX-License-Identifier: Apache-2.0
// Copyright the ztcp authors
//
// The policy of init: what is loud, what is soft, and what NCCL is shown when the config can't be
// honoured ("Loud, never slow" in ARCHITECTURE.md).
//
//   no config             init fails; NCCL goes on without us, or ends the job if NCCL_NET names
//                         us, after a warning that says which, and how to set up
//   config unusable here  init succeeds and shows devices, so that jobs inside one host run on;
//                         every connection is refused with the reason
//   the same, with        init fails, after a warning that all hosts must fall back together
//   ZTCP_ON_ERROR=fallback
#pragma once

#include <functional>
#include <memory>
#include <string>

#include "config/environment.h"
#include "config/load.h"
#include "plugin/net.h"

namespace ztcp::plugin {

// What start-up asks the rest of the library for. Tests answer instead.
struct StartupSources {
  std::function<config::LoadResult(const std::string& path)> load;
  std::function<config::Problems(const config::Fabric&)> check_host;
  std::function<Result<std::unique_ptr<Transport>>(const config::Fabric&)> create_transport;
};

Told<Startup> start_up(const StartupSources& sources, const config::Environment& environment,
                       const std::string& host);

}  // namespace ztcp::plugin
