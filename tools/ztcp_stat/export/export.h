// SPDX-License-Identifier: Apache-2.0
// Copyright the ztcp authors
//
// `ztcp_stat --prometheus DIR` and `ztcp_stat --listen ADDRESS:PORT`.
#pragma once

#include <atomic>
#include <filesystem>
#include <span>
#include <string>

namespace ztcp::stat {

// Reads the pages of these folders and makes the metrics' text. A page that can't be read counts as
// damaged.
std::string metrics_of(std::span<const std::filesystem::path> folders);

// Writes DIR/ztcp.prom for the node exporter's textfile collector, readable by all. Returns the
// exit status, after a message on stderr.
int write_textfile(const std::string& dir, std::span<const std::filesystem::path> folders);

// Serves /metrics at "127.0.0.1:9469", "[::1]:9469" or ":9469" (every address) until `stop`. The
// exit status likewise.
int listen_for_scrapes(const std::string& at, std::span<const std::filesystem::path> folders,
                       const std::atomic<bool>& stop);

}  // namespace ztcp::stat
