// SPDX-License-Identifier: Apache-2.0
// Copyright the ztcp authors
#include "transport/link/shm_link.h"

#include <array>
#include <chrono>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/support/log_capture.h"
#include "tests/unit/link/frames.h"
#include "tests/unit/link/kept.h"
#include "transport/link/shm_meeting.h"

namespace ztcp::link {
namespace {

using namespace std::chrono_literals;
using test::flatten;
using test::SentFrame;
using testing::HasSubstr;

constexpr MacAddress kServerMac{{2, 0, 0, 0, 0, 1}};
constexpr MacAddress kClientMac{{2, 0, 0, 0, 0, 2}};

class ShmLink : public testing::Test {
 protected:
  ShmLink() {
    folder_ = std::filesystem::temp_directory_path() / "ztcp-shm-XXXXXX";
    EXPECT_NE(::mkdtemp(folder_.data()), nullptr);
  }
  ~ShmLink() override { std::filesystem::remove_all(folder_); }

  ShmConfig config(bool server, std::uint16_t mtu_bytes = 1500) const {
    ShmConfig out;
    out.socket_path = folder_ + "/0.sock";
    out.server = server;
    out.mac = server ? kServerMac : kClientMac;
    out.peer_mac = server ? kClientMac : kServerMac;
    out.mtu_bytes = mtu_bytes;
    return out;
  }
  static std::unique_ptr<Link> open(const ShmConfig& config) {
    auto link = open_shm(config);
    EXPECT_TRUE(link);
    return link ? std::move(*link) : nullptr;
  }
  // Advances the time until all meetings are finished.
  void let_them_meet() {
    for (int i = 0; i < 6; ++i) {
      now_ += 1s;
      if (client_) client_->transmit_room(now_);
      if (server_) server_->transmit_room(now_);
    }
  }
  void make_pair(std::uint16_t mtu_bytes = 1500, std::uint32_t slots = 0) {
    ShmConfig server = config(true, mtu_bytes);
    ShmConfig client = config(false, mtu_bytes);
    server.slots = client.slots = slots;
    server_ = open(server);
    client_ = open(client);
    let_them_meet();
    ASSERT_TRUE(server_->is_up());
    ASSERT_TRUE(client_->is_up());
  }
  // Sends a frame and compares the received one.
  static void carry(Link& from, Link& to, SentFrame& sent) {
    ASSERT_EQ(from.transmit({&sent.frame(), 1}), 1U);
    const std::vector<std::byte> bytes = sent.bytes();
    sent.scribble();
    RxFrame frame;
    ASSERT_EQ(to.receive({&frame, 1}), 1U);
    EXPECT_EQ(flatten(frame), bytes);
    EXPECT_TRUE(frame.checksum_good);
    to.release({&frame, 1});
  }

