// SPDX-License-Identifier: Apache-2.0
// Copyright the ztcp authors
#include "bench/tails/rank.h"

#include <algorithm>
#include <ctime>
#include <pthread.h>
#include <sched.h>
#include <sys/socket.h>
#include <unistd.h>
#include <utility>

#include "tools/ztcp_perf/failure.h"

namespace ztcp::bench {
namespace {

using perf::fail;

double now_us() {
  timespec ts{};
  clock_gettime(CLOCK_MONOTONIC, &ts);
  return static_cast<double>(ts.tv_sec) * 1e6 + static_cast<double>(ts.tv_nsec) / 1e3;
}

void check(ncclResult_t result, const char* call) {
  if (result != ncclSuccess) fail("{}: {}", call, perf::name_of(result));
}

void exchange(int socket, const void* out, void* in, std::size_t bytes) {
  if (::send(socket, out, bytes, MSG_NOSIGNAL) != static_cast<ssize_t>(bytes) ||
      ::recv(socket, in, bytes, MSG_WAITALL) != static_cast<ssize_t>(bytes))
    fail("the other rank has gone");
}

// Polls in a loop, and notes the longest time between two polls.
class Looks {
 public:
  void note() {
    const double now = now_us();
    longest_us_ = std::max(longest_us_, now - last_us_);
    last_us_ = now;
  }
  double longest_us() const { return longest_us_; }

