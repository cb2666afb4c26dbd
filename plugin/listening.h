// SPDX-License-Identifier: Apache-2.0
// Copyright the ztcp authors
//
// The object NCCL holds as listenComm: a transport's listener, or a refusal in its place. Owned by
// Net's registry, used by one service thread.
#pragma once

#include <chrono>
#include <memory>
#include <optional>
#include <string>

#include "plugin/report.h"
#include "transport/transport.h"

namespace ztcp::plugin {

class Listening {
 public:
  // Warns once when no peer has connected for `warn_after`: NCCL itself would wait for ever in
  // silence.
  Listening(std::unique_ptr<Listener> listener, std::string device,
            std::chrono::milliseconds warn_after);
  // Every accept() fails with `refusal`.
  Listening(Errc code, std::string refusal, std::string device);

  // nullptr: no peer yet.
  Told<RecvCommPtr> accept();

 private:
  std::unique_ptr<Listener> listener_;  // Null when refusing.
  Errc code_ = Errc::kBadConfig;
  std::string refusal_;
  std::string device_;
  std::chrono::milliseconds warn_after_{};
  std::optional<std::chrono::steady_clock::time_point>
      waiting_since_;  // Time of the first empty accept().
  bool said_waiting_ = false;
};

}  // namespace ztcp::plugin