  std::string folder_;
  TimePoint now_{};
  std::unique_ptr<Link> server_;
  std::unique_ptr<Link> client_;
};

TEST_F(ShmLink, CarriesEverySizeBothWays) {
  make_pair(9000);
  for (std::size_t size = 60; size <= 9014; size += size < 300 ? 1 : 97) {
    SentFrame sent(static_cast<std::uint32_t>(size), size, size > 128 ? 1 + size % 8 : size % 9);
    const bool there = size % 2 == 0;
    carry(there ? *server_ : *client_, there ? *client_ : *server_, sent);
  }
  EXPECT_TRUE(server_->capabilities().trusted);
  EXPECT_TRUE(server_->capabilities().tx_checksum);
  EXPECT_TRUE(client_->capabilities().rx_checksum);
}

TEST_F(ShmLink, DropsFramesLargerThanTheMtu) {
  make_pair();
  SentFrame fits(1, 1514, 1);
  carry(*server_, *client_, fits);
  SentFrame large(1, 1515, 1);
  EXPECT_EQ(server_->transmit({&large.frame(), 1}), 1U);
  EXPECT_EQ(server_->counters().tx_dropped, 1U);
  RxFrame frame;
  EXPECT_EQ(client_->receive({&frame, 1}), 0U);
}

TEST_F(ShmLink, TakesAsManyFramesAsTheReceiverHasRoomFor) {
  make_pair(1500, 64);
  SentFrame sent(1, 100, 1);
  const std::vector<TxFrame> burst(65, sent.frame());
  EXPECT_EQ(server_->transmit(burst), 64U);
  EXPECT_EQ(server_->counters().tx_ring_full, 1U);
  std::vector<RxFrame> received(65);
  ASSERT_EQ(client_->receive(received), 64U);
  EXPECT_EQ(server_->transmit(burst), 0U) << "all are held";
  received[7].kept = true;
  client_->release(std::span(received).first(64));
  EXPECT_EQ(server_->transmit(burst), 63U);
  EXPECT_EQ(flatten(received[7]), sent.bytes()) << "a kept frame does not change";
  received[7].kept = false;
  client_->release(std::span(received).subspan(7, 1));
  EXPECT_EQ(server_->transmit(burst), 1U);
}

TEST_F(ShmLink, ReceivesWithAllKept) {
  make_pair(9000);
  SentFrame sent(1, 9000, 1);
  test::expect_it_receives_with_all_kept(*client_, [&] {
    ASSERT_EQ(server_->transmit({&sent.frame(), 1}), 1U);
  });
}

TEST_F(ShmLink, AClientWaitsForItsServer) {
  client_ = open(config(false));
  let_them_meet();
  EXPECT_FALSE(client_->is_up());
  SentFrame sent(1, 100, 1);
  EXPECT_EQ(client_->transmit({&sent.frame(), 1}), 1U) << "dropped, as a cable would";
  EXPECT_EQ(client_->counters().tx_dropped, 1U);
  server_ = open(config(true));
  let_them_meet();
  EXPECT_TRUE(client_->is_up());
  carry(*client_, *server_, sent);
}

TEST_F(ShmLink, FramesSentBeforeThePeersEndAreReceived) {
  make_pair();
  SentFrame last(3, 200, 1);
  ASSERT_EQ(client_->transmit({&last.frame(), 1}), 1U);
  client_.reset();
  let_them_meet();
  EXPECT_FALSE(server_->is_up());
  RxFrame frame;
  ASSERT_EQ(server_->receive({&frame, 1}), 1U);
  EXPECT_EQ(flatten(frame), last.bytes());
  server_->release({&frame, 1});
}

TEST_F(ShmLink, MeetsANewProcessAfterTheOld) {
  make_pair();
  SentFrame old(1, 300, 1);
  ASSERT_EQ(client_->transmit({&old.frame(), 1}), 1U);
  RxFrame kept;
  ASSERT_EQ(server_->receive({&kept, 1}), 1U);
  client_.reset();
  client_ = open(config(false));
  let_them_meet();
  ASSERT_TRUE(client_->is_up());
  SentFrame fresh(2, 300, 1);
  carry(*client_, *server_, fresh);
  EXPECT_EQ(flatten(kept), old.bytes()) << "a frame outlives the memory it came by";
  server_->release({&kept, 1});
  let_them_meet();

  server_.reset();
  let_them_meet();
  EXPECT_FALSE(client_->is_up());
  server_ = open(config(true));
  let_them_meet();
  ASSERT_TRUE(client_->is_up());
  SentFrame another(3, 300, 1);
  carry(*client_, *server_, another);
}

TEST_F(ShmLink, EndsWithDifferentConfigsRefuseEachOther) {
  ztcp::test::LogCapture log;
  server_ = open(config(true));
  client_ = open(config(false, 9000));
  let_them_meet();
  EXPECT_FALSE(server_->is_up());
  EXPECT_FALSE(client_->is_up());
  EXPECT_THAT(log.warned(), HasSubstr("MTU 9000"));
  EXPECT_EQ(log.warnings().size(), 2U) << "each says it, once";

  ShmConfig stranger = config(false);
  stranger.mac = {{2, 0, 0, 0, 0, 9}};
  client_ = open(stranger);
  let_them_meet();
  EXPECT_FALSE(client_->is_up());
  EXPECT_THAT(log.warned(), HasSubstr("02:00:00:00:00:09"));

  client_ = open(config(false));
  let_them_meet();
  EXPECT_TRUE(client_->is_up());
  EXPECT_TRUE(server_->is_up());
}

// As another libnccl-net.so would: same magic, another version.
TEST_F(ShmLink, AnotherVersionIsRefusedByName) {
  ztcp::test::LogCapture log;
  server_ = open(config(true));
  const Fd caller(::socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  config(true).socket_path.copy(address.sun_path, sizeof(address.sun_path) - 1);
  ASSERT_EQ(::connect(caller.get(), reinterpret_cast<const sockaddr*>(&address), sizeof(address)),
            0);
  std::array<std::uint32_t, 8> hello{};
  const std::uint64_t magic = 0x6b6e696c6d737a00;
  std::memcpy(hello.data(), &magic, sizeof(magic));
  hello[2] = 7;
  ASSERT_EQ(::send(caller.get(), hello.data(), sizeof(hello), 0),
            static_cast<ssize_t>(sizeof(hello)));
  let_them_meet();
  EXPECT_FALSE(server_->is_up());
  EXPECT_THAT(log.warned(), HasSubstr("version 7"));
  std::array<std::uint32_t, 8> answer{};
  ASSERT_EQ(::recv(caller.get(), answer.data(), sizeof(answer), MSG_DONTWAIT),
            static_cast<ssize_t>(sizeof(answer)));
  EXPECT_EQ(answer[3], 1U) << "refused";
}

// A caller that is no ztcp and leaves, or that never sends anything, does not block the peer for
// ever.
TEST_F(ShmLink, StrangersAtItsSocketAreIgnored) {
  ztcp::test::LogCapture log;
  server_ = open(config(true));
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  config(true).socket_path.copy(address.sun_path, sizeof(address.sun_path) - 1);
  const auto* generic = reinterpret_cast<const sockaddr*>(&address);
  {
    const Fd talker(::socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0));
    ASSERT_EQ(::connect(talker.get(), generic, sizeof(address)), 0);
    ASSERT_EQ(::send(talker.get(), "hello", 5, 0), 5);
    let_them_meet();
    const Fd silent(::socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0));
    ASSERT_EQ(::connect(silent.get(), generic, sizeof(address)), 0);
    let_them_meet();
    client_ = open(config(false));
    let_them_meet();
    EXPECT_TRUE(client_->is_up()) << "the silent one has had its time";
  }
  SentFrame sent(1, 100, 1);
  carry(*client_, *server_, sent);
  EXPECT_TRUE(log.warnings().empty()) << log.warned();
}

TEST_F(ShmLink, AnotherUserIsNoPeer) {
  if (::geteuid() != 0) GTEST_SKIP() << "only root can be another user";
  ztcp::test::LogCapture log;
  constexpr uid_t kNobody = 65534;
  ASSERT_EQ(::chmod(folder_.c_str(), 0777), 0);
  server_ = open(config(true));
  ASSERT_EQ(::chmod(config(true).socket_path.c_str(), 0777), 0);
  const pid_t child = ::fork();
  if (child == 0) {
    if (::setuid(kNobody) != 0) ::_exit(1);
    const auto link = open_shm(config(false));
    (*link)->transmit_room(TimePoint{} + 1s);
    ::_exit((*link)->is_up() ? 2 : 0);
  }
  int status = -1;
  ASSERT_EQ(::waitpid(child, &status, 0), child);
  ASSERT_EQ(status, 0);
  let_them_meet();
  EXPECT_FALSE(server_->is_up());
  EXPECT_THAT(log.warned(), HasSubstr("user 65534"));
}

TEST_F(ShmLink, APeerThatBreaksTheProtocolIsDropped) {
  ztcp::test::LogCapture log;
  server_ = open(config(true));
  ShmMeetingConfig terms;
  terms.socket_path = config(false).socket_path;
  terms.mac = kClientMac;
  terms.peer_mac = kServerMac;
  terms.shape = {512, 2048};
  auto meeting = ShmMeeting::open(terms);
  ASSERT_TRUE(meeting);
  std::unique_ptr<ShmRegion> region;
  const auto meet = [&] {
    region.reset();
    for (int i = 0; i < 6 && region == nullptr; ++i) {
      now_ += 1s;
      region = meeting->poll(now_);
      server_->transmit_room(now_);
    }
    ASSERT_NE(region, nullptr);
  };
  meet();
  region->sender().push(4000, 0);  // No header is that long.
  region->sender().publish();
  RxFrame frame;
  EXPECT_EQ(server_->receive({&frame, 1}), 0U);
  EXPECT_FALSE(server_->is_up());
  EXPECT_THAT(log.warned(), HasSubstr("announces invalid frames"));

  meet();
  region->receiver().give_back(5);  // That was never sent.
  region->receiver().publish();
  SentFrame sent(1, 100, 1);
  EXPECT_EQ(server_->transmit({&sent.frame(), 1}), 1U);
  EXPECT_FALSE(server_->is_up());
  EXPECT_THAT(log.warned(), HasSubstr("not sent"));

  // It comes back at once, and does the same: that is not logged again.
  const std::size_t said = log.warnings().size();
  for (int again = 0; again < 3; ++again) {
    meet();
    region->receiver().give_back(5);
    region->receiver().publish();
    EXPECT_EQ(server_->transmit({&sent.frame(), 1}), 1U);
    EXPECT_FALSE(server_->is_up());
  }
  EXPECT_EQ(log.warnings().size(), said);
}

// Memory that its maker could still truncate would kill its reader.
TEST_F(ShmLink, MapsSealedMemoryOfTheRightSizeOnly) {
  const ShmShape shape{64, 2048};
  Fd fd;
  const auto made = ShmRegion::make(shape, fd);
  ASSERT_TRUE(made);
  EXPECT_TRUE(ShmRegion::map(shape, fd));
  EXPECT_FALSE(ShmRegion::map({128, 2048}, fd));
  EXPECT_FALSE(ShmRegion::map({63, 2048}, fd));
  EXPECT_NE(::ftruncate(fd.get(), 0), 0);
  const Fd unsealed(::memfd_create("test", MFD_CLOEXEC));
  ASSERT_EQ(::ftruncate(unsealed.get(), static_cast<off_t>(shape.bytes())), 0);
  EXPECT_FALSE(ShmRegion::map(shape, unsealed));
}

TEST_F(ShmLink, LeavesAnotherFileOfItsNameAlone) {
  const std::string path = config(true).socket_path;
  { const auto server = open(config(true)); }
  EXPECT_FALSE(std::filesystem::exists(path));
  std::ofstream(path) << "precious";
  ztcp::test::LogCapture log;
  EXPECT_FALSE(open_shm(config(true)));
  EXPECT_TRUE(std::filesystem::is_regular_file(path));
  EXPECT_THAT(log.warned(), HasSubstr(path));
  ShmConfig far = config(true);
  far.socket_path = folder_ + "/missing/0.sock";
  EXPECT_FALSE(open_shm(far));
  far.socket_path = folder_ + "/" + std::string(108, 'x');
  EXPECT_EQ(open_shm(far).error().code, Errc::kBadConfig);
}

// Each peer's frames are counted separately, so that a flow that lost one still keeps those after
// it.
TEST_F(ShmLink, AMeshOfManyPeersKeepsFramesToo) {
  std::vector<ShmPeer> peers;
  for (std::uint8_t i = 0; i < 15; ++i)
    peers.push_back({{{2, 0, 0, 0, 1, i}}, folder_ + "/" + std::to_string(i), i % 2 == 0});
  const auto mesh = open_shm_mesh(config(false, 9000), peers);
  ASSERT_TRUE(mesh);
  const LinkCapabilities& capabilities = (*mesh)->capabilities();
  EXPECT_GE(capabilities.max_kept_frames, 96U);
  EXPECT_GE(capabilities.max_kept_bytes, 96U * 9000);
  EXPECT_TRUE(capabilities.trusted);
}

}  // namespace
}  // namespace ztcp::link
