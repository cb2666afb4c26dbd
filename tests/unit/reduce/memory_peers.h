// SPDX-License-Identifier: Apache-2.0
// Copyright the ztcp authors
//
// Hosts of one group in one process. Messages arrive late, in any order among lanes and hosts, and
// posting is refused now and then, all by a seed.
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <deque>
#include <memory>
#include <optional>
#include <random>
#include <vector>

#include "transport/reduce/peers.h"

namespace ztcp::test {

class MemoryHosts {
 public:
  MemoryHosts(std::size_t hosts, std::uint32_t seed) : random_(seed) {
    for (std::size_t i = 0; i < hosts; ++i) ends_.push_back(std::make_unique<End>(*this, i));
    pipes_.resize(hosts * hosts * reduce::kLanes);
  }
  reduce::Peers& end(std::size_t host) { return *ends_[host]; }
  void break_down() { is_broken_ = true; }
  std::size_t sent_bytes() const { return sent_bytes_; }

 private:
  static constexpr std::size_t kMaxMessages = 64;
  struct Message {
    reduce::Piece piece;
    std::optional<std::size_t> moved;
    bool is_taken = false;
  };
  // Its messages keep their places, so tickets are pointers.
  struct Half {
    std::array<Message, kMaxMessages> messages;
    std::size_t posted = 0;
    std::size_t matched = 0;
  };
  struct Pipe {
    Half sends;
    Half receives;
  };

  class End final : public reduce::Peers {
   public:
    End(MemoryHosts& world, std::size_t host) : world_(world), host_(host) {}
    Result<Ticket> send(std::size_t to, reduce::Lane lane, const reduce::Piece& piece) override {
      const auto ticket = world_.post(world_.pipe(host_, to, lane).sends, piece);
      if (*ticket != nullptr) world_.sent_bytes_ += piece.size_bytes;
      return ticket;
    }
    Result<Ticket> receive(std::size_t from, reduce::Lane lane,
                           const reduce::Piece& piece) override {
      return world_.post(world_.pipe(from, host_, lane).receives, piece);
    }
    Result<bool> test(Ticket ticket, std::size_t expected_bytes) override {
      if (world_.is_broken_) return fail(Errc::kPeerClosed, "test");
      world_.deliver_some();
      auto& message = *static_cast<Message*>(ticket);
      if (!message.moved) return false;
      if (*message.moved != expected_bytes) return fail(Errc::kProtocol, "test");
      message.is_taken = true;
      return true;
    }

   private:
    MemoryHosts& world_;
    std::size_t host_;
  };

  Pipe& pipe(std::size_t from, std::size_t to, reduce::Lane lane) {
    return pipes_[(from * ends_.size() + to) * reduce::kLanes + static_cast<std::size_t>(lane)];
  }
  Result<reduce::Peers::Ticket> post(Half& half, const reduce::Piece& piece) {
    if (random_() % 4 == 0) return nullptr;
    Message& message = half.messages[half.posted % kMaxMessages];
    if (half.posted >= kMaxMessages && !message.is_taken) return nullptr;
    message = {piece, std::nullopt, false};
    ++half.posted;
    return &message;
  }
  void deliver_some() {
    Pipe& pipe = pipes_[random_() % pipes_.size()];
    Half& sends = pipe.sends;
    Half& receives = pipe.receives;
    if (sends.matched == sends.posted || receives.matched == receives.posted) return;
    Message& from = sends.messages[sends.matched++ % kMaxMessages];
    Message& to = receives.messages[receives.matched++ % kMaxMessages];
    const std::size_t bytes = std::min(from.piece.size_bytes, to.piece.size_bytes);
    std::copy_n(from.piece.address, bytes, to.piece.address);
    from.moved = from.piece.size_bytes;
    to.moved = from.piece.size_bytes;
  }

  std::minstd_rand random_;
  std::vector<std::unique_ptr<End>> ends_;
  std::vector<Pipe> pipes_;
  std::size_t sent_bytes_ = 0;
  bool is_broken_ = false;
};

}  // namespace ztcp::test
