// SPDX-License-Identifier: Apache-2.0
// Copyright the ztcp authors
//
// Paths that one end gives up while its process lives: the other end must not take that for the
// process's death.
#include "tests/unit/verbs/hand_peer.h"

#include <chrono>
#include <cstring>
#include <thread>

#include "tests/unit/verbs/control_fixture.h"

namespace ztcp::verbs {
namespace {

class HandPeerTest : public ControlFixture {
 protected:
  static constexpr std::chrono::milliseconds kHandshake{300};

  static ControlSettings settings() {
    ControlSettings out;
    out.handshake_timeout = kHandshake;
    return out;
  }
  HandPeerTest() : ControlFixture(settings()) {}

  std::shared_ptr<Connection> accepted() {
    std::shared_ptr<Connection> out;
    while (out == nullptr) {
      std::this_thread::yield();
      out = control_thread_->accept(*arrivals_);
    }
    ends_.push_back(out);
    return out;
  }
  static void await(const Connection& end, PeerEvent event) {
    while (end.peer_status().event() == PeerEvent::kNone) std::this_thread::yield();
    ASSERT_EQ(end.peer_status().event(), event) << end.peer_status().text();
  }
};

// The kernel of a receiver that is stopped takes the path, the hello and the end.
TEST_F(HandPeerTest, AReceiverThatWasStoppedDoesNotTakeAPathThatWasGivenUpForADeath) {
  HandSender sender(from_, at_);
  ASSERT_TRUE(sender.join(kCookie));
  const auto receiver = accepted();
  ASSERT_TRUE(sender.first.say(make_close_record(CloseRecord::kThisPath, "")));
  sender.first.end();
  await(*receiver, PeerEvent::kSilent);
  HandPath given_up = HandPath::dial(at_);
  const PathHello hello = make_path_hello(sender.ticket, 0);
  const CloseRecord record = make_close_record(CloseRecord::kThisPath, "");
  std::array<std::byte, sizeof hello + sizeof record> both;
  std::memcpy(both.data(), &hello, sizeof hello);
  std::memcpy(both.data() + sizeof hello, &record, sizeof record);
  ASSERT_TRUE(given_up.say(std::span<const std::byte>(both)));
  given_up.end();
  const auto next = sender.add_path();
  ASSERT_TRUE(next) << "the receiver takes the next one";
  EXPECT_FALSE(receiver->peer_status().has_ended()) << receiver->peer_status().text();
}

TEST_F(HandPeerTest, TheEndOfTheLastPathWithoutAWordIsADeath) {
  HandSender sender(from_, at_);
  ASSERT_TRUE(sender.join(kCookie));
  const auto receiver = accepted();
  ASSERT_TRUE(sender.first.say(make_close_record(CloseRecord::kThisPath, "")));
  sender.first.end();
  await(*receiver, PeerEvent::kSilent);
  auto path = sender.add_path();
  ASSERT_TRUE(path);
  path->end();
  while (!receiver->peer_status().has_ended()) std::this_thread::yield();
  EXPECT_EQ(receiver->peer_status().event(), PeerEvent::kDied);
}

TEST_F(HandPeerTest, ASenderThatGivesUpAPathSaysSo) {
  sockets::Device device;
  device.address = loopback().prefix.address;
  const sockets::Listening first = *sockets::open_listener(device);
  device.address = loopback("127.0.0.3").prefix.address;
  const sockets::Listening second = *sockets::open_listener(device);
  auto sender = std::make_shared<Connection>(from_, Direction::kSend, first.endpoint);
  ASSERT_TRUE(sender->prepare(-1));
  ASSERT_TRUE(control_thread_->dial(sender, first.endpoint, kCookie));
  ends_.push_back(sender);
  HandReceiver receiver(to_);
  ASSERT_TRUE(receiver.join(first.fd, second.endpoint));
  // The rail of TCP dials there, too: skip connections that do not begin with a path's hello.
  while (true) {
    const HandPath path = HandPath::accept(second.fd);
    if (!path.hear<PathHello>()) continue;
    // Nobody answers it.
    const auto record = path.hear<CloseRecord>();
    ASSERT_TRUE(record) << "it ends without a word";
    EXPECT_EQ(record->code, CloseRecord::kThisPath);
    EXPECT_TRUE(path.hear().empty());
    break;
  }
  EXPECT_FALSE(sender->peer_status().has_ended());
}

// Notes that are not taken fill the buffers between the two. One round of them may be too few for
// that on a busy machine.
TEST_F(HandPeerTest, AnEndThatCutsAPathSaysSo) {
  HandSender sender(from_, at_);
  ASSERT_TRUE(sender.join(kCookie, /*receive_bytes=*/2048));
  const auto receiver = accepted();
  RailNote offer = make_note(RailNote::Step::kOffer, 1, 0);
  std::optional<CloseRecord> closing;
  for (int round = 0; round < 5 && !closing; ++round) {
    for (std::uint32_t i = 1; i <= 200; ++i) {
      offer.number = offer.epoch = static_cast<std::uint32_t>(round) * 200 + i;
      if (!sender.first.say(offer)) break;
    }
    for (auto record = sender.first.hear(); !record.empty(); record = sender.first.hear()) {
      EXPECT_FALSE(closing) << "nothing comes behind it";
      if (record.size() != sizeof(CloseRecord)) continue;
      closing.emplace();
      std::memcpy(&*closing, record.data(), sizeof *closing);
    }
  }
  ASSERT_TRUE(closing) << "it ends without a word";
  EXPECT_EQ(closing->code, CloseRecord::kThisPath);
  sender.first.end();
  await(*receiver, PeerEvent::kSilent);
}

}  // namespace
}  // namespace ztcp::verbs
