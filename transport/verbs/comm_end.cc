// SPDX-License-Identifier: Apache-2.0
// Copyright the ztcp authors
#include "transport/verbs/comm_end.h"

#include <algorithm>
#include <cstring>
#include <new>
#include <numeric>
#include <utility>

#include <fmt/format.h>

#include "core/failure_sentence.h"
#include "core/log.h"
#include "transport/verbs/completion_text.h"
#include "transport/verbs/peer_probe.h"

namespace ztcp::verbs {
namespace {

// Whether the failure is the rail's own, so that another rail can go on. The other failures concern
// memory, or values that both ends agreed upon.
bool is_of_rail(ibv_wc_status status) {
  switch (status) {
    case IBV_WC_WR_FLUSH_ERR:
    case IBV_WC_RETRY_EXC_ERR:
    case IBV_WC_RNR_RETRY_EXC_ERR:
    case IBV_WC_RESP_TIMEOUT_ERR:
    case IBV_WC_REM_OP_ERR:
    case IBV_WC_REM_ABORT_ERR:
    case IBV_WC_FATAL_ERR:
    case IBV_WC_GENERAL_ERR:
      return true;
    default:
      return false;
  }
}

}  // namespace

Error CommEnd::fail(const Error& error, const std::string& detail, const Rail& rail,
                    const std::string& advice) {
  error_ = error;
  connection_->note_failed();
  const Carried carried = connection_->carried();
  const bool is_down = rail.is_port_down.load(std::memory_order_relaxed);
  connection_->rails().first().ends.failed(
      connection_->peer().address, error.code,
      to_string({.direction = connection_->direction(),
                 .remote = connection_->peer(),
                 .over = rail.device.place(),
                 .error = error,
                 .reason = {},
                 .detail = detail,
                 .messages_done = carried.messages,
                 .bytes_done =
                     std::accumulate(carried.bytes.begin(), carried.bytes.end(), std::uint64_t{0}),
                 .in_flight = connection_->traffic().in_flight(),
                 .more = {is_down ? fmt::format("port {} of {} is down", rail.device.port,
                                                rail.device.hca)
                                  : std::string(),
                          advice}}));
  is_untold_ = true;
  untold_ = !detail.empty()        ? detail
            : error.sys_errno != 0 ? std::strerror(error.sys_errno)
                                   : error.where;
  if (!advice.empty()) untold_ += "; " + advice;
  connection_->traffic().abort();
  return error;
}

void CommEnd::tell() noexcept {
  if (std::exchange(is_untold_, false)) control_thread_->tell(connection_, error_->code, untold_);
  control_thread_->send_notes(connection_);
}

// Without memory for the message, the next call still finds the rail broken.
void CommEnd::lose_broken() noexcept {
  try {
    if (error_ || !connection_->traffic().has_broken()) return;
    if (const Status lost = connection_->recovery().lose_broken(); !lost)
      (void)fail(lost.error(), "");
  } catch (const std::bad_alloc&) {
  }
}

std::string CommEnd::describe(const ibv_wc& completion, std::size_t rail) const {
  const CompletionText text = verbs::describe(completion.status);
  const QueuePairs& queues = *connection_->rail_states()[rail].queues;
  const std::uint32_t index = queues.index_of(completion.qp_num);
  const RailFacts& peer = connection_->peer_facts().on[rail];
  const std::uint32_t theirs = index < queues.count() ? peer.numbers[index] : 0;
  return fmt::format("queue pair {:#x} to {:#x} of {}, GID {}: {} (status {}, vendor error {:#x})",
                     completion.qp_num, theirs, device_of(peer), to_string(peer.gid), text.words,
                     static_cast<int>(completion.status), completion.vendor_err);
}

Error CommEnd::fail(const ibv_wc& completion, std::size_t rail) {
  // When the peer breaks a queue pair, its work is flushed; the peer's event says why.
  if (completion.status == IBV_WC_WR_FLUSH_ERR && connection_->peer_status().has_ended())
    return fail({connection_->peer_status().code(), 0, "the peer"},
                connection_->peer_status().text());
  const CompletionText text = verbs::describe(completion.status);
  return fail({text.code, 0, text.name}, describe(completion, rail),
              *connection_->rail_states()[rail].rail, text.advice);
}

Result<bool> CommEnd::poll() {
  bool moved = false;
  connection_->traffic().figures().polls.add();
  const std::size_t count = connection_->rail_states().size();
  for (std::size_t i = 0; i < count; ++i) moved |= ZTCP_TRY(poll(i)) > 0;
  return moved;
}

Result<int> CommEnd::poll(std::size_t index) {
  std::array<ibv_wc, kCompletions> completions;
  const RailState& rail_state = connection_->rail_states()[index];
  if (!rail_state.is_polled()) [[unlikely]]
    return 0;
  if (!rail_state.queues) [[unlikely]]
    return poll_stream(index);
  const int count = rail_state.queues->poll(completions);
  if (count < 0) [[unlikely]] {
    if (lose(index, "the device is gone")) return 0;
    return tl::unexpected(
        fail({Errc::kNoDevice, 0, "ibv_poll_cq"}, "the device is gone", *rail_state.rail));
  }
  Figures& figures = connection_->traffic().figures();
  if (count != 0) figures.completions.add(static_cast<std::uint64_t>(count));
  for (int i = 0; i < count; ++i) {
    const ibv_wc& completion = completions[static_cast<std::size_t>(i)];
    if (completion.status != IBV_WC_SUCCESS) [[unlikely]]
      figures.note_error(completion.status);
    if (rail_state.is_draining()) [[unlikely]] {
      connection_->recovery().take_drained(index, completion);
      continue;
    }
    if (completion.status != IBV_WC_SUCCESS) [[unlikely]] {
      if (!is_of_rail(completion.status) ||
          !lose(index,
                describe(completion, index) + "; " + verbs::describe(completion.status).advice))
        return tl::unexpected(fail(completion, index));
      // A sender needs nothing from the remaining completions.
      if (!rail_state.is_polled()) return i + 1;
      connection_->recovery().take_drained(index, completion);
      continue;
    }
    if (const Status taken = connection_->traffic().take(rail_state, completion); !taken)
        [[unlikely]]
      return tl::unexpected(fail(taken.error(), ""));
  }
  if (rail_state.is_draining()) [[unlikely]]
    connection_->recovery().finish_draining(index);
  return count;
}

Result<int> CommEnd::poll_stream(std::size_t index) {
  const RailState& rail_state = connection_->rail_states()[index];
  if (!rail_state.stream) return 0;  // The sender has not dialled yet.
  std::array<PieceStream::Told, kCompletions> told;
  const auto count = rail_state.stream->pieces.poll(told);
  if (!count) {
    const Error& error = count.error();
    const std::string why = error.sys_errno == 0 ? ztcp::describe(error.code)
                                                 : std::string(std::strerror(error.sys_errno));
    // A protocol error is the peer's fault, not the rail's.
    if (error.code != Errc::kProtocol && lose(index, why)) return 0;
    return tl::unexpected(fail(error, "", *rail_state.rail));
  }
  for (std::size_t i = 0; i < *count; ++i)
    if (const Status taken = connection_->traffic().take(rail_state, told[i]); !taken)
      return tl::unexpected(fail(taken.error(), ""));
  return static_cast<int>(*count);
}

Status CommEnd::check_peer(bool waits_for_peer) {
  PeerStatus& peer = connection_->peer_status();
  const PeerEvent event = peer.event();
  if (event == PeerEvent::kNone) [[likely]]
    return {};
  // The peer holds all that was sent, even if the last acknowledgement was lost.
  if (event == PeerEvent::kClosed) connection_->recovery().peer_has_all();
  const TimePoint now = clock_now();
  switch (peer.advise(waits_for_peer, connection_->needs_manager(), now)) {
    case PeerStatus::Advice::kContinue:
      return {};
    case PeerStatus::Advice::kProbe:
      if (const Status probed = probe_peer(connection_->traffic(), now); !probed)
        return tl::unexpected(
            fail(probed.error(),
                 "is its host up? A smaller ack_timeout, or NCCL_IB_TIMEOUT, tells earlier"));
      return {};
    case PeerStatus::Advice::kFail:
      break;
  }
  return tl::unexpected(fail({peer.code(), 0, peer.subject()}, peer.text()));
}

// A rail that turns out to be dead here is left without the memory, which may not go over that
// rail.
Result<MemoryKey*> CommEnd::register_memory(const Region& region) {
  RailSet& rails = connection_->rails();
  const auto dead = [&] {
    return std::count_if(rails.rails.begin(), rails.rails.end(),
                         [](const auto& rail) { return rail->is_dead(); });
  };
  auto key = rails.registrations.add(region);
  if (dead() != 0) control_thread_->check_for_dead(rails);
  return key;
}

std::string CommEnd::describe_peer() const {
  return fmt::format("{} on {}", to_string(connection_->peer()), connection_->rails().name);
}

void CommEnd::close() {
  // While the connection is being made, all its parts belong to the control thread, and no message
  // is in flight.
  bool was_idle = true;
  Carried carried;
  if (connection_->phase() == Connection::Phase::kReady) {
    const Scope scope(*this);
    carried = connection_->carried();
    was_idle = connection_->traffic().is_idle();
    if (!was_idle && !error_) connection_->traffic().abort();
  }
  // Unless it hears of the failure, the peer would take all that it sent for received.
  if (error_)
    control_thread_->close(connection_, static_cast<std::uint8_t>(error_->code), untold_);
  else if (was_idle)
    control_thread_->close(connection_, CloseRecord::kOrderly, "");
  else
    control_thread_->close(connection_, static_cast<std::uint8_t>(Errc::kPeerClosed),
                           "it closed the connection with messages under way");
  const bool is_sender = connection_->direction() == Direction::kSend;
  if (const auto line =
          connection_->rails().carried.closed(carried, is_sender, CarriedLog::Clock::now()))
    log::info("{}", *line);
}

}  // namespace ztcp::verbs
