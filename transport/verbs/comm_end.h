// SPDX-License-Identifier: Apache-2.0
// Copyright the ztcp authors
//
// What the comms of both directions do alike: poll the completion queue, hear the control thread's
// news, and fail once, with the peer, the device, the queue pair and what mends it. One thread of
// NCCL's at a time, but for memory.
#pragma once

#include <array>
#include <chrono>
#include <memory>
#include <optional>
#include <string>

#include "transport/transport.h"
#include "transport/verbs/connection.h"
#include "transport/verbs/control.h"

namespace ztcp::verbs {

class CommEnd {
 public:
  CommEnd(std::shared_ptr<Control> control, std::shared_ptr<Connection> connection)
      : control_(std::move(control)), connection_(std::move(connection)) {}
  CommEnd(const CommEnd&) = delete;
  CommEnd& operator=(const CommEnd&) = delete;

  Connection& connection() const { return *connection_; }
  // What it failed of; absent: it lives.
  const std::optional<Error>& error() const { return error_; }

  // Ends the connection: says why, here and to the peer.
  Error fail(const Error& error, const std::string& detail) {
    return fail(error, detail, connection_->rails().first());
  }
  // Calls take(queue pair, completion) for some of those that are there. False: none was.
  template <class Take>
  Result<bool> poll(Take&& take);
  // Nothing is completed any more, and something of ours waits: for the peer to do its part, or
  // only for the NICs to end what is under way?
  Status hear_news(bool waits_for_peer);

  std::string describe_peer() const;
  Result<MemoryKey*> register_memory(const Region& region) {
    return connection_->rails().registrations.add(region);
  }
  Status deregister_memory(MemoryKey* key) {
    return connection_->rails().registrations.remove(key);
  }
  // Its comm is no more. What is under way is broken off, unless there is nothing.
  void close(bool is_idle);

 private:
  static constexpr std::size_t kCompletions = 16;

  Error fail(const Error& error, const std::string& detail, const Rail& rail);
  Error fail(const ibv_wc& completion, std::size_t strand);
  // Those of one rail. How many there were.
  template <class Take>
  Result<int> poll(std::size_t strand, Take&& take);

  const std::shared_ptr<Control> control_;
  const std::shared_ptr<Connection> connection_;
  std::optional<Error> error_;
  // When news came that end what waits: what the NIC has taken is still worth a while.
  std::optional<std::chrono::steady_clock::time_point> heard_at_;
};

template <class Take>
Result<bool> CommEnd::poll(Take&& take) {
  bool moved = false;
  const std::size_t count = connection_->strands().size();
  for (std::size_t i = 0; i < count; ++i) moved |= ZTCP_TRY(poll(i, take)) > 0;
  return moved;
}

template <class Take>
Result<int> CommEnd::poll(std::size_t strand, Take&& take) {
  std::array<ibv_wc, kCompletions> completions;
  const Connection::Strand& from = connection_->strands()[strand];
  const int count = from.queues->poll(completions);
  if (count < 0) [[unlikely]]
    return tl::unexpected(
        fail({Errc::kNoDevice, -count, "ibv_poll_cq"}, "the device is gone", *from.rail));
  for (int i = 0; i < count; ++i) {
    const ibv_wc& completion = completions[static_cast<std::size_t>(i)];
    if (completion.status != IBV_WC_SUCCESS) [[unlikely]]
      return tl::unexpected(fail(completion, strand));
    const std::uint32_t index = from.first_queue_pair + from.queues->index_of(completion.qp_num);
    if (const Status taken = take(index, completion); !taken) [[unlikely]]
      return tl::unexpected(fail(taken.error(), ""));
  }
  return count;
}

}  // namespace ztcp::verbs
