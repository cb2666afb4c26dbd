// SPDX-License-Identifier: Apache-2.0
// Copyright the ztcp authors
//
// `ztcp_stat --prometheus DIR` and `ztcp_stat --listen ADDRESS:PORT`.
#pragma once

#include <atomic>
#include <functional>
#include <string>

#include "tools/ztcp_stat/look/look.h"

namespace ztcp::stat {

// The metrics' text. A page that can't be read counts as damaged.
std::string metrics_of(const Look& look);

// Writes DIR/ztcp.prom for the node exporter's textfile collector, readable by all. Returns the
// exit status, after a message on stderr.
int write_textfile(const std::string& dir, const std::string& metrics);

// Serves /metrics at "127.0.0.1:9469", "[::1]:9469" or ":9469" (every address) until `stop`. The
// exit status likewise.
int listen_for_scrapes(const std::string& at, const std::function<std::string()>& metrics,
                       const std::atomic<bool>& stop);

}  // namespace ztcp::stat
