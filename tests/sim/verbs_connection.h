// SPDX-License-Identifier: Apache-2.0
// Copyright the ztcp authors
//
// Both sessions of a verbs connection over queue pairs that do all that verbs allow, in every
// order, and over rails of TCP.
#pragma once

#include <algorithm>
#include <array>
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

#include "tests/sim/queue_pair_wire.h"
#include "tests/sim/stream_wire.h"
#include "transport/verbs/session/recv_session.h"
#include "transport/verbs/session/send_session.h"

namespace ztcp::sim {

inline const verbs::RailKeys kLocalKeys = keys_of(1);
inline const verbs::RailKeys kRingKeys = keys_of(2);
inline const verbs::RailKeys kPayloadKeys = keys_of(3);
inline constexpr std::size_t kMaxBytes = 300'000;

struct Setup {
  std::vector<std::uint32_t> rails{0};      // By queue pair.
  std::vector<std::uint32_t> rates_mbps{};  // By rail; 100 where there is none.
  std::uint32_t inline_bytes = 64;
  std::uint64_t seed = 1;
  std::vector<std::uint32_t> tcp_rails{};
  bool has_gpu_memory = true;
  bool is_split = true;

  bool is_tcp(std::uint32_t rail) const {
    return std::find(tcp_rails.begin(), tcp_rails.end(), rail) != tcp_rails.end();
  }
};

class Connection {
 public:
  explicit Connection(const Setup& setup)
      : wire(setup.rails, kLocalKeys, setup.seed), setup_(setup) {
    wire.left.memory = {{reinterpret_cast<const std::byte*>(&ring), sizeof ring, kRingKeys}};
    std::vector<verbs::QueuePairFacts> queue_pairs;
    for (const std::uint32_t rail : setup.rails)
      queue_pairs.push_back(
          {.rail = rail,
           .local_key = rail,
           .remote_key = rail,
           .rate_mbps = rail < setup.rates_mbps.size() ? setup.rates_mbps[rail] : 100,
           .inline_bytes = setup.inline_bytes,
           .is_tcp = setup.is_tcp(rail),
           .is_split = setup.is_split});
    sender.emplace(std::move(queue_pairs), ring, left_);
    receiver.emplace(
        verbs::RecvSettings{.rails = setup.rails,
                            .inline_bytes = setup.inline_bytes,
                            .ring = {reinterpret_cast<std::uint64_t>(&ring), kRingKeys},
                            .ring_lkeys = kLocalKeys},
        staged, right_);
    for (const std::uint32_t rail : setup.tcp_rails) dial(rail);
    EXPECT_TRUE(receiver->begin());
  }

  // A rail of queue pairs or of TCP.
  void fence(bool at_sender, std::uint32_t rail) {
    if (setup_.is_tcp(rail)) {
      if (const auto told = streams_[rail]->end(at_sender)->take_untold()) {
        EXPECT_TRUE(receiver->on_immediate(queue_pair_of(rail), told->immediate, told->size_bytes));
      }
      streams_[rail]->close(at_sender);
    } else {
      wire.fence(at_sender ? wire.left : wire.right, rail);
    }
  }
  void reopen(bool at_sender, std::uint32_t rail) {
    if (!setup_.is_tcp(rail))
      wire.rejoin(at_sender ? wire.left : wire.right, rail);
    else if (!at_sender)
      dial(rail);
  }
  // One event happens, or bytes have moved.
  bool step() {
    bool moved = wire.step();
    for (auto& [rail, stream] : streams_) moved = stream->has_moved() || moved;
    return moved;
  }

