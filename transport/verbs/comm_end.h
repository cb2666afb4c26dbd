// SPDX-License-Identifier: Apache-2.0
// Copyright the ztcp authors
//
// The part that comms of both directions share: it polls the completion queues, watches the state
// of the peer, and fails the comm once, with a message that names the peer, the device, the queue
// pair and a remedy. One thread of NCCL's at a time; memory may be registered by another.
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
  // Holds the connection's lock for one call of NCCL's. Its destructor first releases the lock and
  // then sends the pending messages to the peer, which takes no memory.
  class Scope {
   public:
    explicit Scope(CommEnd& end) : end_(end), lock_(end.connection_->lock()) {}
    ~Scope() {
      if (!end_.is_untold_ && !end_.connection_->needs_attention()) [[likely]]
        return;
      end_.lose_broken();
      if (lock_) lock_.unlock();
      end_.tell();
    }
    Scope(const Scope&) = delete;
    Scope& operator=(const Scope&) = delete;

   private:
    CommEnd& end_;
    std::unique_lock<std::mutex> lock_;
  };

  // Why it has failed; absent: it has not.
  const std::optional<Error>& error() const { return error_; }

  // Ends the connection, and logs the reason here and at the peer.
  Error fail(const Error& error, const std::string& detail) {
    return fail(error, detail, connection_->rails().first());
  }
  // Processes some of the completions. False: there were none.
  Result<bool> poll();
  // The rail has failed. False: it was the last one, so the connection has failed.
  bool lose(std::size_t rail, const std::string& why) {
    return connection_->recovery().lose(rail, why);
  }
  // Fails the comm if the peer has ended. Called when a poll found no completion and a request
  // still waits; `waits_for_peer`: for an action of the peer, not only for the NICs to complete
  // work.
  Status check_peer(bool waits_for_peer);

  std::string describe_peer() const;
  Result<MemoryKey*> register_memory(const Region& region);
  Status deregister_memory(MemoryKey* key) {
    return connection_->rails().registrations.remove(key);
  }
  // The comm is closed. Messages in flight are aborted.
  void close();

 private:
  static constexpr std::size_t kCompletions = 16;

  Error fail(const Error& error, const std::string& detail, const Rail& rail,
             const std::string& advice = {});
  Error fail(const ibv_wc& completion, std::size_t rail);
  // Completions of one rail. Returns their number.
  Result<int> poll(std::size_t rail);
  Result<int> poll_stream(std::size_t rail);
  // Without the advice that verbs::describe() has.
  std::string describe(const ibv_wc& completion, std::size_t rail) const;
  void tell() noexcept;
  void lose_broken() noexcept;

  const std::shared_ptr<ControlThread> control_thread_;
  const std::shared_ptr<Connection> connection_;
  std::optional<Error> error_;
  bool is_untold_ = false;  // The peer is not told of the failure yet.
  std::string untold_;
};

}  // namespace ztcp::verbs
