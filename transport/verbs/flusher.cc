// SPDX-License-Identifier: Apache-2.0
// Copyright the ztcp authors
#include "transport/verbs/flusher.h"

#include <algorithm>
#include <array>
#include <cerrno>
#include <chrono>
#include <cstring>
#include <sys/random.h>
#include <utility>

#include <fmt/format.h>

#include "transport/verbs/completion_text.h"

namespace ztcp::verbs {
namespace {

// Longer times between two checks count as this: the process was stopped, or NCCL did not test.
constexpr Duration kLongestGap = std::chrono::milliseconds(100);
constexpr const char* kAlone = "its queue pairs can't be joined to one another: ";

}  // namespace

Result<Flusher, ReasonedError> Flusher::create(const Device& device, const PortAddress& address,
                                               const std::shared_ptr<ConnectionManager>& manager,
                                               Duration joined_within) {
  const QueuePairSettings settings{
      .count = 1, .receive_depth = 1, .reads = true, .answers_reads = !device.is_iwarp};
  Flusher out(ZTCP_TRY(QueuePairs::create(device, address, settings)));
  if (device.is_iwarp) {
    ZTCP_CHECK(out.join_by(manager, device, address, joined_within));
    return out;
  }
  RailFacts itself;
  out.reads_->tell(itself);
  ZTCP_CHECK(out.reads_->join(itself));
  return out;
}

// The reading end initiates, since it sends first.
Result<void, ReasonedError> Flusher::join_by(const std::shared_ptr<ConnectionManager>& manager,
                                             const Device& device, const PortAddress& address,
                                             Duration within) {
  const QueuePairSettings settings{.count = 1, .receive_depth = 1, .answers_reads = true};
  answers_ = ZTCP_TRY(QueuePairs::create(device, address, settings));
  const auto port = manager->listen(device);
  if (!port)
    return fail(port.error(),
                fmt::format("{}{}: {}", kAlone, port.error().where,
                            port.error().sys_errno != 0 ? std::strerror(port.error().sys_errno)
                                                        : ztcp::describe(port.error().code)));
  // Secret: with it, a stranger could join the end that answers.
  Nonce nonce{};
  if (getrandom(nonce.data(), nonce.size(), 0) != static_cast<ssize_t>(nonce.size()))
    return fail({Errc::kSystem, errno, "getrandom"},
                fmt::format("{}getrandom: {}", kAlone, std::strerror(errno)));
  RailFacts other;
  answers_->tell(other);
  other.port = *port;
  answers_->connect(manager, {}, false, nonce);
  reads_->connect(manager, other, true, nonce);
  is_joined_ = false;
  join_left_ = within;
  checked_ = std::chrono::steady_clock::now();
  return {};
}

Result<std::uint64_t> Flusher::begin(const std::byte* from, std::uint32_t rkey) {
  if (is_joined_) [[likely]]
    ZTCP_CHECK(reads_->post_read(from, rkey, next_));
  else
    waiting_.push_back({from, rkey, next_});
  return next_++;
}

// Whether the queue pairs are joined; if so, begins the flushes that wait.
Result<bool> Flusher::check_cm_connections() {
  for (const CmConnection* connection : {reads_->cm_connection(), answers_->cm_connection()})
    if (connection->state() == CmConnection::State::kFailed)
      return failed({Errc::kSystem, 0, "the connection manager"}, kAlone + connection->why());
  const auto now = std::chrono::steady_clock::now();
  join_left_ -= std::min<Duration>(now - std::exchange(checked_, now), kLongestGap);
  for (const CmConnection* connection : {reads_->cm_connection(), answers_->cm_connection()}) {
    if (connection->state() == CmConnection::State::kJoined) continue;
    if (join_left_ > Duration::zero()) return false;
    return failed({Errc::kSystem, 0, "the connection manager"},
                  std::string(kAlone) +
                      "nothing was heard of it in time; does a connection to the "
                      "port's own address go over it? dmesg may tell");
  }
  is_joined_ = true;
  for (const Read& read : std::exchange(waiting_, {}))
    ZTCP_CHECK(reads_->post_read(read.from, read.rkey, read.id));
  return true;
}

Result<bool> Flusher::is_done(std::uint64_t id) {
  if (!is_joined_ && !ZTCP_TRY(check_cm_connections())) [[unlikely]]
    return false;
  std::array<ibv_wc, 8> completions;
  const int count = id < done_ ? 0 : reads_->poll(completions);
  if (count < 0) return failed({Errc::kNoDevice, -count, "ibv_poll_cq"}, "the device is gone");
  for (int i = 0; i < count; ++i) {
    const ibv_wc& completion = completions[static_cast<std::size_t>(i)];
    if (completion.status != IBV_WC_SUCCESS) {
      const CompletionText text = describe(completion.status);
      return failed({Errc::kSystem, 0, "flush"}, fmt::format("{}; {}", text.words, text.advice));
    }
    done_ = completion.wr_id + 1;
  }
  return id < done_;
}

tl::unexpected<Error> Flusher::failed(const Error& error, std::string why) {
  why_ = std::move(why);
  return tl::unexpected(error);
}

}  // namespace ztcp::verbs
