// SPDX-License-Identifier: Apache-2.0
// Copyright the ztcp authors
//
// A peer of a merged device that has joined in order and then sends arbitrary records on all its
// control paths: notes, hellos of paths and of streams, close records, nearly right or all wrong.
// It may end its own connection, and nothing else.
#include <array>
#include <cstring>
#include <random>
#include <thread>
#include <vector>

#include "tests/unit/verbs/control_fixture.h"
#include "tests/unit/verbs/hand_peer.h"

namespace ztcp::verbs {
namespace {

class HostilePeerTest : public ControlFixture, public testing::WithParamInterface<unsigned> {
 protected:
  static constexpr int kRecords = 60;

  static ControlSettings settings() {
    ControlSettings out;
    out.handshake_timeout = std::chrono::milliseconds(500);
    out.drain_timeout = std::chrono::milliseconds(200);
    return out;
  }
  // Another seed for each --gtest_random_seed.
  HostilePeerTest()
      : ControlFixture(settings()),
        random_(GetParam() +
                static_cast<unsigned>(testing::UnitTest::GetInstance()->random_seed()) * 1000U) {}

  std::uint32_t below(std::uint32_t limit) { return static_cast<std::uint32_t>(random_() % limit); }
  template <class T>
  void scramble(T& value) {
    std::array<std::byte, sizeof(T)> bytes;
    std::memcpy(bytes.data(), &value, sizeof value);
    for (std::uint32_t n = 1 + below(4); n > 0; --n)
      bytes[below(sizeof(T))] = static_cast<std::byte>(below(3) == 0 ? 0xff : below(256));
    std::memcpy(&value, bytes.data(), sizeof value);
  }

  RailNote note_of(const Connection& connection) {
    const auto step = static_cast<RailNote::Step>(below(8));
    const std::uint32_t rail = below(12) == 0 ? below(256) : below(2);
    RailNote out = make_note(step, rail, below(4) == 0 ? below(9) : epoch_ + below(2));
    if (below(8) != 0) out.number = ++number_;
    epoch_ += below(3) == 0 ? 1 : 0;
    out.heard = below(16) == 0 ? below(20) : 0;
    if (rail < 2) out.facts = connection.facts().on[rail];
    if (below(2) == 0) scramble(out.facts);
    for (std::uint32_t& sequence : out.holdings.sequences) sequence = below(4);
    for (std::uint8_t& pieces : out.holdings.pieces) pieces = static_cast<std::uint8_t>(below(256));
    return out;
  }
  template <class Record>
  void say(const HandPath& on, Record record) {
    if (below(8) == 0) scramble(record);
    const auto bytes = std::as_bytes(std::span(&record, 1));
    (void)on.say(below(16) == 0 ? bytes.first(below(sizeof record)) : bytes);
  }
  // Reads some of the other end's records, or none.
  void hear_some(const HandPath& on) {
    std::array<std::byte, 4096> said;
    for (std::uint32_t n = below(4); n > 0; --n)
      (void)recv(on.fd(), said.data(), said.size(), MSG_DONTWAIT);
  }
  void attack(const Connection& connection, const HandPath& first, const Ticket& ticket) {
    number_ = 0;
    epoch_ = 1;
    std::vector<HandPath> paths;
    for (int i = 0; i < kRecords; ++i) {
      const std::uint32_t at = below(static_cast<std::uint32_t>(paths.size()) + 1);
      const HandPath& on = at == paths.size() ? first : paths[at];
      hear_some(on);
      switch (below(16)) {
        case 0:
          paths.push_back(HandPath::dial(at_));
          say(paths.back(), make_path_hello(ticket, below(3)));
          break;
        case 1:
          say(HandPath::dial(at_), make_stream_hello(below(2) == 0 ? ticket : Ticket{}));
          break;
        case 2:
          say(on, make_close_record(below(3) == 0 ? static_cast<std::uint8_t>(below(256))
                                                  : CloseRecord::kThisPath,
                                    "\033[31mhostile\n"));
          break;
        case 3:
          say(on, make_path_hello(ticket, below(5)));
          break;
        case 4:
          say(on, make_hello(kCookie, {}, connection.facts()));
          break;
        case 5:
          if (!paths.empty()) paths.erase(paths.begin());
          break;
        default:
          say(on, note_of(connection));
      }
    }
  }
  // Other connections are unaffected.
  void look_at_others() {
    EXPECT_TRUE(is_up(*ends_[0]));
    EXPECT_TRUE(is_up(*ends_[1]));
    EXPECT_FALSE(ends_[0]->peer_status().has_ended() || ends_[1]->peer_status().has_ended());
    EXPECT_EQ(log_.warned().find('\033'), std::string::npos);
  }

  std::minstd_rand random_;
  std::uint32_t number_ = 0;
  std::uint32_t epoch_ = 0;
};
INSTANTIATE_TEST_SUITE_P(Seeds, HostilePeerTest, testing::Range(0U, 12U));

TEST_P(HostilePeerTest, AsSenderEndsItsOwnConnectionAtMost) {
  connect();
  for (int i = 0; i < 4; ++i) {
    HandSender sender(from_, at_);
    ASSERT_TRUE(sender.join(kCookie));
    std::shared_ptr<Connection> receiver;
    while (receiver == nullptr) receiver = control_thread_->accept(*arrivals_);
    attack(sender.connection, sender.first, sender.ticket);
    control_thread_->close(receiver, CloseRecord::kOrderly, "");
  }
  connect();
  look_at_others();
}

TEST_P(HostilePeerTest, AsReceiverEndsItsOwnConnectionAtMost) {
  connect();
  sockets::Device device;
  device.address = loopback().prefix.address;
  const sockets::Listening first = *sockets::open_listener(device);
  device.address = loopback("127.0.0.3").prefix.address;
  const sockets::Listening second = *sockets::open_listener(device);
  for (int i = 0; i < 4; ++i) {
    auto sender = std::make_shared<Connection>(from_, Direction::kSend, first.endpoint);
    ASSERT_TRUE(sender->prepare(-1));
    ASSERT_TRUE(control_thread_->dial(sender, first.endpoint, kCookie));
    HandReceiver receiver(to_);
    ASSERT_TRUE(receiver.join(first.fd, second.endpoint));
    attack(receiver.connection, receiver.first, Ticket{std::byte{1}});
    control_thread_->close(sender, CloseRecord::kOrderly, "");
  }
  connect();
  look_at_others();
}

// Each offer is answered, and answers are kept until the peer has heard them.
TEST_P(HostilePeerTest, ThatHearsNothingIsNotRememberedWithoutBound) {
  HandSender sender(from_, at_);
  ASSERT_TRUE(sender.join(kCookie));
  std::shared_ptr<Connection> receiver;
  while (receiver == nullptr) receiver = control_thread_->accept(*arrivals_);
  ends_.push_back(receiver);
  RailNote offer = make_note(RailNote::Step::kOffer, 1, 1);
  for (std::uint32_t i = 1; i <= 3000; ++i) {
    offer.number = i;
    if (!sender.first.say(offer)) break;
    hear_some(sender.first);
  }
  while (!receiver->peer_status().has_ended()) std::this_thread::yield();
  EXPECT_EQ(receiver->peer_status().code(), Errc::kProtocol);
}

}  // namespace
}  // namespace ztcp::verbs
