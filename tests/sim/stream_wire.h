// SPDX-License-Identifier: Apache-2.0
// Copyright the ztcp authors
//
// A rail of TCP between two verbs sessions in one thread: bytes in order; each call takes and gives
// a random part of them. Bytes that have left an end that closes are still read at the other end,
// until that closes, too.
#pragma once

#include <algorithm>
#include <array>
#include <cstring>
#include <functional>
#include <memory>
#include <optional>
#include <vector>

#include "transport/verbs/session/piece_stream.h"

namespace ztcp::sim {

class StreamWire {
 public:
  using Draw = std::function<std::uint64_t()>;

  StreamWire(Draw draw, verbs::Landings& at_sender, verbs::Landings& at_receiver)
      : draw_(std::move(draw)),
        sender_pipe_(*this, to_receiver_, to_sender_),
        receiver_pipe_(*this, to_sender_, to_receiver_) {
    ends_[1].emplace(sender_pipe_, at_sender);
    ends_[0].emplace(receiver_pipe_, at_receiver);
  }

  // Null: it was destroyed.
  verbs::PieceStream* end(bool of_sender) {
    return ends_[of_sender] ? &*ends_[of_sender] : nullptr;
  }
  void close(bool of_sender) {
    (of_sender ? to_receiver_ : to_sender_).is_closed = true;
    (of_sender ? to_sender_ : to_receiver_).is_unread = true;
    ends_[of_sender].reset();
  }
  // True if a byte has moved since the last call.
  bool has_moved() { return std::exchange(has_moved_, false); }

 private:
  struct Way {
    std::vector<std::byte> bytes;
    bool is_closed = false;  // By the writer;
    bool is_unread = false;  // and by the reader.
  };
  static constexpr std::size_t kRoom = 48'000;

  class End final : public verbs::Pipe {
   public:
    End(StreamWire& wire, Way& out, Way& in) : wire_(wire), out_(out), in_(in) {}
    Result<std::size_t> send(std::span<const std::span<const std::byte>> parts) override {
      if (out_.is_unread) return fail(Errc::kPeerClosed, "send");
      std::size_t all = 0;
      for (const auto& part : parts) all += part.size();
      std::size_t left = wire_.some_of(std::min(all, kRoom - out_.bytes.size()));
      const std::size_t took = left;
      for (const auto& part : parts) {
        const std::size_t now = std::min(left, part.size());
        out_.bytes.insert(out_.bytes.end(), part.begin(),
                          part.begin() + static_cast<std::ptrdiff_t>(now));
        left -= now;
      }
      return took;
    }
    Result<std::size_t> receive(std::span<const std::span<std::byte>> parts) override {
      if (in_.bytes.empty() && in_.is_closed) return fail(Errc::kPeerClosed, "recv");
      std::size_t all = 0;
      for (const auto& part : parts) all += part.size();
      const std::size_t got = wire_.some_of(std::min(all, in_.bytes.size()));
      std::size_t at = 0;
      for (const auto& part : parts) {
        const std::size_t now = std::min(got - at, part.size());
        std::copy_n(in_.bytes.begin() + static_cast<std::ptrdiff_t>(at), now, part.begin());
        at += now;
      }
      in_.bytes.erase(in_.bytes.begin(), in_.bytes.begin() + static_cast<std::ptrdiff_t>(got));
      return got;
    }

   private:
    StreamWire& wire_;
    Way& out_;
    Way& in_;
  };

  // All of it, or less.
  std::size_t some_of(std::size_t most) {
    const std::size_t some = most == 0 || draw_() % 2 == 0 ? most : draw_() % (most + 1);
    has_moved_ = has_moved_ || some > 0;
    return some;
  }

  const Draw draw_;
  bool has_moved_ = false;
  Way to_receiver_;
  Way to_sender_;
  End sender_pipe_;
  End receiver_pipe_;
  std::array<std::optional<verbs::PieceStream>, 2> ends_;  // The sender's is the second.
};

}  // namespace ztcp::sim
