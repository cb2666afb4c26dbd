// SPDX-License-Identifier: Apache-2.0
// Copyright the ztcp authors
#include "transport/ustack/capture_server.h"

#include <array>
#include <cstdlib>
#include <cstring>
#include <fcntl.h>
#include <filesystem>
#include <fstream>
#include <poll.h>
#include <random>
#include <string>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/un.h>
#include <thread>
#include <unistd.h>
#include <vector>

#include <fmt/format.h>
#include <gtest/gtest.h>

#include "core/descriptor.h"

namespace ztcp::ustack {
namespace {

// The capturing program's side.
struct Client {
  explicit Client(const std::string& path)
      : socket(::socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0)) {
    sockaddr_un address{};
    address.sun_family = AF_UNIX;
    path.copy(address.sun_path, sizeof(address.sun_path) - 1);
    connected =
        ::connect(socket.get(), reinterpret_cast<const sockaddr*>(&address), sizeof(address)) == 0;
    const timeval limit{.tv_sec = 20, .tv_usec = 0};
    setsockopt(socket.get(), SOL_SOCKET, SO_RCVTIMEO, &limit, sizeof(limit));
  }
  void send(std::span<const std::byte> message) const {
    ::send(socket.get(), message.data(), message.size(), MSG_NOSIGNAL);
  }
  // Its descriptors, if any, are in `fds`.
  Result<stats::CaptureAnswer> receive() {
    std::array<std::byte, 2048> bytes{};
    iovec data{.iov_base = bytes.data(), .iov_len = bytes.size()};
    alignas(cmsghdr) std::array<std::byte, CMSG_SPACE(2 * sizeof(int))> control{};
    msghdr message{};
    message.msg_iov = &data;
    message.msg_iovlen = 1;
    message.msg_control = control.data();
    message.msg_controllen = control.size();
    const ssize_t got = recvmsg(socket.get(), &message, MSG_CMSG_CLOEXEC);
    if (got < 0) return fail_errno("recvmsg");
    if (const cmsghdr* const header = CMSG_FIRSTHDR(&message); header != nullptr) {
      std::array<int, 2> raw{};
      std::memcpy(raw.data(), CMSG_DATA(header), sizeof(raw));
      for (const int fd : raw) fds.emplace_back(fd);
    }
    return stats::parse_answer(std::span(bytes).first(static_cast<std::size_t>(got)));
  }
  Result<stats::CaptureAnswer> ask(const stats::CaptureRequest& request) {
    send(std::as_bytes(std::span(&request, 1)));
    return receive();
  }
  stats::CaptureStatus start(const std::string& device = "ztcp0") {
    stats::CaptureRequest request;
    request.kind = stats::CaptureKind::kStart;
    stats::set_text(request.device, device);
    const auto answer = ask(request);
    EXPECT_TRUE(answer);
    return answer ? answer->status : stats::CaptureStatus::kBadRequest;
  }
  // The server has ended the connection.
  bool is_over() const {
    std::byte none{};
    return recv(socket.get(), &none, 1, 0) == 0;
  }

  Descriptor socket;
  bool connected = false;
  std::vector<Descriptor> fds;
};

struct CaptureServerTest : testing::Test {
  CaptureServerTest() {
    EXPECT_NE(mkdtemp(folder.data()), nullptr);
    start();
  }
  ~CaptureServerTest() override {
    server.reset();
    std::error_code ignored;
    std::filesystem::remove_all(folder, ignored);
  }
  void start() {
    auto started = CaptureServer::start(folder);
    ASSERT_TRUE(started);
    server = std::move(*started);
    server->add("ztcp0", {{2, 0, 0, 0, 0, 1}}, 9000, taps);
  }
  void receive_frames(std::size_t lane, std::size_t count) {
    const std::vector<std::byte> bytes(100, std::byte{7});
    RxFrame frame{};
    frame.head = bytes;
    for (std::size_t i = 0; i < count; ++i) taps[lane]->received({&frame, 1});
  }