  Status poll_sender() {
    while (!wire.left.completions.empty() && wire.draw() % 4 != 0) {
      const auto told = wire.left.completions.front();
      wire.left.completions.pop_front();
      ZTCP_CHECK(sender->on_completion(told.queue_pair, told.id));
    }
    return poll_streams(true);
  }
  Status poll_receiver() {
    while (!wire.right.completions.empty() && wire.draw() % 4 != 0) {
      const auto told = wire.right.completions.front();
      wire.right.completions.pop_front();
      ZTCP_CHECK(told.is_immediate
                     ? receiver->on_immediate(told.queue_pair, told.immediate, told.size_bytes)
                     : receiver->on_completion(told.queue_pair, told.id));
    }
    return poll_streams(false);
  }
  Status poll_all() {
    while (!wire.left.completions.empty() || !wire.right.completions.empty())
      ZTCP_CHECK(poll_both());
    return {};
  }
  Status poll_both() {
    ZTCP_CHECK(poll_sender());
    return poll_receiver();
  }
  bool is_quiet() const {
    return sender->is_idle() && receiver->is_idle() && wire.left.completions.empty() &&
           wire.right.completions.empty();
  }

  verbs::Ring ring{};
  verbs::Ring staged{};
  QueuePairWire wire;
  std::optional<verbs::SendSession> sender;
  std::optional<verbs::RecvSession> receiver;
  bool has_gone_by_tcp = false;  // A piece went over TCP.

 private:
  // An end's rails of TCP beside its queue pairs.
  class End final : public verbs::WorkQueues, public verbs::Landings {
   public:
    End(Connection& c, bool is_sender) : c_(c), is_sender_(is_sender) {}
    Status post(std::uint32_t queue_pair, const verbs::WorkRequest& request) override {
      const std::uint32_t rail = c_.setup_.rails[queue_pair];
      if (!c_.setup_.is_tcp(rail)) return queue_pairs().post(queue_pair, request);
      verbs::PieceStream* const stream = c_.streams_[rail]->end(is_sender_);
      EXPECT_NE(stream, nullptr) << "work for a closed stream";
      stream->post(request);
      return {};
    }
    Status post_receives(std::uint32_t queue_pair, std::uint32_t count) override {
      if (c_.setup_.is_tcp(c_.setup_.rails[queue_pair])) return {};
      return queue_pairs().post_receives(queue_pair, count);
    }
    Result<verbs::Landing> place(const verbs::StreamRecord& record) override {
      if (is_sender_) return c_.sender->place(record);
      const auto at = c_.receiver->place(record);
      c_.has_gone_by_tcp = true;
      if (at && c_.wire.right.on_write) c_.wire.right.on_write(at->begin, record.size_bytes);
      return at;
    }

   private:
    QueuePairWire::End& queue_pairs() { return is_sender_ ? c_.wire.left : c_.wire.right; }
    Connection& c_;
    const bool is_sender_;
  };

  std::uint32_t queue_pair_of(std::uint32_t rail) const {
    const auto at = std::find(setup_.rails.begin(), setup_.rails.end(), rail);
    return static_cast<std::uint32_t>(at - setup_.rails.begin());
  }

  void dial(std::uint32_t rail) {
    streams_[rail] = std::make_unique<StreamWire>([this] { return wire.draw(); }, left_, right_);
  }

  Status poll_streams(bool of_sender) {
    for (std::uint32_t i = 0; i < setup_.rails.size(); ++i) {
      const auto stream = streams_.find(setup_.rails[i]);
      if (stream == streams_.end() || stream->second->end(of_sender) == nullptr) continue;
      std::array<verbs::PieceStream::Told, 3> told;
      const auto count = stream->second->end(of_sender)->poll(told);
      // The notes of RailOutages report its end.
      if (!count && count.error().code == Errc::kPeerClosed) continue;
      if (!count) return tl::unexpected(count.error());
      for (std::size_t n = 0; n < *count; ++n) {
        const auto& one = told[n];
        if (of_sender)
          ZTCP_CHECK(sender->on_completion(i, one.id));
        else
          ZTCP_CHECK(one.is_immediate ? receiver->on_immediate(i, one.immediate, one.size_bytes)
                                      : receiver->on_completion(i, one.id));
      }
    }
    return {};
  }

  const Setup setup_;
  End left_{*this, true};
  End right_{*this, false};
  std::map<std::uint32_t, std::unique_ptr<StreamWire>> streams_;  // By rail.
};

using Bytes = std::vector<std::byte>;

}  // namespace ztcp::sim
