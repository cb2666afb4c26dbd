// SPDX-License-Identifier: Apache-2.0
// Copyright the ztcp authors
//
// Both ends of a connection with rails that fail and come back. The test passes their notes and
// tells the time.
#include <array>
#include <sys/socket.h>
#include <utility>

#include <gmock/gmock.h>

#include "tests/support/log_capture.h"
#include "tests/unit/verbs/fake_host.h"
#include "transport/verbs/comm_end.h"
#include "transport/verbs/connection.h"
#include "transport/verbs/control_thread.h"

namespace ztcp::verbs {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;
using testing::HasSubstr;

class RecoveryTest : public testing::Test {
 protected:
  RecoveryTest()
      : host_({roce_device("fake0", 1), roce_device("fake1", 2), roce_device("fake2", 3),
               roce_device("fake3", 4)},
              3) {
    host_.fabric.nics = {nic_on("fake0"),
                         nic_on("fake1"),
                         nic_on("fake2"),
                         nic_on("fake3"),
                         merged(tcp_nic("eth-a"), "ib0"),
                         merged(tcp_nic("eth-b"), "ib0")};
    for (Device& device : host_.list()) rails_.push_back(std::make_shared<Rail>(std::move(device)));
  }

  // Over these rails of each end, by their numbers.
  void join(const std::vector<std::size_t>& from, const std::vector<std::size_t>& to,
            Endpoint peer = {}) {
    sender_ = make(Direction::kSend, from, peer);
    receiver_ = make(Direction::kReceive, to);
    ASSERT_TRUE(sender_->prepare(-1));
    const EndFacts hello = sender_->facts();
    ASSERT_TRUE(receiver_->prepare(-1, &hello));
    const EndFacts answer = receiver_->facts();
    ASSERT_TRUE(receiver_->join(hello));
    ASSERT_TRUE(sender_->join(answer));
  }
  std::unique_ptr<Connection> make(Direction direction, const std::vector<std::size_t>& numbers,
                                   Endpoint peer = {}) {
    Rails rails;
    for (const std::size_t n : numbers) rails.push_back(rails_[n]);
    sets_.push_back(std::make_shared<RailSet>("ib0", std::move(rails)));
    return std::make_unique<Connection>(sets_.back(), direction, peer);
  }
  // Until neither has more to say.
  Status exchange() {
    while (sender_->recovery().notes().has_new() || receiver_->recovery().notes().has_new())
      for (auto [from, to] : {std::pair(&sender_, &receiver_), std::pair(&receiver_, &sender_)})
        for (const RailNote& note : notes_of(**from))
          ZTCP_CHECK((*to)->recovery().hear(note, now_));
    return {};
  }
  static std::vector<RailNote> notes_of(Connection& from) {
    std::vector<RailNote> out;
    from.recovery().notes().take_new([&](const RailNote& note) { out.push_back(note); });
    return out;
  }
  // Lets time pass at both ends.
  Status pass(Duration time) {
    now_ += time;
    ZTCP_CHECK(sender_->recovery().advance(now_));
    ZTCP_CHECK(receiver_->recovery().advance(now_));
    return exchange();
  }
  // Accepts the stream of the receiver's rail of TCP once it has sent its ticket.
  void take_in() {
    if (!stream_) {
      auto accepted = sockets::accept(rails_[5]->listening->fd, {});
      if (!accepted || !*accepted) return;
      stream_ = std::move((*accepted)->fd);
    }
    StreamHello hello;
    if (recv(stream_.get(), &hello, sizeof hello, 0) == static_cast<ssize_t>(sizeof hello))
      receiver_->recovery().take_stream(hello.ticket, stream_);
  }
  RailState::Health health_of(const Connection& end, std::size_t rail) const {
    return end.rail_states()[rail].health;
  }

