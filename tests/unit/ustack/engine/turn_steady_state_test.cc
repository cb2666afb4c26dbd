// SPDX-License-Identifier: Apache-2.0
// Copyright the ztcp authors
//
// In the steady state a turn allocates nothing, takes no lock and makes no system call. Two hosts
// exchange messages over a link in memory that loses some frames and often has a full ring.
#include <atomic>
#include <chrono>
#include <dlfcn.h>
#include <linux/seccomp.h>
#include <memory>
#include <pthread.h>
#include <string>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

#include "tests/support/allocation_guard.h"
#include "transport/link/memory_link.h"
#include "transport/msg/recv_session.h"
#include "transport/ustack/engine/engine.h"

namespace {

std::atomic<std::size_t> locks_taken{0};

}  // namespace

// Replaces libc's function for all callers in this program.
extern "C" int pthread_mutex_lock(pthread_mutex_t* mutex) {
  using Lock = int (*)(pthread_mutex_t*);
  static const auto real = reinterpret_cast<Lock>(dlsym(RTLD_NEXT, "pthread_mutex_lock"));
  locks_taken.fetch_add(1, std::memory_order_relaxed);
  return real(mutex);
}

namespace ztcp::ustack {
namespace {

using namespace std::chrono_literals;

constexpr msg::Cookie kCookie{std::byte{7}};
constexpr std::uint16_t kMtuBytes = 9000;

// Loses every lose_every-th frame and, like most DPDK drivers, does not report the room of its
// ring.
class ThinLink final : public link::Link {
 public:
  explicit ThinLink(std::unique_ptr<link::Link> inner) : inner_(std::move(inner)) {}

  const link::LinkCapabilities& capabilities() const override { return inner_->capabilities(); }
  std::size_t receive(std::span<RxFrame> frames) override { return inner_->receive(frames); }
  void release(std::span<RxFrame> frames) override { inner_->release(frames); }
  std::size_t transmit(std::span<const TxFrame> frames) override {
    for (std::size_t i = 0; i < frames.size(); ++i) {
      if ((sent_ + 1) % lose_every != 0 && inner_->transmit(frames.subspan(i, 1)) == 0) return i;
      ++sent_;
    }
    return frames.size();
  }
  LinkState state() override { return inner_->state(); }
  std::uint32_t map_memory(const void*, std::size_t) override { return kUnmapped; }
  void unmap_memory(std::uint32_t) override {}
  const link::LinkCounters& counters() const override { return inner_->counters(); }
  std::string describe() const override { return "thin"; }

  std::size_t lose_every = SIZE_MAX;

 private:
  std::unique_ptr<link::Link> inner_;
  std::size_t sent_ = 0;
};

// Stands in for a comm: posts one message each time its doorbell is rung.
struct User final : comms::Client, msg::SendOwner, msg::RecvOwner {
  void on_doorbell(TimePoint now) override {
    if (sender != nullptr)
      sender->post(now, send_message);
    else
      receiver->post(now, recv_message);
  }
  void on_link_lost(TimePoint) override { failed = true; }
  void on_peer_died(TimePoint, IpAddress, const std::string&) override {}
  void say_goodbye(TimePoint) override {}
  void cut_off() override {}
  void on_ready(TimePoint) override { ready = true; }
  void on_done(msg::SendMessage&) override { ++done; }
  void on_done(msg::RecvMessage&) override { ++done; }
  void on_session_failed(Error) override { failed = true; }
  void on_session_closed() override { failed = true; }

  msg::SendSession* sender = nullptr;
  std::unique_ptr<msg::RecvSession> receiver;
  msg::SendMessage send_message;
  msg::RecvMessage recv_message;
  std::size_t done = 0;
  bool ready = false;
  bool failed = false;
};

// A host with one client.
class Host final : private TurnEvents, public msg::ListenerEvents {
 public:
  Host(std::uint8_t host, std::unique_ptr<link::Link> wire)
      : link(std::move(wire)),
        engine(config(host)),
        user(new User),
        index_(clients_.attach(std::unique_ptr<User>(user)).value()) {}

  static EngineConfig config(std::uint8_t host) {
    EngineConfig config;
    config.stack.mac = MacAddress{{2, 0, 0, 0, 0, host}};
    config.stack.address = {Ipv4Address{0x0a4d0100U + host}, 24};
    config.stack.mtu_bytes = kMtuBytes;
    config.stack.max_connections = 16;
    config.session.max_sessions = 4;
    config.max_pending_streams = 8;
    config.secret = {host, host};
    return config;
  }

  void ring() { rung_ = true; }
  void turn(TimePoint now) {
    engine.turn(now, context_, [this](auto&& visit) {
      if (std::exchange(rung_, false)) visit(index_);
    });
    static_cast<void>(engine.next_deadline());
  }
  std::uint64_t refusals() const { return engine.counts(link).ring_full; }

  static constexpr TimePoint kBegin{1s};
  ThinLink link;
  Engine engine;

 private:
  void on_link_state(LinkState) override {}
  void on_warning(const Finding&) override {}
  void on_path_mtu(TimePoint, const tcp::PathMtuChange&) override {}
  void on_duplicate_address(IpAddress, const MacAddress&) override {}
  void on_nobody_left(TimePoint) override {}
  void on_session(TimePoint, std::unique_ptr<msg::RecvSession> incoming) override {
    user->receiver = std::move(incoming);
    user->receiver->set_owner(*user);
    user->ready = true;
  }

  comms::Clients clients_{1};
  const TurnContext context_{link, clients_, *this};

 public:
  User* const user;  // Owned by clients_.

