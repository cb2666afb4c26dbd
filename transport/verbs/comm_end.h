// SPDX-License-Identifier: Apache-2.0
// Copyright the ztcp authors
//
// What the comms of both directions do alike: poll the completion queue, hear the control thread's
// events, and fail once, with the peer, the device, the queue pair and what mends it. One thread of
// NCCL's at a time, but for memory.
#pragma once

#include <array>
#include <memory>
#include <mutex>
#include <optional>
#include <string>

#include "transport/transport.h"
#include "transport/verbs/connection.h"
#include "transport/verbs/control_thread.h"

namespace ztcp::verbs {

class CommEnd {
 public:
  CommEnd(std::shared_ptr<ControlThread> control_thread, std::shared_ptr<Connection> connection)
      : control_thread_(std::move(control_thread)), connection_(std::move(connection)) {
    connection_->rails().carried.opened();
  }
  CommEnd(const CommEnd&) = delete;
  CommEnd& operator=(const CommEnd&) = delete;

  Connection& connection() const { return *connection_; }
  Duration connect_timeout() const { return control_thread_->connect_timeout(); }
  // Who uses the connection: what is to be told to the peer is told at its end, once nothing of the
  // connection is locked any more. That takes no memory.
  class Turn {
   public:
    explicit Turn(CommEnd& end) : end_(end), lock_(end.connection_->lock()) {}
    ~Turn() {
      if (!end_.is_untold_ && !end_.connection_->needs_attention()) [[likely]]
        return;
      end_.lose_broken();
      if (lock_) lock_.unlock();
      end_.tell();
    }
    Turn(const Turn&) = delete;
    Turn& operator=(const Turn&) = delete;

   private:
    CommEnd& end_;
    std::unique_lock<std::mutex> lock_;
  };

  // What it failed of; absent: it lives.
  const std::optional<Error>& error() const { return error_; }

  // Ends the connection: says why, here and to the peer.
  Error fail(const Error& error, const std::string& detail) {
    return fail(error, detail, connection_->rails().first());
  }
  // Takes some of the completions that are there. False: none was.
  Result<bool> poll();
  // The rail has failed. False: it was the last, and the connection has.
  bool lose(std::size_t rail, const std::string& why) {
    return connection_->recovery().lose(rail, why);
  }
  // Nothing is completed any more, and something of ours waits: for the peer to do its part, or
  // only for the NICs to end what is under way?
  Status check_peer(bool waits_for_peer);

  std::string describe_peer() const;
  Result<MemoryKey*> register_memory(const Region& region);
  Status deregister_memory(MemoryKey* key) {
    return connection_->rails().registrations.remove(key);
  }
  // Its comm is no more. What is under way is broken off, unless there is nothing.
  void close();

 private:
  static constexpr std::size_t kCompletions = 16;

  Error fail(const Error& error, const std::string& detail, const Rail& rail);
  Error fail(const ibv_wc& completion, std::size_t rail);
  // Those of one rail. How many there were.
  Result<int> poll(std::size_t rail);
  Result<int> poll_stream(std::size_t rail);
  std::string describe(const ibv_wc& completion, std::size_t rail) const;
  void tell() noexcept;
  void lose_broken() noexcept;

  const std::shared_ptr<ControlThread> control_thread_;
  const std::shared_ptr<Connection> connection_;
  std::optional<Error> error_;
  bool is_untold_ = false;  // To the peer.
  std::string untold_;
};

}  // namespace ztcp::verbs
