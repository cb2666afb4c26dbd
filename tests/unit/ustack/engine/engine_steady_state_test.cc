// SPDX-License-Identifier: Apache-2.0
// Copyright the ztcp authors
//
// Two engines joined in memory, with messages between them and a frame lost now and then: once
// they run, a turn of theirs allocates nothing, takes no lock and makes no system call.
#include <algorithm>
#include <array>
#include <atomic>
#include <chrono>
#include <cstring>
#include <dlfcn.h>
#include <linux/seccomp.h>
#include <memory>
#include <pthread.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>
#include <vector>

#include <gtest/gtest.h>

#include "tests/support/allocation_guard.h"
#include "transport/ustack/engine/engine.h"

namespace {

std::atomic<std::size_t> locks_taken{0};

}  // namespace

// In front of libc's, for every caller in this program.
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
constexpr std::size_t kBurst = 32;
constexpr std::uint32_t kMtuBytes = 9000;

struct User final : msg::SendOwner, msg::RecvOwner {
  void on_ready(TimePoint) override { ready = true; }
  void on_done(msg::SendMessage&) override { ++done; }
  void on_done(msg::RecvMessage&) override { ++done; }
  void on_session_failed(Error) override { failed = true; }
  void on_session_closed() override { failed = true; }
  std::size_t done = 0;
  bool ready = false;
  bool failed = false;
};

struct Listener final : msg::ListenerEvents {
  void on_session(TimePoint, std::unique_ptr<msg::RecvSession> incoming) override {
    session = std::move(incoming);
  }
  std::unique_ptr<msg::RecvSession> session;
};

// One direction: frames on their way, each in memory of its own until the receiver gives it back.
class Cable {
 public:
  Cable() : slots_(kSlots) {
    for (std::size_t i = 0; i < kSlots; ++i) free_.push_back(kSlots - 1 - i);
    under_way_.reserve(kSlots);
  }

  void send(std::span<const TxFrame> frames) {
    for (const TxFrame& frame : frames) {
      if (++sent_ % lose_every == 0) continue;
      ASSERT_FALSE(free_.empty());
      const std::size_t i = free_.back();
      free_.pop_back();
      Slot& slot = slots_[i];
      slot.size = frame.header_bytes;
      std::memcpy(slot.bytes.data(), frame.header.data(), frame.header_bytes);
      for (std::size_t f = 0; f < frame.fragment_count; ++f) {
        const Fragment& fragment = frame.fragments[f];
        std::memcpy(slot.bytes.data() + slot.size, fragment.data, fragment.size_bytes);
        slot.size += fragment.size_bytes;
      }
      under_way_.push_back(i);
    }
  }
  void deliver(TimePoint now, Engine& to) {
    std::array<RxFrame, kBurst> burst;
    std::size_t count = 0;
    for (std::size_t at = 0; at < under_way_.size(); at += count) {
      count = std::min(kBurst, under_way_.size() - at);
      for (std::size_t i = 0; i < count; ++i) {
        Slot& slot = slots_[under_way_[at + i]];
        burst[i] = {};
        burst[i].head = {slot.bytes.data(), slot.size};
        burst[i].handle = &slot;
        burst[i].charge_bytes = kMtuBytes;
      }
      to.on_frames(now, std::span(burst).first(count));
      for (std::size_t i = 0; i < count; ++i)
        if (!burst[i].kept) give_back(burst[i]);
    }
    under_way_.clear();
    while ((count = to.take_released(burst)) > 0)
      for (std::size_t i = 0; i < count; ++i) give_back(burst[i]);
  }

  std::size_t lose_every = SIZE_MAX;

 private:
  static constexpr std::size_t kSlots = 4096;
  struct Slot {
    std::array<std::byte, kMtuBytes + 64> bytes;
    std::size_t size = 0;
  };
  void give_back(const RxFrame& frame) {
    free_.push_back(static_cast<std::size_t>(static_cast<Slot*>(frame.handle) - slots_.data()));
  }

  std::vector<Slot> slots_;
  std::vector<std::size_t> free_;
  std::vector<std::size_t> under_way_;
  std::size_t sent_ = 0;
};

