// SPDX-License-Identifier: Apache-2.0
// Copyright the ztcp authors
//
// Faults of the sockets transport: strangers' connections, connections reset in the middle, a
// process without descriptors.
#include <algorithm>
#include <array>
#include <atomic>
#include <chrono>
#include <filesystem>
#include <fstream>
#include <poll.h>
#include <string>
#include <sys/resource.h>
#include <sys/socket.h>
#include <thread>
#include <unistd.h>
#include <vector>

#include <gtest/gtest.h>

#include "core/descriptor.h"
#include "core/listen_address.h"
#include "core/socket_address.h"
#include "tests/support/log_capture.h"
#include "tests/support/polling.h"
#include "tests/support/transfers.h"
#include "tests/unit/sockets/two_hosts.h"
#include "transport/msg/session.h"

namespace ztcp::sockets {
namespace {

using namespace test;

Descriptor connected_to(Endpoint endpoint) {
  Descriptor fd(socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
  const SocketAddress to = to_socket_address(endpoint);
  EXPECT_EQ(::connect(fd.get(), to.get(), to.size_bytes), 0);
  return fd;
}

// Relays bytes between its clients and `to`; reset_all() resets all connections.
class Relay {
 public:
  explicit Relay(Endpoint to) : to_(to), listener_(socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0)) {
    SocketAddress at = to_socket_address({kLoopback4, 0});
    EXPECT_EQ(bind(listener_.get(), at.get(), at.size_bytes), 0);
    EXPECT_EQ(listen(listener_.get(), 16), 0);
    EXPECT_EQ(getsockname(listener_.get(), at.get(), &at.size_bytes), 0);
    endpoint_ = to_endpoint(at);
    thread_ = std::thread([this] { run(); });
  }
  ~Relay() {
    stopping_ = true;
    thread_.join();
  }

  Endpoint endpoint() const { return endpoint_; }
  std::uint64_t passed_bytes() const { return passed_bytes_; }
  int dialled() const { return dialled_; }
  void reset_all() { reset_ = true; }

 private:
  using Way = std::array<Descriptor, 2>;

  void run() {
    std::vector<std::byte> buffer(64U << 10);
    while (!stopping_) {
      if (reset_.exchange(false)) {
        const linger now{.l_onoff = 1, .l_linger = 0};
        for (Way& way : ways_)
          for (Descriptor& end : way)
            setsockopt(end.get(), SOL_SOCKET, SO_LINGER, &now, sizeof now);
        ways_.clear();
      }
      std::vector<pollfd> fds{{listener_.get(), POLLIN, 0}};
      for (Way& way : ways_)
        for (Descriptor& end : way) fds.push_back({end.get(), POLLIN, 0});
      poll(fds.data(), fds.size(), 1);
      if ((fds[0].revents & POLLIN) != 0) {
        Way way{Descriptor(::accept(listener_.get(), nullptr, nullptr)), connected_to(to_)};
        ways_.push_back(std::move(way));
        ++dialled_;
        continue;
      }
      for (std::size_t i = 1; i < fds.size(); ++i)
        if (fds[i].revents != 0) pass(ways_[(i - 1) / 2], (i - 1) % 2, buffer);
    }
  }
  void pass(Way& way, std::size_t from, std::vector<std::byte>& buffer) {
    const ssize_t got = recv(way[from].get(), buffer.data(), buffer.size(), 0);
    if (got <= 0) {
      shutdown(way[1 - from].get(), SHUT_WR);
      way[from] = Descriptor(dup(listener_.get()));  // A placeholder that is not read from.
      return;
    }
    for (ssize_t sent = 0; sent < got;) {
      const ssize_t more = send(way[1 - from].get(), buffer.data() + sent,
                                static_cast<std::size_t>(got - sent), MSG_NOSIGNAL);
      if (more <= 0) return;
      sent += more;
    }
    passed_bytes_ += static_cast<std::uint64_t>(got);
  }

  const Endpoint to_;
  Endpoint endpoint_;
  Descriptor listener_;
  std::vector<Way> ways_;
  std::atomic<bool> stopping_{false};
  std::atomic<bool> reset_{false};
  std::atomic<std::uint64_t> passed_bytes_{0};
  std::atomic<int> dialled_{0};
  std::thread thread_;
};

class Resets : public testing::TestWithParam<HostKind> {};
INSTANTIATE_TEST_SUITE_P(Kinds, Resets,
                         testing::Values(HostKind{"NoWorkers", {}},
                                         HostKind{"Workers", {.workers = 3}},
                                         HostKind{"TwoQueues", {.workers = 8}},
                                         HostKind{"WorkersForOneFlow", {.workers = 2, .flows = 1}}),
                         [](const auto& row) { return row.param.name; });

// A reset loses bytes that the peer's kernel had acknowledged. They are sent again, and each is
// delivered once.
TEST_P(Resets, AConnectionResetDuringTransferIsRedialledAndLosesNothing) {
  TwoHosts hosts(GetParam().options);
  auto listener = hosts[1].listen(0, {});
  ASSERT_TRUE(listener);
  ListenAddress address = *parse_listen_address((*listener)->handle().bytes);
  Relay relay(address.endpoint);
  address.endpoint = relay.endpoint();
  const PeerHandle by_relay{TransportKind::kSockets, to_bytes(address)};
  auto sender = hosts[0].begin_connect(0, by_relay, {});
  ASSERT_TRUE(sender);
  RecvCommPtr receiver;
  while (receiver == nullptr) {
    ASSERT_TRUE((*sender)->is_ready());
    auto accepted = (*listener)->accept();
    ASSERT_TRUE(accepted);
    receiver = std::move(*accepted);
  }
  // On a slow machine a flow may be reset in each round before it carried anything: a session
  // survives max_redials such deaths in a row.
  for (std::uint64_t round = 0; round < msg::SessionSettings{}.max_redials; ++round) {
    const Bytes sent = pattern(8U << 20, round);
    Bytes received(sent.size());
    const auto receiving = post_recv(*receiver, received);
    ASSERT_TRUE(receiving && *receiving != nullptr);
    Request* const sending = post_until_taken(**sender, sent, nullptr);
    ASSERT_NE(sending, nullptr);
    const std::uint64_t before = relay.passed_bytes();
    bool was_reset = false;
    bool is_sent = false;
    bool is_received = false;
    while (!is_sent || !is_received) {
      std::size_t size = 0;
      if (!is_sent) {
        const auto done = sending->test({&size, 1});
        ASSERT_TRUE(done) << done.error().where;
        is_sent = *done;
      }
      if (!is_received) {
        const auto done = (*receiving)->test({&size, 1});
        ASSERT_TRUE(done) << done.error().where;
        is_received = *done;
      }
      if (!was_reset && relay.passed_bytes() > before + (1U << 20)) {
        relay.reset_all();
        was_reset = true;
      }
    }
    EXPECT_EQ(received, sent) << round;
  }
  EXPECT_GT(relay.dialled(), 1);
}

// Descriptors that this process's epoll instances watch.
std::size_t watched() {
  std::size_t count = 0;
  for (const auto& entry : std::filesystem::directory_iterator("/proc/self/fdinfo")) {
    std::ifstream file(entry.path());
    for (std::string line; std::getline(file, line);) count += line.starts_with("tfd:") ? 1 : 0;
  }
  return count;
}

// Duplicates all sockets, as a child between vfork() and exec() has them.
std::vector<Descriptor> second_of_each_socket() {
  std::vector<int> sockets;
  for (const auto& entry : std::filesystem::directory_iterator("/proc/self/fd"))
    if (std::error_code error; std::filesystem::is_socket(entry.status(error)))
      sockets.push_back(std::stoi(entry.path().filename()));
  std::vector<Descriptor> out;
  for (const int fd : sockets) out.emplace_back(dup(fd));
  return out;
}

TEST(Faults, AClosedConnectionThatAnotherProcessHoldsOpenIsNotWatched) {
  TwoHosts hosts;
  auto listener = hosts[1].listen(0, {});
  ASSERT_TRUE(listener);
  Pair pair = test::connect(hosts[0], hosts[1]);
  const std::size_t connected = watched();
  const std::vector<Descriptor> held = second_of_each_socket();
  pair.sender.reset();
  pair.receiver.reset();
  const auto deadline = std::chrono::steady_clock::now() + std::chrono::seconds(30);
  while (watched() != connected - 2 && std::chrono::steady_clock::now() < deadline)
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  EXPECT_EQ(watched(), connected - 2);
}

// The kernel would apply the user timeout to connect(), too. A listener with a full accept queue
// does not answer.
TEST(Faults, ASilentPeerIsGivenUpAfterTheConnectTimeout) {
  config::Fabric settings = host_settings();
  settings.tcp.user_timeout_ms = 200;
  settings.tcp.connect_timeout_ms = 2000;
  auto host = *create(settings, {loopback_device()}, test::cpus_of_this_process());
  const Descriptor silent(socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
  SocketAddress at = to_socket_address({kLoopback4, 0});
  ASSERT_EQ(bind(silent.get(), at.get(), at.size_bytes), 0);
  ASSERT_EQ(listen(silent.get(), 0), 0);
  ASSERT_EQ(getsockname(silent.get(), at.get(), &at.size_bytes), 0);
  const Descriptor fills_it = connected_to(to_endpoint(at));
  const PeerHandle peer{TransportKind::kSockets, to_bytes({to_endpoint(at), {}, {}})};
  const auto begin = std::chrono::steady_clock::now();
  auto comm = host->begin_connect(0, peer, {});
  ASSERT_TRUE(comm);
  Result<bool> ready = false;
  while (ready && !*ready) ready = (*comm)->is_ready();
  ASSERT_FALSE(ready);
  EXPECT_EQ(ready.error().code, Errc::kTimedOut);
  EXPECT_GE(std::chrono::steady_clock::now() - begin, std::chrono::seconds(2));
}

TEST(Faults, TheDescriptorsThatAShellGrantsSufficeForSeveralFlows) {
  rlimit before{};
  ASSERT_EQ(getrlimit(RLIMIT_NOFILE, &before), 0);
  const rlimit shell{.rlim_cur = 1024, .rlim_max = before.rlim_max};
  ASSERT_EQ(setrlimit(RLIMIT_NOFILE, &shell), 0);
  {
    TwoHosts hosts({.max_connections = 4096, .workers = 2, .flows = 3});
    Pair pair = test::connect(hosts[0], hosts[1]);
    const std::size_t connected = watched();
    const auto deadline = std::chrono::steady_clock::now() + std::chrono::seconds(30);
    // Two more flows, with two ends each; they are opened while messages are sent.
    while (watched() != connected + 4 && std::chrono::steady_clock::now() < deadline)
      expect_carries(pair, pattern(1U << 20, 5));
    EXPECT_EQ(watched(), connected + 4);
  }
  EXPECT_EQ(setrlimit(RLIMIT_NOFILE, &before), 0);
}

class Strangers : public testing::TestWithParam<std::int32_t> {};

// With two lanes the connections are pending until they are dealt out.
INSTANTIATE_TEST_SUITE_P(Workers, Strangers, testing::Values(0, 8),
                         [](const auto& row) { return row.param == 0 ? "none" : "two_lanes"; });

TEST_P(Strangers, DoNotDisturbOtherConnections) {
  TwoHosts hosts({.workers = GetParam()});
  auto listener = hosts[1].listen(0, {});
  ASSERT_TRUE(listener);
  const ListenAddress address = *parse_listen_address((*listener)->handle().bytes);
  std::vector<Descriptor> silent;
  std::vector<Descriptor> noisy;
  for (std::uint64_t i = 0; i < 100; ++i) {
    silent.push_back(connected_to(address.endpoint));
    noisy.push_back(connected_to(address.endpoint));
    const Bytes noise = pattern(300 + i, i);
    EXPECT_EQ(send(noisy.back().get(), noise.data(), noise.size(), MSG_NOSIGNAL),
              static_cast<ssize_t>(noise.size()));
    // Only the first bytes of the protocol.
    const std::uint32_t magic = 0x7063747a;
    EXPECT_EQ(send(silent.back().get(), &magic, 1 + i % 4, MSG_NOSIGNAL),
              static_cast<ssize_t>(1 + i % 4));
  }
  Pair pair = test::connect(hosts[0], hosts[1]);
  expect_carries(pair, pattern(1U << 20, 3));
  // Connections that speak another protocol are closed at once.
  for (const Descriptor& fd : noisy) {
    std::byte byte{};
    EXPECT_LE(recv(fd.get(), &byte, 1, 0), 0);
  }
}

// A device opens several descriptors, and any of them may fail.
TEST(Faults, ADeviceWithoutADescriptorLogsTheCommandThatHelps) {
  rlimit limit{};
  ASSERT_EQ(getrlimit(RLIMIT_NOFILE, &limit), 0);
  std::vector<std::string> missing;
  for (rlim_t spare = 0; spare < 3; ++spare) {
    TwoHosts hosts;
    const int next = dup(0);
    ASSERT_GE(next, 0);
    close(next);
    const rlimit few{.rlim_cur = static_cast<rlim_t>(next) + spare, .rlim_max = limit.rlim_max};
    const test::LogCapture log;
    ASSERT_EQ(setrlimit(RLIMIT_NOFILE, &few), 0);
    const auto listener = hosts[0].listen(0, {});
    ASSERT_EQ(setrlimit(RLIMIT_NOFILE, &limit), 0);
    ASSERT_FALSE(listener) << spare;
    EXPECT_EQ(listener.error().sys_errno, EMFILE) << listener.error().where;
    ASSERT_EQ(log.warnings().size(), 1U) << log.warned();
    EXPECT_TRUE(log.warnings()[0].ends_with(": raise ulimit -n")) << log.warned();
    missing.emplace_back(listener.error().where);
    EXPECT_TRUE(hosts[0].listen(0, {})) << "there is room again";
  }
  EXPECT_EQ(missing, (std::vector<std::string>{"socket", "epoll_create1", "eventfd"}));
}

}  // namespace
}  // namespace ztcp::sockets