 private:
  const std::size_t index_;
  bool rung_ = false;
};

class Pair {
 public:
  Pair() : Pair(link::make_memory_links({.mtu_bytes = kMtuBytes, .frames = 48})) {}
  explicit Pair(link::LinkPair links)
      : client(1, std::move(links.first)), server(2, std::move(links.second)) {
    for (std::size_t i = 0; i < out.size(); ++i) out[i] = std::byte(i * 7 + i / 251);
    EXPECT_TRUE(server.engine.sessions().acceptor().add_listener(kCookie, server));
    const EngineConfig there = Host::config(2);
    sent->sender = &client.engine.sessions().connect(
        {there.stack.address.address, there.listen_port}, kCookie, *sent);
    for (int i = 0; i < 1000 && !(sent->ready && received->ready); ++i) turn();
  }

  // Advances the time by 20 us and runs a turn of each side.
  void turn() {
    now += 20us;
    client.turn(now);
    server.turn(now);
  }
  // Transfers a message of each size, in both orders of posting. False: a message did not arrive.
  bool exchange() {
    for (const std::size_t size : {0UL, 8UL, 1000UL, 65'536UL, 1UL << 20}) {
      for (const bool ahead : {true, false}) {
        const std::size_t before = received->done;
        received->recv_message.start(std::span(in).first(size), 0);
        sent->send_message.start(std::span(out).first(size), 0, kUnmapped);
        if (ahead) server.ring();
        client.ring();
        for (int i = 0; i < 3; ++i) turn();
        if (!ahead) server.ring();
        int turns = 0;
        while ((received->done == before || sent->done != received->done) && ++turns < 1'000'000)
          turn();
        if (received->done != before + 1) return false;
      }
    }
    return true;
  }

  std::vector<std::byte> out = std::vector<std::byte>(1U << 20);
  std::vector<std::byte> in = std::vector<std::byte>(1U << 20);
  TimePoint now = Host::kBegin;
  Host client;
  Host server;
  User* const sent = client.user;
  User* const received = server.user;
};

class TurnSteadyState : public testing::Test {
 protected:
  TurnSteadyState() : pair_(std::make_unique<Pair>()) {
    // Warm-up: opens all flows, sends all sizes and repairs losses.
    pair_->client.link.lose_every = 211;
    pair_->server.link.lose_every = 97;
    warm_ = pair_->exchange() && pair_->exchange();
  }
  bool run() {
    bool good = true;
    for (int i = 0; i < 5; ++i) good = good && pair_->exchange();
    return good;
  }
  std::unique_ptr<Pair> pair_;
  bool warm_ = false;
};

TEST_F(TurnSteadyState, DoesNotAllocateOrLock) {
  ASSERT_TRUE(warm_);
  const std::uint64_t resent = pair_->client.engine.stack().counters().tx_retransmitted_bytes;
  const std::uint64_t refused = pair_->client.refusals();
  const std::uint64_t held = pair_->server.engine.stack().counters().rx_out_of_order;
  AllocationGuard guard;
  const std::size_t locks = locks_taken.load();
  const bool good = run();
  const std::size_t locked = locks_taken.load() - locks;
  const std::size_t allocated = guard.count();
  EXPECT_TRUE(good);
  EXPECT_EQ(allocated, 0U);
  EXPECT_EQ(locked, 0U);
  EXPECT_EQ(pair_->in, pair_->out);
  EXPECT_GT(pair_->client.engine.stack().counters().tx_retransmitted_bytes, resent);
  EXPECT_GT(pair_->server.engine.stack().counters().rx_out_of_order, held);
  EXPECT_GT(pair_->client.refusals(), refused);
}

// A thread may lose its CPU between poll() and the reading of the time: frames that come meanwhile
// are received before the timers of that time run.
TEST_F(TurnSteadyState, FramesThatCameBeforeItsTimeComeBeforeTimers) {
  ASSERT_TRUE(warm_);
  Host& server = pair_->server;
  for (const Duration gap : {Duration(1us), Duration(1ms)}) {
    for (int i = 0; i < 10; ++i) pair_->turn();
    pair_->sent->send_message.start(std::span(pair_->out).first(1000), 0, kUnmapped);
    pair_->received->recv_message.start(std::span(pair_->in).first(1000), 0);
    server.ring();
    pair_->turn();
    pair_->turn();
    const std::uint64_t before = server.engine.stack().counters().rx_segments;
    server.engine.poll(server.link);  // Nothing has come.
    pair_->client.ring();
    pair_->client.turn(pair_->now);
    server.turn(pair_->now += gap);
    const bool has_come = server.engine.stack().counters().rx_segments > before;
    EXPECT_EQ(has_come, gap == 1ms);
  }
}

// Tests the lock counter itself.
TEST_F(TurnSteadyState, LockCounterSeesLocks) {
  pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
  const std::size_t before = locks_taken.load();
  pthread_mutex_lock(&mutex);
  pthread_mutex_unlock(&mutex);
  EXPECT_EQ(locks_taken.load(), before + 1);
}

using TurnSteadyStateDeathTest = TurnSteadyState;

// Strict seccomp kills a thread that makes any system call but read, write and exit.
TEST_F(TurnSteadyStateDeathTest, MakesNoSystemCall) {
  ASSERT_TRUE(warm_);
  const auto confined = [this](bool misbehave) {
    if (prctl(PR_SET_SECCOMP, SECCOMP_MODE_STRICT) != 0) _exit(77);
    const bool good = run();
    if (misbehave) syscall(SYS_getppid);
    syscall(SYS_exit, good ? 0 : 1);
  };
  EXPECT_EXIT(confined(false), testing::ExitedWithCode(0), "");
  EXPECT_EXIT(confined(true), testing::KilledBySignal(SIGKILL), "");
}

}  // namespace
}  // namespace ztcp::ustack
