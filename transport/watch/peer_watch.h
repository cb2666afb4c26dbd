// SPDX-License-Identifier: Apache-2.0
// Copyright the ztcp authors
//
// Detects the death of a peer's process at once: by a kernel TCP connection beside the job's, on
// which nothing is sent. The kernel ends the sockets of a process however it dies, while a NIC that
// the process drove itself merely falls silent.
//
// One connection for each pair of NICs, made with the first comm between them, and for each process
// that shares its NIC with others. It gives a hint: its end may have other reasons, its absence
// means nothing, and its failure is no failure of the job.
//
// Each side first sends a hello:
//
//   u32 magic "zwch", u32 version (2), u32 pid, u32 flags, NIC's address[16], proof[16], host
//   name[64]
//
// flags: 1 other processes have the NIC's address, too (Peer::shares_nic). Numbers are
// little-endian, an IPv4 address is ::ffff:a.b.c.d, the name ends at its first zero. The proof is
// the caller's: only a process that was given a handle of the called process knows it. The answer
// repeats it. Nothing else is sent.
//
// One thread calls poll(), any thread the rest. Nothing blocks.
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

#include "core/address.h"
#include "core/clock.h"
#include "core/fd.h"
#include "core/result.h"
#include "transport/watch/peer.h"

namespace ztcp::watch {

// Derived from a listener's cookie, which it does not reveal.
using Proof = std::array<std::byte, 16>;

struct Counters {
  std::atomic<std::uint64_t> strangers{0};  // Wrong proof or version, or no hello in time.
  std::atomic<std::uint64_t> full{0};       // No room for another connection, incoming or outgoing.
  std::atomic<std::uint64_t> unreachable{0};
  std::atomic<std::uint64_t> broken{0};  // Ended by the network, not by the peer: says nothing of
                                         // its process.
};

class PeerWatch {
 public:
  struct Config {
    IpAddress nic;  // Our NIC's address, as peers know it.
    bool shares_nic = false;
    IpAddress bind_address;  // The kernel's.
    std::size_t max_peers = 1024;
    Duration greeting_timeout = std::chrono::seconds(5);
  };
  static Result<std::unique_ptr<PeerWatch>> open(const Config& config);

  // Replaces Config::nic, where it was not known: before the first expect() and dial().
  void set_nic(IpAddress nic);
  // The address that peers dial.
  Endpoint endpoint() const { return endpoint_; }
  // Accepts callers with this proof.
  void expect(const Proof& proof);
  // Dials the process that owns `nic`, or, where several share it, the one at `to`, unless a
  // connection with it exists or is under way.
  void dial(IpAddress nic, Endpoint to, const Proof& proof);

  // Makes progress on all connections; `now` is CLOCK_MONOTONIC. Returns the peers whose kernel has
  // ended their last connection with us, except those that share their NIC: for them the job's own
  // connections tell more. A dialled peer that ended it before its hello has no pid and no host.
  std::vector<Peer> poll(TimePoint now);

  // Peers that have sent their hello and are alive.
  std::size_t peers() const;
  const Counters& counters() const { return counters_; }
  // The error of the first failed call; later calls return nothing.
  std::string take_trouble();

 private:
  static constexpr std::size_t kHelloBytes = 112;
  // Callers that have not sent their hello; when another comes, the oldest is dropped.
  static constexpr std::size_t kMaxStrangers = 32;
  static constexpr std::size_t kMaxProofs = 4096;
  static constexpr std::uint64_t kListener = 0;

  enum class State : std::uint8_t { kConnecting, kGreeting, kUp };
  struct Conversation {
    Fd fd;
    State state = State::kGreeting;
    bool is_dialled = false;
    Endpoint to;  // Where is_dialled.
    Proof proof{};
    Peer peer;
    TimePoint deadline = kNever;  // For the hello.
    std::array<std::byte, kHelloBytes> heard{};
    std::size_t heard_bytes = 0;
  };
  using Table = std::unordered_map<std::uint64_t, Conversation>;

  explicit PeerWatch(const Config& config);
  Status listen();
  bool watch(int fd, std::uint64_t id, std::uint32_t events);
  void accept_some();
  void drop_oldest_stranger();
  void finish_dial(Table::iterator at, std::vector<Peer>& gone);
  void greet(Table::iterator at, std::vector<Peer>& gone);
  void give_up(Table::iterator at, int error, std::vector<Peer>& gone);
  void listen_to(Table::iterator at, std::vector<Peer>& gone);
  bool take_hello(Conversation& c);
  bool say_hello(const Conversation& c);
  void note_trouble(const Conversation& c, int error);
  void expire(TimePoint now);

  const Config config_;
  const std::uint32_t pid_;
  std::string host_;
  Endpoint endpoint_;
  Fd epoll_;
  Fd listener_;

  mutable std::mutex mutex_;  // Guards the members below.
  IpAddress nic_;
  Table conversations_;
  std::size_t greeting_ = 0;  // Conversations that are not kUp.
  std::uint64_t last_id_ = kListener;
  std::deque<Proof> proofs_;
  bool had_trouble_ = false;
  std::string trouble_;
  Counters counters_;
};

}  // namespace ztcp::watch
