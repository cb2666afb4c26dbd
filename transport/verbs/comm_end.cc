// SPDX-License-Identifier: Apache-2.0
// Copyright the ztcp authors
#include "transport/verbs/comm_end.h"

#include <fmt/format.h>

#include "transport/verbs/completion_text.h"

namespace ztcp::verbs {
namespace {

constexpr auto kGrace = std::chrono::milliseconds(50);

const char* verb(Direction direction) {
  return direction == Direction::kSend ? "sending to" : "receiving from";
}

}  // namespace

Error CommEnd::fail(const Error& error, const std::string& detail, const Rail& rail) {
  error_ = error;
  const std::string number =
      error.sys_errno != 0 ? fmt::format(", errno {}", error.sys_errno) : std::string();
  connection_->rails().first().ends.failed(
      connection_->peer().address, error.code,
      fmt::format("{} {} over {} port {} failed: {} ({}{}){}{}{}", verb(connection_->direction()),
                  to_string(connection_->peer()), rail.device.hca, rail.device.port,
                  describe(error.code), error.where, number, detail.empty() ? "" : ": ", detail,
                  rail.is_port_down.load(std::memory_order_relaxed)
                      ? fmt::format("; port {} of {} is down", rail.device.port, rail.device.hca)
                      : ""));
  control_->tell(connection_, error.code, detail.empty() ? error.where : detail);
  connection_->abort();
  return error;
}

Error CommEnd::fail(const ibv_wc& completion, std::size_t strand) {
  const CompletionText text = describe(completion.status);
  // A queue pair that the peer broke is flushed: the news say of what.
  if (completion.status == IBV_WC_WR_FLUSH_ERR && connection_->news() != News::kNone)
    return fail({connection_->news_code(), 0, "the peer"}, connection_->news_text());
  const Connection::Strand& from = connection_->strands()[strand];
  const QueuePairs& queues = *from.queues;
  const std::uint32_t index = queues.index_of(completion.qp_num);
  const RailFacts& peer = connection_->peer_facts().on[strand];
  const std::uint32_t theirs = index < queues.count() ? peer.numbers[index] : 0;
  return fail(
      {text.code, 0, text.name},
      fmt::format("queue pair {:#x} to {:#x} of {}, GID {}: {} (status {}, vendor error "
                  "{:#x}); {}",
                  completion.qp_num, theirs, device_of(peer), to_string(peer.gid), text.words,
                  static_cast<int>(completion.status), completion.vendor_err, text.advice),
      *from.rail);
}

Status CommEnd::hear_news(bool waits_for_peer) {
  const News news = connection_->news();
  if (news == News::kNone) [[likely]]
    return {};
  if (news == News::kFarewell && !waits_for_peer) return {};
  if (news != News::kDeviceLost) {
    const auto now = std::chrono::steady_clock::now();
    if (!heard_at_) heard_at_ = now;
    if (now - *heard_at_ < kGrace) return {};
  }
  const char* const who = news == News::kDeviceLost ? "our device" : "the peer";
  return tl::unexpected(
      fail({connection_->news_code(), 0, who},
           news == News::kFarewell ? "it has closed the connection" : connection_->news_text()));
}

std::string CommEnd::describe_peer() const {
  return fmt::format("{} on {}", to_string(connection_->peer()), connection_->rails().name);
}

void CommEnd::close(bool is_idle) {
  if (connection_->phase() == Connection::Phase::kReady && !is_idle && !error_)
    connection_->abort();
  if (is_idle || error_)
    control_->close(connection_, Farewell::kInPeace, "");
  else
    control_->close(connection_, static_cast<std::uint8_t>(Errc::kPeerClosed),
                    "it closed the connection with messages under way");
}

}  // namespace ztcp::verbs
