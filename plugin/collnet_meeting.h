// SPDX-License-Identifier: Apache-2.0
// Copyright the ztcp authors
//
// Connects the hosts of a CollNet group: this one dials each other, one connection a lane, and
// accepts as many. The first message of a connection names its rank and lane, and the
// settings that all hosts must share. The second says that its sender has met all the others.
//
// NCCL does not compare the outcomes of two hosts, and hangs if one has a group and another has
// none. So the connect timeout ends the first messages only: a host that has sent its second ones
// waits for the others' until their connections end. A host that gives up before closes its
// connections, and then no host has all second messages.
#pragma once

#include <array>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <span>
#include <string>
#include <vector>

#include "plugin/collnet_group.h"
#include "plugin/collnet_sizes.h"
#include "plugin/handle.h"
#include "plugin/net.h"

namespace ztcp::plugin {

struct CollListening;

// The first message of a connection, in this order of bytes on all machines.
struct CollHello {
  static constexpr std::uint32_t kMagic = 0x6c6c'6f63;  // "coll"
  // Increase whenever hosts of two releases would exchange other messages for the same call, or
  // show NCCL other collectives: it chooses on each host.
  static constexpr std::uint8_t kVersion = 4;
  std::uint32_t magic = kMagic;
  std::uint8_t version = kVersion;
  std::uint8_t lane = 0;
  std::uint8_t wire = 0;  // reduce::Wire
  std::uint8_t reserved = 0;
  std::uint32_t rank = 0;
  std::uint32_t ranks = 0;
  std::uint32_t table = kCollnetSizesDigest;
  CollnetRows sizes = 0;
  std::uint32_t speed_mbps = 0;  // For the message.
};
static_assert(sizeof(CollHello) == 28);

class CollMeeting {
 public:
  CollMeeting(Net& net, const CollListening& listening, std::span<void* const> handles,
              std::size_t rank, const CollnetSettings& settings);
  // Closes the connections of a meeting that failed.
  ~CollMeeting();
  CollMeeting(const CollMeeting&) = delete;
  CollMeeting& operator=(const CollMeeting&) = delete;

  // Returns a place for each rank; this one's is empty. Fails after `timeout`.
  Told<std::vector<PeerLanes>> meet(std::chrono::milliseconds timeout);
  // After meet(), over the same connections, which now belong to the caller: returns when all hosts
  // are certain to have got so far. Call it last, when nothing can fail any more. It has no time
  // limit (see above), and names a host in the log that takes longer than `patience`.
  Told<void> confirm(std::chrono::milliseconds patience);

 private:
  // A connection on its way; hello is its first message.
  struct Greeting {
    Request* request = nullptr;
    MemoryKey* key = nullptr;
    bool is_over = false;
    CollHello hello;
  };
  struct Dialled : Greeting {
    std::size_t rank = 0;
    std::array<std::byte, kHandleBytes> handle{};
    SendComm* comm = nullptr;
  };
  struct Accepted : Greeting {
    RecvComm* comm = nullptr;
  };

  Told<bool> advance();
  Told<void> advance(Dialled& dialled);
  Told<void> advance(Accepted& accepted);
  template <class Post>
  Told<void> exchange(Greeting& greeting, Comm& comm, Post&& post);
  Told<void> place(const Accepted& accepted);
  std::string missing() const;
  std::string unconfirmed() const;  // A host whose second message is not here.

  Net& net_;
  const CollListening& listening_;
  const std::size_t rank_;
  const std::size_t ranks_;
  const CollnetSettings settings_;
  std::deque<Dialled> dialled_;  // Their handles and messages keep their places.
  std::deque<Accepted> accepted_;
  std::vector<PeerLanes> lanes_;
  bool has_met_ = false;  // All first messages are there, and the connections are the caller's.
};

}  // namespace ztcp::plugin
