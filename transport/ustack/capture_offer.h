// SPDX-License-Identifier: Apache-2.0
// Copyright the ztcp authors
//
// The captures that a process offers of its NICs' frames: a CaptureServer from its first NIC on. A
// process where none can be started runs on without, and says so.
#pragma once

#include <atomic>
#include <memory>
#include <string>

#include "transport/link/link.h"
#include "transport/ustack/capture_server.h"

namespace ztcp::ustack {

class CaptureOffer {
 public:
  CaptureOffer() = default;
  // In a forked child, which has no thread of the server's, the server is leaked.
  ~CaptureOffer();
  CaptureOffer(const CaptureOffer&) = delete;
  CaptureOffer& operator=(const CaptureOffer&) = delete;

  // One thread at a time. An empty `run_dir` offers none.
  void add(const std::string& run_dir, const std::string& nic, const link::LinkCapabilities& link,
           CaptureTaps taps);
  // Any thread, at the end of the process: takes no lock and allocates nothing.
  void end();

 private:
  std::unique_ptr<CaptureServer> server_;
  std::atomic<CaptureServer*> at_end_{nullptr};  // The same, for end().
};

}  // namespace ztcp::ustack
