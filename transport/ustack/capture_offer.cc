// SPDX-License-Identifier: Apache-2.0
// Copyright the ztcp authors
#include "transport/ustack/capture_offer.h"

#include <cstring>
#include <utility>

#include "core/log.h"
#include "core/process_mark.h"

namespace ztcp::ustack {

CaptureOffer::~CaptureOffer() {
  if (in_forked_child()) static_cast<void>(server_.release());
}

void CaptureOffer::add(const std::string& run_dir, const std::string& nic,
                       const link::LinkCapabilities& link, CaptureTaps taps) {
  if (run_dir.empty()) return;
  if (server_ == nullptr) {
    Result<std::unique_ptr<CaptureServer>> started = CaptureServer::start(run_dir);
    if (!started) {
      log::info("{}: ztcp_stat can't capture its frames: no socket in {}: {}: {}", nic, run_dir,
                started.error().where, std::strerror(started.error().sys_errno));
      return;
    }
    server_ = std::move(*started);
    at_end_.store(server_.get(), std::memory_order_release);
  }
  server_->add(nic, link.mac, link.mtu_bytes, std::move(taps));
}

void CaptureOffer::end() {
  if (CaptureServer* const server = at_end_.load(std::memory_order_acquire)) server->remove_file();
}

}  // namespace ztcp::ustack
