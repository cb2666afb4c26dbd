// SPDX-License-Identifier: Apache-2.0
// Copyright the ztcp authors
#include "transport/verbs/control_thread.h"

#include <algorithm>
#include <sys/socket.h>
#include <unistd.h>

#include "tests/unit/verbs/control_fixture.h"
#include "tests/unit/verbs/own_sockets.h"

namespace ztcp::verbs {
namespace {

class ControlTest : public ControlFixture {
 protected:
  // Till nothing is to be done about connections any more. Each has a stream and a path there.
  void await_paths() {
    const std::size_t wanted = 2 * ends_.size();
    for (bool are_there = false; !are_there; std::this_thread::yield()) {
      const std::vector<int> all = connected_at(tcp_address().prefix.address);
      are_there = all.size() == wanted && have_heard(all);
    }
    EXPECT_EQ(control_thread_->accept(*arrivals_), nullptr) << "what was read is seen to";
  }
};

// Otherwise anybody who reaches the port could stall all connections at will.
TEST_F(ControlTest, StrangersAreTurnedAwayWithoutALookAtAnyConnection) {
  for (int i = 0; i < 3; ++i) connect();
  await_paths();
  std::vector<std::unique_lock<std::mutex>> held;
  for (const auto& end : ends_) held.push_back(end->lock());
  for (int i = 0; i < 200; ++i) {
    const Ticket ticket{static_cast<std::byte>(i), std::byte{1}};
    ASSERT_TRUE(is_turned_away(tcp_address().prefix.address, make_stream_hello(ticket)))
        << "stranger " << i << " waits for a connection";
  }
}

// Connections of strangers, which send nothing. Their descriptors are opened ahead, because the
// control thread's are identified by number.
class Strangers {
 public:
  explicit Strangers(std::size_t count) {
    while (fds_.size() < count) fds_.push_back(socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
  }
  ~Strangers() {
    for (const int fd : fds_) close(fd);
  }
  void connect(std::size_t index, const Endpoint& to, const IpAddress& from) const {
    SocketAddress own = to_socket_address({from, 0});
    SocketAddress peer = to_socket_address(to);
    EXPECT_EQ(bind(fds_[index], own.get(), own.size_bytes), 0);
    EXPECT_EQ(::connect(fds_[index], peer.get(), peer.size_bytes), 0);
  }
  bool is_ended(std::size_t index) const {
    char byte = 0;
    const ssize_t got = recv(fds_[index], &byte, 1, MSG_DONTWAIT);
    return got == 0 || (got < 0 && errno != EAGAIN);
  }
  std::size_t ended() const {
    std::size_t count = 0;
    for (std::size_t i = 0; i < fds_.size(); ++i) count += is_ended(i) ? 1 : 0;
    return count;
  }

 private:
  std::vector<int> fds_;
};

TEST_F(ControlTest, SilentStrangersPushOutThemselvesAndAreWarnedOf) {
  constexpr std::size_t kPlaces = 256;
  const Strangers slow(1);
  const Strangers strangers(kPlaces + 20);
  slow.connect(0, at_, loopback("127.0.0.8").prefix.address);
  for (std::size_t i = 0; i < kPlaces + 20; ++i)
    strangers.connect(i, at_, loopback("127.0.0.9").prefix.address);
  connect();
  while (strangers.ended() < 20) std::this_thread::yield();
  EXPECT_FALSE(slow.is_ended(0)) << "another host's";
  // The line comes with the next look at the listener, a second after the last.
  while (log_.warned().find("connections without a valid hello") == std::string::npos) {
    control_thread_->send_notes(ends_.front());
    std::this_thread::sleep_for(std::chrono::milliseconds(10));
  }
  EXPECT_THAT(log_.warned(), testing::HasSubstr("rejected_pushed_out"));
  EXPECT_THAT(log_.warned(), testing::HasSubstr("of 127.0.0.1 to the job's hosts alone"));
  connect();
}

// As one does that was pushed out before its hello came.
TEST_F(ControlTest, ADialledConnectionThatIsResetIsDialledAgain) {
  sockets::Device device;
  device.address = loopback().prefix.address;
  const sockets::Listening listening = *sockets::open_listener(device);
  auto sender = std::make_shared<Connection>(from_, Direction::kSend, listening.endpoint);
  ASSERT_TRUE(sender->prepare(-1));
  ASSERT_TRUE(control_thread_->dial(sender, listening.endpoint, kCookie));
  ends_.push_back(sender);
  const auto next = [&] {
    while (true) {
      auto accepted = sockets::accept(listening.fd, {});
      if (accepted && *accepted) return std::move((*accepted)->fd);
      std::this_thread::yield();
    }
  };
  for (int i = 0; i < 3; ++i) sockets::reset(next());
  const Fd closed = next();
  shutdown(closed.get(), SHUT_RDWR);
  const Fd fd = next();
  Hello hello;
  std::size_t got = 0;
  while (got < sizeof hello) {
    const ssize_t more =
        recv(fd.get(), reinterpret_cast<std::byte*>(&hello) + got, sizeof hello - got, 0);
    if (more > 0) got += static_cast<std::size_t>(more);
    ASSERT_TRUE(more > 0 || errno == EAGAIN);
  }
  EXPECT_EQ(hello.cookie, kCookie);
  EXPECT_EQ(sender->phase(), Connection::Phase::kConnecting);
}

}  // namespace
}  // namespace ztcp::verbs