  std::string folder = "/tmp/ztcp-capture.XXXXXX";
  CaptureTaps taps{std::make_shared<stats::CaptureTap>(), std::make_shared<stats::CaptureTap>()};
  std::unique_ptr<CaptureServer> server;
};

TEST_F(CaptureServerTest, SocketIsNamedAfterTheProcessAndPrivate) {
  EXPECT_EQ(server->path(), fmt::format("{}/capture-{}.sock", folder, getpid()));
  struct stat file {};
  ASSERT_EQ(lstat(server->path().c_str(), &file), 0);
  EXPECT_TRUE(S_ISSOCK(file.st_mode));
  EXPECT_EQ(file.st_mode & 0777U, 0600U);
  const std::string path = server->path();
  server.reset();
  EXPECT_NE(lstat(path.c_str(), &file), 0);
}

TEST_F(CaptureServerTest, ListsItsDevices) {
  server->add("ztcp1", {}, 1500, taps);
  Client client(server->path());
  const auto answer = client.ask({});
  ASSERT_TRUE(answer);
  EXPECT_EQ(stats::text_of(answer->devices), "ztcp0\nztcp1\n");
  EXPECT_TRUE(client.is_over());
}

TEST_F(CaptureServerTest, ADeviceThatIsTriedAgainIsCapturedByItsNewTaps) {
  const CaptureTaps before = taps;
  taps = {std::make_shared<stats::CaptureTap>()};
  server->add("ztcp0", {}, 1500, taps);
  Client client(server->path());
  EXPECT_EQ(stats::text_of(client.ask({})->devices), "ztcp0\n");
  stats::CaptureRequest request;
  request.kind = stats::CaptureKind::kStart;
  stats::set_text(request.device, "ztcp0");
  EXPECT_EQ(Client(server->path()).ask(request)->lanes, 1U);
}

TEST_F(CaptureServerTest, FramesOfEveryLaneArriveInMemoryThatTheReaderCantChange) {
  Client client(server->path());
  ASSERT_EQ(client.start(), stats::CaptureStatus::kOk);
  ASSERT_EQ(client.fds.size(), 2U);
  const int rings = client.fds[0].get();
  const std::size_t size = stats::capture_bytes(2, stats::kLeastRingBytes);
  struct stat file {};
  ASSERT_EQ(fstat(rings, &file), 0);
  ASSERT_EQ(static_cast<std::size_t>(file.st_size), size);
  receive_frames(0, 3);
  receive_frames(1, 4);
  void* const memory = mmap(nullptr, size, PROT_READ, MAP_SHARED, rings, 0);
  ASSERT_NE(memory, MAP_FAILED);
  for (std::size_t lane = 0; lane < 2; ++lane) {
    const auto* const state = reinterpret_cast<const stats::CaptureLaneState*>(
        static_cast<const std::byte*>(memory) +
        stats::capture_lane_offset(lane, stats::kLeastRingBytes));
    EXPECT_EQ(state->recorded.load(), lane == 0 ? 3U : 4U);
  }
  munmap(memory, size);
  EXPECT_EQ(mmap(nullptr, size, PROT_READ | PROT_WRITE, MAP_SHARED, rings, 0), MAP_FAILED);
  for (const Descriptor& fd : client.fds) {
    EXPECT_NE(ftruncate(fd.get(), 0), 0) << "a lane would end with SIGBUS";
    EXPECT_NE(ftruncate(fd.get(), 1 << 30), 0);
  }
}

TEST_F(CaptureServerTest, UnknownDeviceIsRefused) {
  Client client(server->path());
  EXPECT_EQ(client.start("ztcp9"), stats::CaptureStatus::kNoDevice);
  EXPECT_TRUE(client.is_over());
}

TEST_F(CaptureServerTest, ThirdCaptureIsRefusedUntilAnotherEnds) {
  Client first(server->path());
  Client third(server->path());
  auto second = std::make_unique<Client>(server->path());
  ASSERT_EQ(first.start(), stats::CaptureStatus::kOk);
  ASSERT_EQ(second->start(), stats::CaptureStatus::kOk);
  EXPECT_EQ(third.start(), stats::CaptureStatus::kBusy);
  second.reset();
  // The server sees the end of the second before it accepts a later client.
  Client fourth(server->path());
  EXPECT_EQ(fourth.start(), stats::CaptureStatus::kOk);
}

TEST_F(CaptureServerTest, AnyFurtherMessageEndsACapture) {
  Client client(server->path());
  ASSERT_EQ(client.start(), stats::CaptureStatus::kOk);
  client.send(std::array{std::byte{1}});
  EXPECT_TRUE(client.is_over());
}

TEST_F(CaptureServerTest, ServesOthersWhileAClientIsSilent) {
  const Client silent(server->path());
  Client client(server->path());
  EXPECT_EQ(client.start(), stats::CaptureStatus::kOk);
  EXPECT_TRUE(silent.is_over()) << "cut off after kRequestTimeout";
}

TEST_F(CaptureServerTest, SurvivesAnyRequest) {
  std::minstd_rand random(3);
  stats::CaptureRequest valid;
  valid.kind = stats::CaptureKind::kStart;
  stats::set_text(valid.device, "ztcp0");
  for (int round = 0; round < 300; ++round) {
    std::array<std::byte, sizeof(valid) + 8> bytes{};
    std::memcpy(bytes.data(), &valid, sizeof(valid));
    for (auto changes = random() % 4; changes > 0; --changes)
      bytes[random() % bytes.size()] = static_cast<std::byte>(random());
    const std::size_t size = random() % 4 == 0 ? random() % bytes.size() : sizeof(valid);
    Client client(server->path());
    ASSERT_TRUE(client.connected);
    client.send(std::span(bytes).first(size));
  }
  // The last ones may still be connected.
  for (;;) {
    Client client(server->path());
    const auto answer = client.ask({});
    ASSERT_TRUE(answer);
    if (answer->status == stats::CaptureStatus::kBusy) continue;
    EXPECT_EQ(answer->status, stats::CaptureStatus::kOk);
    break;
  }
}

TEST_F(CaptureServerTest, ReplacesTheSocketOfADeadProcessOnly) {
  const std::string path = server->path();
  // A second server of this pid finds the first one alive: another container's process.
  const auto second = CaptureServer::start(folder);
  ASSERT_TRUE(second);
  EXPECT_EQ((*second)->path(), fmt::format("{}/capture-{}-1.sock", folder, getpid()));
  server.reset();
  {
    const Descriptor dead(::socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0));
    sockaddr_un address{};
    address.sun_family = AF_UNIX;
    path.copy(address.sun_path, sizeof(address.sun_path) - 1);
    ASSERT_EQ(bind(dead.get(), reinterpret_cast<const sockaddr*>(&address), sizeof(address)), 0);
  }
  start();
  EXPECT_EQ(server->path(), path);
  EXPECT_TRUE(Client(path).connected);
  server.reset();
  std::ofstream(path) << "a file";
  start();
  EXPECT_NE(server->path(), path);
  EXPECT_TRUE(std::filesystem::is_regular_file(path));
}

TEST_F(CaptureServerTest, AnotherUserIsRefused) {
  if (geteuid() != 0) GTEST_SKIP() << "becoming another user needs root";
  ASSERT_EQ(chmod(folder.c_str(), 0777), 0);
  ASSERT_EQ(chmod(server->path().c_str(), 0777), 0);
  std::thread stranger([&] {
    // The raw call changes this thread alone.
    ASSERT_EQ(syscall(SYS_setresuid, 65534, 65534, 65534), 0);
    Client client(server->path());
    ASSERT_TRUE(client.connected);
    const auto answer = client.receive();
    ASSERT_TRUE(answer);
    EXPECT_EQ(answer->status, stats::CaptureStatus::kRefusedUser);
    EXPECT_TRUE(client.is_over());
  });
  stranger.join();
}

}  // namespace
}  // namespace ztcp::ustack
