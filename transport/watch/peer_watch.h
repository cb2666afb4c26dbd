// SPDX-License-Identifier: Apache-2.0
// Copyright the ztcp authors
//
// How the death of a peer's process is heard of at once: a kernel TCP connection beside the job's,
// over which nothing is said. Whatever a process dies of, its kernel ends its sockets; a NIC that
// the process drove itself falls silent instead.
//
// One connection for each pair of NICs, made when the first comm between them is, and for each
// process that shares its NIC with others. What it tells is a hint: its end may have other reasons,
// its absence means nothing, and no failure of it is one of the job's.
//
// Each side first says who it is:
//
//   u32 magic "zwch", u32 version (2), u32 pid, u32 flags, NIC's address[16], proof[16], host
//   name[64]
//
// flags: 1 other processes have the NIC's address, too (Peer::shares_nic); numbers little-endian,
// an IPv4 address as ::ffff:a.b.c.d, the name ending at its first zero. The proof is the caller's:
// only who was given a handle of the called process knows it. The answer repeats it. Nobody says
// more.
//
// look() is one thread's; everything else is any thread's. Nothing blocks.
#pragma once

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <memory>
#include <mutex>
#include <string>
#include <unordered_map>
#include <vector>

#include "transport/core/address.h"
#include "transport/core/clock.h"
#include "transport/core/result.h"
#include "transport/link/fd.h"
#include "transport/watch/peer.h"

namespace ztcp::watch {

// Follows from a listener's cookie, and does not tell it.
using Proof = std::array<std::byte, 16>;

struct Counters {
  std::atomic<std::uint64_t> strangers{0};  // Without a proof, or silent, or of another version.
  std::atomic<std::uint64_t> full{0};       // No place left, for a call in or out.
  std::atomic<std::uint64_t> unreachable{0};
  std::atomic<std::uint64_t> broken{0};  // By the network between: says nothing of the process.
};

class PeerWatch {
 public:
  struct Config {
    IpAddress nic;  // Ours, as peers know it.
    bool shares_nic = false;
    IpAddress bind_address;  // Of the kernel.
    std::size_t max_peers = 1024;
    Duration greeting_timeout = std::chrono::seconds(5);
  };
  static Result<std::unique_ptr<PeerWatch>> open(const Config& config);

  // Where peers call.
  Endpoint endpoint() const { return endpoint_; }
  // Callers with this proof are welcome.
  void expect(const Proof& proof);
  // Calls the process that owns `nic`, or of those that share it the one at `to`, unless a
  // connection with it is there or under way.
  void dial(IpAddress nic, Endpoint to, const Proof& proof);

  // Goes on with all of it; `now` is CLOCK_MONOTONIC. Returns those whose kernel has ended the last
  // connection with us; not those that share their NIC, whose kernel says more than this.
  std::vector<Peer> look(TimePoint now);

  // Introduced and alive.
  std::size_t peers() const;
  const Counters& counters() const { return counters_; }
  // Why the first call failed, once.
  std::string take_trouble();

 private:
  static constexpr std::size_t kHelloBytes = 112;
  // Callers that have yet to introduce themselves; the oldest goes when another comes.
  static constexpr std::size_t kMaxStrangers = 32;
  static constexpr std::size_t kMaxProofs = 4096;
  static constexpr std::uint64_t kListener = 0;

  enum class State : std::uint8_t { kConnecting, kGreeting, kUp };
  struct Conversation {
    link::Fd fd;
    State state = State::kGreeting;
    bool is_dialled = false;
    Endpoint to;  // Dialled.
    Proof proof{};
    Peer peer;
    TimePoint deadline = kNever;  // Of the greeting.
    std::array<std::byte, kHelloBytes> heard{};
    std::size_t heard_bytes = 0;
  };
  using Table = std::unordered_map<std::uint64_t, Conversation>;

  explicit PeerWatch(const Config& config);
  Status listen();
  bool watch(int fd, std::uint64_t id, std::uint32_t events);
  void accept_some();
  void drop_oldest_stranger();
  void finish_dial(Table::iterator at);
  void greet(Table::iterator at);
  void listen_to(Table::iterator at, std::vector<Peer>& gone);
  bool take_hello(Conversation& c);
  bool say_hello(const Conversation& c);
  void note_trouble(const Conversation& c, int error);
  void expire(TimePoint now);

  const Config config_;
  const std::uint32_t pid_;
  std::string host_;
  Endpoint endpoint_;
  link::Fd epoll_;
  link::Fd listener_;

  mutable std::mutex mutex_;  // Guards what follows.
  Table conversations_;
  std::size_t greeting_ = 0;  // Conversations that are not up.
  std::uint64_t last_id_ = kListener;
  std::deque<Proof> proofs_;
  bool had_trouble_ = false;
  std::string trouble_;
  Counters counters_;
};

}  // namespace ztcp::watch
