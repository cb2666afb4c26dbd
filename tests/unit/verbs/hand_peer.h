// SPDX-License-Identifier: Apache-2.0
// Copyright the ztcp authors
//
// One end of a connection for which a test sends and receives the records itself, over plain
// sockets; the other end is a control thread's. So a peer can be stopped at any point, give up a
// path, or send records that no peer of this release sends.
#pragma once

#include <cstddef>
#include <memory>
#include <optional>
#include <span>
#include <sys/socket.h>
#include <sys/time.h>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

#include "core/fd.h"
#include "core/socket_address.h"
#include "transport/verbs/connection.h"
#include "transport/verbs/exchange.h"

namespace ztcp::verbs {

// A TCP connection of a hand-played end.
class HandPath {
 public:
  HandPath() = default;
  explicit HandPath(Fd fd) : fd_(std::move(fd)) {
    constexpr timeval kLimit{.tv_sec = 10, .tv_usec = 0};
    setsockopt(fd_.get(), SOL_SOCKET, SO_RCVTIMEO, &kLimit, sizeof kLimit);
  }
  // With a receive buffer of its own size, if one is given.
  static HandPath dial(const Endpoint& to, int receive_bytes = 0) {
    Fd fd(socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
    if (receive_bytes != 0)
      setsockopt(fd.get(), SOL_SOCKET, SO_RCVBUF, &receive_bytes, sizeof receive_bytes);
    const SocketAddress address = to_socket_address(to);
    EXPECT_EQ(connect(fd.get(), address.get(), address.size_bytes), 0);
    return HandPath(std::move(fd));
  }
  static HandPath accept(const Fd& listener) {
    while (true) {
      Fd fd(::accept4(listener.get(), nullptr, nullptr, SOCK_CLOEXEC));
      if (fd) return HandPath(std::move(fd));
    }
  }

  bool say(std::span<const std::byte> bytes) const {
    return ::send(fd_.get(), bytes.data(), bytes.size(), MSG_NOSIGNAL) ==
           static_cast<ssize_t>(bytes.size());
  }
  template <class Record>
  bool say(const Record& record) const {
    return say(records::bytes_of(record));
  }
  // The next record of any kind; empty: the other end has ended the path.
  std::vector<std::byte> hear() const {
    std::vector<std::byte> out(sizeof(RecordHeader));
    if (!read(out)) return {};
    out.resize(records::load<RecordHeader>(out)->size_bytes);
    return read(std::span(out).subspan(sizeof(RecordHeader))) ? out : std::vector<std::byte>();
  }
  // The next record, which is of this kind.
  // A receiver that has others to serve first says so.
  template <class Record>
  std::optional<Record> hear() const {
    std::vector<std::byte> bytes = hear();
    while (bytes.size() == sizeof(Wait)) bytes = hear();
    return bytes.size() == sizeof(Record) ? records::load<Record>(bytes) : std::nullopt;
  }
  void end() { fd_ = Fd(); }
  int fd() const { return fd_.get(); }

 private:
  bool read(std::span<std::byte> into) const {
    while (!into.empty()) {
      const ssize_t got = recv(fd_.get(), into.data(), into.size(), 0);
      if (got <= 0) return false;
      into = into.subspan(static_cast<std::size_t>(got));
    }
    return true;
  }

  Fd fd_;
};

// A sender that joins a connection to a control thread's receiver.
struct HandSender {
  HandSender(std::shared_ptr<RailSet> rails, const Endpoint& receiver)
      : connection(std::move(rails), Direction::kSend, receiver), to(receiver) {}

  bool join(const Cookie& cookie, int receive_bytes = 0) {
    if (!connection.prepare(-1)) return false;
    first = HandPath::dial(to, receive_bytes);
    const Hello hello = make_hello(cookie, Nonce{std::byte{1}}, connection.facts());
    if (!first.say(hello)) return false;
    const auto answer = first.hear<Answer>();
    if (!answer || !connection.join(answer->facts)) return false;
    ticket = answer->facts.ticket;
    return first.say(make_ready({}, hello, *answer));
  }
  // Joined as the sender joins paths. An error: nobody answers its hello.
  std::optional<HandPath> add_path() const {
    HandPath path = HandPath::dial(to);
    if (!path.say(make_path_hello(ticket, 0)) || !path.hear<PathHello>()) return std::nullopt;
    return path;
  }

  Connection connection;
  Endpoint to;
  Ticket ticket{};
  HandPath first;
};

// A receiver that a control thread's sender joins; its listeners are the test's.
struct HandReceiver {
  explicit HandReceiver(std::shared_ptr<RailSet> rails)
      : connection(std::move(rails), Direction::kReceive, {}) {}

  // Accepts a connection on `listener`; its further paths are to go to `paths`, as that of its last
  // rail.
  bool join(const Fd& listener, const Endpoint& paths) {
    first = HandPath::accept(listener);
    const auto hello = first.hear<Hello>();
    if (!hello || !connection.prepare(-1, &hello->facts) || !connection.join(hello->facts))
      return false;
    EndFacts facts = connection.facts();
    facts.ticket = Ticket{std::byte{1}};
    RailFacts& last = facts.on[facts.rails - 1U];
    last.exchange = ztcp::gid_of(paths.address);
    last.port = paths.port;
    return first.say(make_answer({}, *hello, Nonce{std::byte{2}}, facts)) &&
           first.hear<Ready>().has_value();
  }

  Connection connection;
  HandPath first;
};

}  // namespace ztcp::verbs
