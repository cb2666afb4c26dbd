// SPDX-License-Identifier: Apache-2.0
// Copyright the ztcp authors
//
// The kernel socket of a rail of TCP. No call blocks.
#pragma once

#include <optional>
#include <utility>

#include "core/fd.h"
#include "transport/sockets/kernel/socket.h"
#include "transport/verbs/exchange.h"
#include "transport/verbs/session/piece_stream.h"

namespace ztcp::verbs {

class SocketPipe final : public Pipe {
 public:
  explicit SocketPipe(Fd fd) : fd_(std::move(fd)) {}

  Result<std::size_t> send(std::span<const std::span<const std::byte>> parts) override;
  Result<std::size_t> receive(std::span<const std::span<std::byte>> parts) override;
  // Sends the ticket. False: the stream is not connected yet.
  Result<bool> greet(const Ticket& ticket);
  void limit_silence(const sockets::SocketTimes& times) { sockets::limit_silence(fd_, times); }

 private:
  Fd fd_;
};

// The stream of a connection on a rail of TCP.
struct RailStream {
  RailStream(Fd fd, Landings& landings) : pipe(std::move(fd)), pieces(pipe, landings) {}

  SocketPipe pipe;
  PieceStream pieces;
  bool has_greeted = false;  // The dialling end has sent the ticket.
};

}  // namespace ztcp::verbs