 private:
  double last_us_ = now_us();
  double longest_us_ = 0;
};

}  // namespace

Rank::Rank(perf::Net& net, int peer, const RankOptions& options)
    : net_(net), peer_(peer), options_(options), channels_(options.channels) {
  connect();
  proxy_ = std::thread([this] { run_proxy(); });
  pthread_setname_np(proxy_.native_handle(), "proxy");
}

Rank::~Rank() {
  {
    const std::lock_guard lock(mutex_);
    stops_ = true;
  }
  posted_.notify_one();
  proxy_.join();
  for (Channel& channel : channels_) {
    net_.dereg_mr(channel.send, channel.send_memory);
    net_.dereg_mr(channel.receive, channel.receive_memory);
    net_.close_send(channel.send);
    net_.close_recv(channel.receive);
  }
}

void Rank::connect() {
  int devices = 0;
  check(net_.devices(&devices), "devices");
  if (devices == 0) fail("the plugin found no device");
  std::vector<perf::Handle> mine(channels_.size());
  std::vector<perf::Handle> theirs(channels_.size());
  std::vector<void*> listeners(channels_.size());
  const auto device_of = [&](std::size_t i) { return static_cast<int>(i) % devices; };
  for (std::size_t i = 0; i < channels_.size(); ++i)
    check(net_.listen(device_of(i), mine[i].data(), &listeners[i]), "listen");
  for (std::size_t i = 0; i < channels_.size(); ++i)
    exchange(peer_, mine[i].data(), theirs[i].data(), sizeof(perf::Handle));
  for (std::size_t open = 0; open != channels_.size(); sched_yield()) {
    open = 0;
    for (std::size_t i = 0; i < channels_.size(); ++i) {
      Channel& channel = channels_[i];
      if (channel.send == nullptr)
        check(net_.connect(device_of(i), theirs[i].data(), &channel.send), "connect");
      if (channel.receive == nullptr) check(net_.accept(listeners[i], &channel.receive), "accept");
      if (channel.send != nullptr && channel.receive != nullptr) ++open;
    }
  }
  const std::size_t most =
      std::max<std::size_t>(options_.largest_bytes / kHalves / channels_.size(), 1);
  for (std::size_t i = 0; i < channels_.size(); ++i) {
    Channel& channel = channels_[i];
    check(net_.close_listen(listeners[i]), "closeListen");
    channel.out.resize(most);
    channel.in.resize(most);
    check(net_.reg_mr(channel.send, channel.out.data(), most, &channel.send_memory), "regMr");
    check(net_.reg_mr(channel.receive, channel.in.data(), most, &channel.receive_memory), "regMr");
  }
}

void Rank::barrier() const {
  const char out = 0;
  char in = 0;
  exchange(peer_, &out, &in, 1);
}

void Rank::run_proxy() {
  while (true) {
    std::size_t bytes = 0;
    {
      std::unique_lock lock(mutex_);
      posted_.wait(lock, [this] { return posted_bytes_ != 0 || stops_; });
      if (stops_) return;
      bytes = std::exchange(posted_bytes_, 0);
    }
    woken_us_ = now_us() - posted_at_us_;
    carry(bytes);
    is_done_.store(true, std::memory_order_release);
  }
}

void Rank::carry(std::size_t bytes) {
  for (Channel& channel : channels_) channel.sent = channel.received = 0;
  const std::size_t each = std::max<std::size_t>(bytes / kHalves / channels_.size(), 1);
  Looks looks;
  for (bool is_done = false; !is_done;) {
    bool moved = false;
    is_done = true;
    for (Channel& channel : channels_) {
      moved |= advance(channel, each);
      is_done &= channel.sent == kHalves && channel.received == kHalves;
    }
    if (!moved) sched_yield();
    looks.note();
  }
  proxy_gap_us_ = looks.longest_us();
}

bool Rank::advance(Channel& channel, std::size_t bytes) {
  const bool received = channel.received < kHalves && receive(channel, bytes);
  const bool may_send = channel.sent < kHalves && channel.sent <= channel.received;
  return (may_send && send(channel, bytes)) || received;
}

bool Rank::receive(Channel& channel, std::size_t bytes) {
  if (channel.receive_request == nullptr) {
    const perf::ReceivePart part{.data = channel.in.data(),
                                 .size_bytes = bytes,
                                 .tag = 0,
                                 .mhandle = channel.receive_memory};
    check(net_.irecv(channel.receive, {&part, 1}, &channel.receive_request), "irecv");
    return channel.receive_request != nullptr;
  }
  int done = 0;
  int size = 0;
  check(net_.test(channel.receive_request, &done, &size), "test");
  if (done == 0) return false;
  channel.receive_request = nullptr;
  ++channel.received;
  return true;
}

bool Rank::send(Channel& channel, std::size_t bytes) {
  if (channel.send_request == nullptr) {
    check(net_.isend(channel.send, channel.out.data(), bytes, 0, channel.send_memory,
                     &channel.send_request),
          "isend");
    return channel.send_request != nullptr;
  }
  int done = 0;
  int size = 0;
  check(net_.test(channel.send_request, &done, &size), "test");
  if (done == 0) return false;
  channel.send_request = nullptr;
  ++channel.sent;
  return true;
}

void Rank::collective(std::size_t bytes, Measured& measured) {
  is_done_.store(false, std::memory_order_relaxed);
  const double begin = now_us();
  {
    const std::lock_guard lock(mutex_);
    posted_bytes_ = bytes;
    posted_at_us_ = begin;
  }
  posted_.notify_one();
  Looks looks;
  while (!is_done_.load(std::memory_order_acquire)) {
    if (options_.wait == MainWait::kYields) sched_yield();
    looks.note();
  }
  measured.took_us.push_back(now_us() - begin);
  measured.proxy_woken_us.push_back(woken_us_);
  measured.proxy_gap_us.push_back(proxy_gap_us_);
  measured.main_gap_us.push_back(looks.longest_us());
}

Measured Rank::measure(std::size_t bytes, int iterations) {
  constexpr int kWarmUps = 20;
  Measured measured;
  for (int i = 0; i < kWarmUps; ++i) collective(bytes, measured);
  measured = {};
  barrier();
  measured.before = read_threads();
  for (int i = 0; i < iterations; ++i) collective(bytes, measured);
  measured.after = read_threads();
  barrier();
  return measured;
}

}  // namespace ztcp::bench