class Pair {
 public:
  Pair() {
    for (std::size_t i = 0; i < out.size(); ++i) out[i] = std::byte(i * 7 + i / 251);
    EXPECT_TRUE(server.listen(kCookie, listener));
    sender = &client.connect({Ipv4Address{0x0a4d0102}, config(2).listen_port}, kCookie, sent);
    for (int i = 0; i < 1000 && !(sent.ready && listener.session); ++i) turn();
    listener.session->set_owner(received);
  }

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

  // One of each side, 20 us later.
  void turn() {
    now += 20us;
    down.deliver(now, client);
    client.on_timers(now);
    collect(client, up);
    up.deliver(now, server);
    server.on_timers(now);
    collect(server, down);
    static_cast<void>(client.next_deadline());
    static_cast<void>(server.next_deadline());
  }
  // A message of each size and both orders of posting. False: stuck.
  bool exchange() {
    for (const std::size_t size : {0UL, 8UL, 1000UL, 65'536UL, 1UL << 20}) {
      for (const bool ahead : {true, false}) {
        const std::size_t before = received.done;
        if (ahead) {
          post_receive(size);
        }
        send_message.start(std::span(out).first(size), 0, kUnmapped);
        sender->post(now, send_message);
        for (int i = 0; i < 3; ++i) turn();
        if (!ahead) {
          post_receive(size);
        }
        int turns = 0;
        while ((received.done == before || sent.done != received.done) && ++turns < 1'000'000)
          turn();
        if (received.done != before + 1) return false;
      }
    }
    return true;
  }

  void post_receive(std::size_t size) {
    recv_message.start(std::span(in).first(size), 0);
    listener.session->post(now, recv_message);
  }

  msg::SendMessage send_message;
  msg::RecvMessage recv_message;
  std::vector<std::byte> out = std::vector<std::byte>(1U << 20);
  std::vector<std::byte> in = std::vector<std::byte>(1U << 20);
  TimePoint now{1s};
  User sent;
  User received;
  Engine client{config(1)};
  Engine server{config(2)};
  Listener listener;  // Its session dies before the engines.
  msg::SendSession* sender = nullptr;
  Cable up;
  Cable down;

 private:
  void collect(Engine& from, Cable& cable) {
    std::size_t count = 0;
    do {
      count = from.collect(now, burst_);
      cable.send(std::span(burst_).first(count));
    } while (count == burst_.size());
  }
  std::vector<TxFrame> burst_ = std::vector<TxFrame>(kBurst);
};

class EngineSteadyState : public testing::Test {
 protected:
  EngineSteadyState() : pair_(std::make_unique<Pair>()) {
    // All flows open, all sizes seen, and losses repaired.
    pair_->up.lose_every = 211;
    pair_->down.lose_every = 97;
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

TEST_F(EngineSteadyState, NeitherAllocatesNorLocks) {
  ASSERT_TRUE(warm_);
  const std::uint64_t resent = pair_->client.tcp_counters().tx_retransmitted_bytes;
  const std::uint64_t held = pair_->server.tcp_counters().rx_segments_out_of_order;
  AllocationGuard guard;
  const std::size_t locks = locks_taken.load();
  const bool good = run();
  const std::size_t locked = locks_taken.load() - locks;
  const std::size_t allocated = guard.count();
  EXPECT_TRUE(good);
  EXPECT_EQ(allocated, 0U);
  EXPECT_EQ(locked, 0U);
  EXPECT_EQ(pair_->in, pair_->out);
  EXPECT_GT(pair_->client.tcp_counters().tx_retransmitted_bytes, resent);
  EXPECT_GT(pair_->server.tcp_counters().rx_segments_out_of_order, held);
}

// The guards themselves: they do see.
TEST_F(EngineSteadyState, LocksAreCounted) {
  pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
  const std::size_t before = locks_taken.load();
  pthread_mutex_lock(&mutex);
  pthread_mutex_unlock(&mutex);
  EXPECT_EQ(locks_taken.load(), before + 1);
}

using EngineSteadyStateDeathTest = EngineSteadyState;

// Strict seccomp kills whoever calls more than read, write and exit.
TEST_F(EngineSteadyStateDeathTest, MakesNoSystemCall) {
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
