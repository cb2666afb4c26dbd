// SPDX-License-Identifier: Apache-2.0
// Copyright the ztcp authors
#include "plugin/nccl_log.h"

#include <atomic>

#include "core/log.h"

namespace ztcp::plugin {
namespace {

std::atomic<ncclDebugLogger_t> g_logger{nullptr};

// NCCL's subsystem filter applies to INFO. NCCL_DEBUG_SUBSYS is INIT,BOOTSTRAP,ENV by default, so
// lines carry both bits to be seen without further settings.
void to_nccl_logger(log::Level level, const char* file, int line, const char* text) {
  const ncclDebugLogger_t logger = g_logger.load(std::memory_order_acquire);
  if (logger == nullptr) return;
  const ncclDebugLogLevel nccl_level = level == log::Level::kWarn ? NCCL_LOG_WARN : NCCL_LOG_INFO;
  logger(nccl_level, NCCL_INIT | NCCL_NET, file, line, "NET/ztcp : %s", text);
}

}  // namespace

void bind_nccl_log(ncclDebugLogger_t logger) noexcept {
  g_logger.store(logger, std::memory_order_release);
  log::bind(logger == nullptr ? nullptr : &to_nccl_logger);
}

}  // namespace ztcp::plugin
