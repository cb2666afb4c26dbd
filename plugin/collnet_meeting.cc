// SPDX-License-Identifier: Apache-2.0
// Copyright the ztcp authors
#include "plugin/collnet_meeting.h"

#include <algorithm>
#include <thread>
#include <utility>

#include <fmt/format.h>

#include "plugin/collnet.h"
#include "plugin/collnet_settings.h"
#include "plugin/memory.h"

namespace ztcp::plugin {
namespace {

constexpr std::chrono::microseconds kPollInterval{50};

}  // namespace

CollMeeting::CollMeeting(Net& net, const CollListening& listening, std::span<void* const> handles,
                         std::size_t rank, const CollnetSettings& settings)
    : net_(net),
      listening_(listening),
      rank_(rank),
      ranks_(handles.size()),
      settings_(settings),
      lanes_(handles.size()) {
  for (std::size_t peer = 0; peer < ranks_; ++peer) {
    if (peer == rank) continue;
    for (std::size_t lane = 0; lane < reduce::kLanes; ++lane) {
      Dialled& one = dialled_.emplace_back();
      one.rank = peer;
      one.hello.lane = static_cast<std::uint8_t>(lane);
      one.hello.wire = static_cast<std::uint8_t>(settings.wire);
      one.hello.rank = static_cast<std::uint32_t>(rank);
      one.hello.ranks = static_cast<std::uint32_t>(ranks_);
      one.hello.sizes = settings.sizes;
      one.hello.speed_mbps = settings.speed_mbps;
      std::copy_n(static_cast<const std::byte*>(handles[peer]), kHandleBytes, one.handle.begin());
    }
  }
}

CollMeeting::~CollMeeting() {
  if (has_met_) return;
  for (Dialled& one : dialled_) {
    if (one.comm == nullptr) {
      net_.close(connect_state(one.handle));
      continue;
    }
    (void)deregister_memory(*one.comm, one.key);
    net_.close(static_cast<Comm*>(one.comm));
  }
  for (Accepted& one : accepted_) {
    (void)deregister_memory(*one.comm, one.key);
    net_.close(static_cast<Comm*>(one.comm));
  }
}

Told<std::vector<PeerLanes>> CollMeeting::meet(std::chrono::milliseconds timeout) {
  const auto deadline = std::chrono::steady_clock::now() + timeout;
  while (!ZTCP_TRY(advance())) {
    if (std::chrono::steady_clock::now() >= deadline)
      return report(Errc::kTimedOut,
                    "CollNet: connecting {} hosts took longer than {} ms, {}; NCCL uses its other "
                    "algorithms",
                    ranks_, timeout.count(), missing());
    std::this_thread::sleep_for(kPollInterval);
  }
  has_met_ = true;
  return std::move(lanes_);
}

Told<void> CollMeeting::confirm(std::chrono::milliseconds patience) {
  const auto begin = [](Greeting& greeting) {
    greeting.request = nullptr;
    greeting.is_over = false;
  };
  std::ranges::for_each(dialled_, begin);
  std::ranges::for_each(accepted_, begin);
  const auto warn_at = std::chrono::steady_clock::now() + patience;
  bool has_warned = false;
  Told<bool> done = false;
  while ((done = advance()) && !*done) {
    if (!has_warned && std::chrono::steady_clock::now() >= warn_at) {
      log::warn(
          "CollNet: still waiting after {} ms for {}, which has connected; NCCL waits meanwhile: "
          "is "
          "its process stopped? ztcp_stat why on that host tells",
          patience.count(), unconfirmed());
      has_warned = true;
    }
    std::this_thread::sleep_for(kPollInterval);
  }
  if (done) return {};
  for (Dialled& one : dialled_) (void)deregister_memory(*one.comm, one.key);
  for (Accepted& one : accepted_) (void)deregister_memory(*one.comm, one.key);
  return pass_on(done.error());
}

// True once every connection is there, and its message.
Told<bool> CollMeeting::advance() {
  for (Dialled& one : dialled_) ZTCP_CHECK(advance(one));
  if (accepted_.size() < dialled_.size())
    if (RecvComm* const comm = ZTCP_TRY(net_.accept(listening_.listening)); comm != nullptr)
      accepted_.emplace_back().comm = comm;
  for (Accepted& one : accepted_) ZTCP_CHECK(advance(one));
  return accepted_.size() == dialled_.size() && std::ranges::all_of(dialled_, &Greeting::is_over) &&
         std::ranges::all_of(accepted_, &Greeting::is_over);
}

// Posts the greeting with `post`, and sees to its end.
template <class Post>
Told<void> CollMeeting::exchange(Greeting& greeting, Comm& comm, Post&& post) {
  if (greeting.key == nullptr)
    greeting.key = ZTCP_TRY(
        register_memory(comm, {.address = &greeting.hello, .size_bytes = sizeof greeting.hello}));
  if (greeting.request == nullptr) {
    const Result<Request*> posted = post();
    if (!posted) return pass_on(posted.error());
    greeting.request = *posted;
    if (greeting.request == nullptr) return {};
  }
  std::size_t moved = 0;
  const Result<bool> done = greeting.request->test({&moved, 1});
  if (!done) return pass_on(done.error());
  if (!*done) return {};
  if (moved != sizeof greeting.hello) greeting.hello.magic = 0;  // No whole message.
  greeting.is_over = true;
  return deregister_memory(comm, std::exchange(greeting.key, nullptr));
}

Told<void> CollMeeting::advance(Dialled& one) {
  if (one.is_over) return {};
  if (one.comm == nullptr) {
    one.comm = ZTCP_TRY(net_.connect(listening_.context, listening_.device, one.handle));
    if (one.comm == nullptr) return {};
    lanes_[one.rank].senders[one.hello.lane] = one.comm;
  }
  return exchange(one, *one.comm, [&] {
    const auto* const bytes = reinterpret_cast<const std::byte*>(&one.hello);
    return one.comm->post_send({bytes, sizeof one.hello}, /*tag=*/0, one.key);
  });
}

Told<void> CollMeeting::advance(Accepted& one) {
  if (one.is_over) return {};
  ZTCP_CHECK(exchange(one, *one.comm, [&] {
    const RecvBuffer buffer{.bytes = {reinterpret_cast<std::byte*>(&one.hello), sizeof one.hello},
                            .key = one.key};
    return one.comm->post_recv({&buffer, 1});
  }));
  if (!one.is_over) return {};
  const bool is_confirmation = has_met_ && one.hello.magic == CollHello::kMagic;
  return is_confirmation ? Told<void>{} : place(one);
}

Told<void> CollMeeting::place(const Accepted& one) {
  const CollHello& hello = one.hello;
  const std::string peer = one.comm->describe_peer();
  if (hello.magic != CollHello::kMagic || hello.version != CollHello::kVersion ||
      hello.table != kCollnetSizesDigest)
    return report(Errc::kProtocol,
                  "CollNet: {} has another release of ztcp; give all hosts of the job the same",
                  peer);
  if (hello.wire != static_cast<std::uint8_t>(settings_.wire))
    return report(
        Errc::kProtocol,
        "CollNet: {} sends sums as {}, this host as {}; set ZTCP_COLLNET_WIRE (or wire in "
        "[collnet]) to the same on all hosts",
        peer, name_of(static_cast<reduce::Wire>(hello.wire)), name_of(settings_.wire));
  if (hello.sizes != settings_.sizes)
    return report(Errc::kProtocol,
                  "CollNet: the NICs of {} have {} Mb/s together, this host's {}, and by that the "
                  "tuner offers CollNet for different sizes; NCCL uses its other algorithms: set "
                  "the same speed_mbps for each NIC in every host's ztcp.conf, or export "
                  "ZTCP_TUNER=off on all hosts",
                  peer, hello.speed_mbps, settings_.speed_mbps);
  if (hello.ranks != ranks_ || hello.rank >= ranks_ || hello.rank == rank_ ||
      hello.lane >= reduce::kLanes ||
      std::exchange(lanes_[hello.rank].receivers[hello.lane], one.comm) != nullptr)
    return report(Errc::kProtocol,
                  "CollNet: {} connects as rank {} of {} hosts, lane {}, to a group of {} hosts",
                  peer, hello.rank, hello.ranks, hello.lane, ranks_);
  return {};
}

std::string CollMeeting::unconfirmed() const {
  for (const Accepted& one : accepted_)
    if (!one.is_over) return one.comm->describe_peer();
  return "a host that does not receive";
}

std::string CollMeeting::missing() const {
  std::string ranks;
  for (std::size_t rank = 0; rank < ranks_; ++rank) {
    if (rank == rank_) continue;
    const auto is_open = [&](const Dialled& one) { return one.rank == rank && !one.is_over; };
    const bool has_called = lanes_[rank].receivers[reduce::kLanes - 1] != nullptr;
    if (has_called && std::ranges::none_of(dialled_, is_open)) continue;
    ranks += fmt::format("{}{}", ranks.empty() ? "" : ", ", rank);
  }
  return fmt::format(
      "host {} of the group is missing: is its process alive, and does its log say why", ranks);
}

}  // namespace ztcp::plugin