  test::LogCapture log_;
  FakeHost host_;
  Rails rails_;
  std::vector<std::shared_ptr<RailSet>> sets_;
  std::unique_ptr<Connection> sender_;
  std::unique_ptr<Connection> receiver_;
  Fd stream_;
  TimePoint now_ = TimePoint(seconds(1000));
};

TEST_F(RecoveryTest, AReceiverWhosePortIsUpAgainHasTheRailOfferedAtOnce) {
  join({0, 1}, {2, 3});
  rails_[3]->is_port_down = true;
  receiver_->recovery().lose(1, "its port is down");
  for (int i = 0; i < 100; ++i) ASSERT_TRUE(pass(milliseconds(2)));
  EXPECT_EQ(health_of(*sender_, 1), RailState::Health::kDown);
  EXPECT_EQ(health_of(*receiver_, 1), RailState::Health::kDown);
  // Its offers are refused, and become seldom.
  for (int i = 0; i < 20; ++i) ASSERT_TRUE(pass(seconds(1)));
  EXPECT_GT(sender_->recovery().due(), now_ + seconds(5));
  rails_[3]->is_port_down = false;
  receiver_->recovery().offer_soon(*rails_[3], now_);
  ASSERT_TRUE(exchange());
  EXPECT_EQ(sender_->recovery().due(), now_);
  ASSERT_TRUE(pass(milliseconds(0)));
  EXPECT_EQ(health_of(*receiver_, 1), RailState::Health::kAccepted);
}

TEST_F(RecoveryTest, ARailOfTcpThatNobodyTakesIsWarnedOfOnceAndAskedForSeldom) {
  join({0, 4}, {2, 5});
  EXPECT_EQ(sender_->recovery().due(), TimePoint()) << "at once";
  // Nobody listens there.
  ASSERT_TRUE(pass(milliseconds(0)));
  EXPECT_EQ(health_of(*sender_, 1), RailState::Health::kDown);
  EXPECT_EQ(sender_->recovery().due(), now_ + seconds(1));
  EXPECT_THAT(log_.warned(), HasSubstr("ib0: no rail over TCP on lo to "));
  EXPECT_THAT(log_.warned(), testing::EndsWith(": the peer does not take it\n"));
  const std::string once = log_.warned();
  int offers = 0;
  for (int i = 0; i < 300; ++i) {
    const std::uint32_t before = sender_->rail_states()[1].epoch;
    ASSERT_TRUE(pass(seconds(1)));
    offers += sender_->rail_states()[1].epoch != before ? 1 : 0;
  }
  EXPECT_GT(offers, 10);
  EXPECT_LT(offers, 16);
  EXPECT_EQ(log_.warned(), once);
}

// A stream that is being set up is polled at growing intervals.
TEST_F(RecoveryTest, AStreamThatNobodyWelcomesIsGivenUp) {
  join({0, 4}, {2, 5});
  rails_[5]->listening = *sockets::open_listener(rails_[5]->device.exchange);
  ASSERT_TRUE(pass(milliseconds(0)));
  EXPECT_EQ(health_of(*sender_, 1), RailState::Health::kProving);
  int looks = 0;
  for (; health_of(*sender_, 1) == RailState::Health::kProving; ++looks) {
    now_ = sender_->recovery().due();
    ASSERT_TRUE(sender_->recovery().advance(now_));
  }
  EXPECT_LT(looks, 100);
  EXPECT_THAT(log_.warned(), HasSubstr("nobody answers there; may TCP pass to its ports"));
  ASSERT_TRUE(exchange());
  EXPECT_EQ(health_of(*receiver_, 1), RailState::Health::kDown);
}

TEST_F(RecoveryTest, RailFailureIsLoggedOncePerPeer) {
  const Endpoint first{Ipv4Address{1}, 1};
  const Endpoint second{Ipv4Address{2}, 1};
  join({0, 4}, {2, 5}, first);
  ASSERT_TRUE(pass(milliseconds(0)));
  const std::string said = log_.warned();
  EXPECT_THAT(said, HasSubstr("to 0.0.0.1:1: "));
  join({0, 4}, {2, 5}, first);
  ASSERT_TRUE(pass(milliseconds(0)));
  EXPECT_EQ(log_.warned(), said);
  join({0, 4}, {2, 5}, second);
  ASSERT_TRUE(pass(milliseconds(0)));
  EXPECT_THAT(log_.warned(), HasSubstr("to 0.0.0.2:1: "));
  EXPECT_TRUE(rails_[4]->lost_to.remove(second.address));
  EXPECT_FALSE(rails_[4]->lost_to.remove(second.address));
  EXPECT_TRUE(rails_[4]->lost_to.remove(first.address)) << "its own matter";
}

// The device may still write: the sender fences first, and the packets in the network pass.
TEST_F(RecoveryTest, AReceiverWhoseDeviceIsDeadFencesAfterTheSender) {
  join({0, 1}, {2, 3});
  host_.devices.kill("fake3");
  rails_[3]->device.opened->is_dead = true;
  ASSERT_TRUE(receiver_->recovery().lose(1, "it is dead"));
  ASSERT_TRUE(receiver_->recovery().advance(now_));
  EXPECT_EQ(health_of(*receiver_, 1), RailState::Health::kMute);
  ASSERT_TRUE(exchange());
  EXPECT_EQ(health_of(*sender_, 1), RailState::Health::kFenced) << "as it was asked to";
  ASSERT_TRUE(pass(milliseconds(499)));
  EXPECT_EQ(health_of(*receiver_, 1), RailState::Health::kMute);
  ASSERT_TRUE(pass(milliseconds(2)));
  ASSERT_TRUE(pass(milliseconds(2)));
  EXPECT_EQ(health_of(*receiver_, 1), RailState::Health::kDown);
  EXPECT_EQ(health_of(*sender_, 1), RailState::Health::kDown);
}

TEST_F(RecoveryTest, BytesThatADeadDeviceAcknowledgedAndDidNotReportEndTheConnection) {
  join({0, 1}, {2, 3});
  const std::array<RecvSession::Buffer, 1> buffers{};
  ASSERT_TRUE(receiver_->traffic().receiver().post(buffers));
  host_.devices.kill("fake3");
  rails_[3]->device.opened->is_dead = true;
  ASSERT_TRUE(receiver_->recovery().lose(1, "it is dead"));
  ASSERT_TRUE(receiver_->recovery().advance(now_));
  RailNote fenced = make_note(RailNote::Step::kFenced, 1, 0);
  fenced.number = 1;
  fenced.holdings.sequences[0] = 1;
  fenced.holdings.pieces[0] = 1;
  ASSERT_TRUE(receiver_->recovery().hear(fenced, now_));
  ASSERT_TRUE(receiver_->recovery().advance(now_ + milliseconds(499)));
  const Status outcome = receiver_->recovery().advance(now_ + milliseconds(500));
  ASSERT_FALSE(outcome);
  EXPECT_EQ(outcome.error().code, Errc::kNoDevice);
  EXPECT_THAT(outcome.error().where, HasSubstr("acknowledged bytes and does not say where"));
}

// If later work succeeded, its completion would also confirm the work that was refused.
TEST_F(RecoveryTest, WorkBehindARefusedOneIsFlushed) {
  join({0, 1}, {2, 3});
  WorkRequest nothing;
  nothing.is_signalled = true;
  nothing.remote = sender_->peer_facts().memory_address;
  nothing.rkey = sender_->peer_facts().on[0].memory_rkey;
  host_.devices.refuse("ibv_post_send fake0", ENOMEM);
  nothing.id = 1;
  ASSERT_TRUE(sender_->traffic().post(0, nothing));
  EXPECT_TRUE(sender_->traffic().has_broken());
  host_.devices.refuse("ibv_post_send fake0", 0);
  nothing.id = 2;
  ASSERT_TRUE(sender_->traffic().post(0, nothing));
  std::array<ibv_wc, 2> completions;
  int count = 0;
  while (count == 0) count = sender_->rail_states()[0].queues->poll(completions);
  EXPECT_EQ(count, 1);
  EXPECT_EQ(completions[0].wr_id, 2U);
  EXPECT_EQ(completions[0].status, IBV_WC_WR_FLUSH_ERR);
  ASSERT_TRUE(sender_->recovery().lose_broken());
  EXPECT_EQ(health_of(*sender_, 0), RailState::Health::kFenced);
}

TEST_F(RecoveryTest, TheOnlyRailThatNobodyTakesEndsIt) {
  join({4}, {5});
  const Status outcome = pass(milliseconds(0));
  ASSERT_FALSE(outcome);
  EXPECT_EQ(outcome.error().code, Errc::kTimedOut);
}

TEST_F(RecoveryTest, AnOfferThatIsNeverAnsweredEnds) {
  join({0, 4}, {2, 5});
  ASSERT_TRUE(sender_->recovery().advance(now_));
  (void)notes_of(*sender_);
  EXPECT_EQ(health_of(*sender_, 1), RailState::Health::kOffered);
  now_ += seconds(41);
  ASSERT_TRUE(sender_->recovery().advance(now_));
  EXPECT_EQ(health_of(*sender_, 1), RailState::Health::kDown);
  EXPECT_THAT(log_.warned(), HasSubstr("the peer does not answer"));
}

// The first thing that happens to some: a NIC fails before the stream beside it is dialled.
TEST_F(RecoveryTest, ARailOfTcpThatIsNotUpYetIsWaitedFor) {
  join({0, 4}, {2, 5});
  rails_[5]->listening = *sockets::open_listener(rails_[5]->device.exchange);
  for (const auto& end : {sender_.get(), receiver_.get()})
    end->recovery().await_tcp(now_ + seconds(20));
  ASSERT_TRUE(sender_->recovery().lose(0, "its port is down"));
  EXPECT_THAT(log_.warned(), HasSubstr("its port is down; messages wait for that of TCP"));
  rails_[0]->is_port_down = true;  // And stays so.
  const auto is_up = [this](Connection& end) {
    return health_of(end, 1) == RailState::Health::kUp;
  };
  while (!is_up(*sender_) || !is_up(*receiver_)) {
    ASSERT_TRUE(pass(milliseconds(2)));
    ASSERT_LT(now_, TimePoint(seconds(1010)));
    take_in();
  }
  for (int i = 0; i < 60; ++i) ASSERT_TRUE(pass(seconds(1))) << "it has come in time";
  EXPECT_FALSE(sender_->recovery().lose(1, "it is cut"))
      << "the last, and nothing is awaited any more";
}

TEST_F(RecoveryTest, ARailOfTcpIsWaitedForAsLongAsConnectionsAre) {
  join({0, 4}, {2, 5});
  for (const auto& end : {sender_.get(), receiver_.get()})
    end->recovery().await_tcp(now_ + seconds(20));
  ASSERT_TRUE(receiver_->recovery().lose(0, "its port is down"));
  rails_[2]->is_port_down = true;
  const TimePoint begun = now_;
  Status outcome;
  while (outcome) outcome = pass(milliseconds(100));  // Nobody listens there.
  EXPECT_EQ(outcome.error().code, Errc::kTimedOut);
  EXPECT_THAT(outcome.error().where, HasSubstr("none of TCP has come up in time"));
  EXPECT_EQ(now_ - begun, seconds(20));
}

TEST_F(RecoveryTest, ARailOfTcpThatNeverCameIsNotWaitedForLater) {
  join({0, 4}, {2, 5});
  for (const auto& end : {sender_.get(), receiver_.get()})
    end->recovery().await_tcp(now_ + seconds(20));
  for (int i = 0; i < 21; ++i) ASSERT_TRUE(pass(seconds(1)));
  EXPECT_FALSE(sender_->recovery().lose(0, "its port is down"));
}

// The comm's thread finishes the drain, too, if the device gives its receives back late.
TEST_F(RecoveryTest, ReceivesThatComeBackLateFenceAMuteRail) {
  join({0, 1}, {2, 3});
  ASSERT_TRUE(receiver_->recovery().lose(1, "it is dead"));
  receiver_->traffic().rails()[1].health = RailState::Health::kMute;
  const std::shared_ptr<Connection> receiver = std::move(receiver_);
  CommEnd end(std::make_shared<ControlThread>(ControlSettings{}), receiver);
  for (int i = 0; i < 1000 && health_of(*receiver, 1) != RailState::Health::kFenced; ++i)
    ASSERT_TRUE(end.poll());
  EXPECT_EQ(health_of(*receiver, 1), RailState::Health::kFenced);
}

// The kinds are in different positions at both ends, and one end has one rail of RDMA more.
TEST_F(RecoveryTest, RailsAreJoinedByKindAndNumber) {
  join({4, 0, 1}, {2, 5});
  ASSERT_EQ(sender_->rail_states().size(), 2U);
  ASSERT_EQ(receiver_->rail_states().size(), 2U);
  EXPECT_EQ(sender_->rail_states()[0].rail, rails_[0]);
  EXPECT_EQ(sender_->rail_states()[1].rail, rails_[4]);
  EXPECT_EQ(sender_->rail_states()[1].key, 2) << "behind those of RDMA";
  EXPECT_EQ(receiver_->rail_states()[0].rail, rails_[2]);
  EXPECT_EQ(receiver_->rail_states()[1].rail, rails_[5]);
  EXPECT_EQ(receiver_->rail_states()[1].key, 1);
}

TEST_F(RecoveryTest, ATicketIsGoodOnceAndWhileItIsAwaited) {
  join({0, 4}, {2, 5});
  rails_[5]->listening = *sockets::open_listener(rails_[5]->device.exchange);
  Fd none;
  EXPECT_FALSE(receiver_->recovery().take_stream({}, none)) << "nothing was accepted";
  ASSERT_TRUE(pass(milliseconds(0)));
  const Ticket ticket = receiver_->rail_states()[1].ticket;
  EXPECT_NE(ticket, Ticket{});
  Fd fd(socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
  EXPECT_FALSE(receiver_->recovery().take_stream({}, fd));
  EXPECT_TRUE(receiver_->recovery().take_stream(ticket, fd));
  EXPECT_FALSE(receiver_->recovery().take_stream(ticket, fd));
  EXPECT_FALSE(sender_->recovery().take_stream(ticket, fd));
}

}  // namespace
}  // namespace ztcp::verbs
