// SPDX-License-Identifier: Apache-2.0
// Copyright the ztcp authors
#include "plugin/listening.h"

#include <utility>

namespace ztcp::plugin {

Listening::Listening(std::unique_ptr<Listener> listener, std::string device,
                     std::chrono::milliseconds warn_after)
    : listener_(std::move(listener)), device_(std::move(device)), warn_after_(warn_after) {}

Listening::Listening(Errc code, std::string refusal, std::string device)
    : code_(code), refusal_(std::move(refusal)), device_(std::move(device)) {}

Told<RecvCommPtr> Listening::accept() {
  if (!listener_) return report(code_, "accepting on {} failed: {}", device_, refusal_);
  Result<RecvCommPtr> comm = listener_->accept();
  if (!comm)
    return report(comm.error().code, "accepting on {} failed: {}", device_, explain(comm.error()));
  if (*comm) return std::move(*comm);

  const auto now = std::chrono::steady_clock::now();
  if (!waiting_since_) {
    waiting_since_ = now;
  } else if (!said_waiting_ && now - *waiting_since_ >= warn_after_) {
    said_waiting_ = true;
    log::warn(
        "no peer has connected to {} for {} ms, still waiting; is the peer's process alive, does "
        "its log say why it does not connect, and does the network (security group, firewall) let "
        "TCP to our listen port through?",
        device_, warn_after_.count());
  }
  return nullptr;
}

}  // namespace ztcp::plugin
