// SPDX-License-Identifier: Apache-2.0
// Copyright the ztcp authors
//
// A netlink session with the kernel, of rtnetlink unless told otherwise: requests that change
// something, and dumps of its tables. Bounded in time and memory; accepts only the kernel's reply
// to the current request. One thread at a time; never one of the data path.
//
// Not libmnl: it has no archive to link, and we need no shared library beyond the C library.
#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <vector>

#include "core/netlink_message.h"
#include "core/netlink_request.h"
#include "core/result.h"

namespace ztcp::netlink {

using Deadline = std::chrono::steady_clock::time_point;

struct Datagram {
  std::uint32_t sender = 0;  // Port id: the kernel's is 0, all others belong to processes.
  Bytes bytes;               // Valid until the next receive().
};

// The other end of a session: the kernel, or a test.
class Channel {
 public:
  virtual ~Channel() = default;
  virtual Status send(Bytes request) = 0;
  // Errc::kTimedOut: nothing arrived before the deadline.
  virtual Result<Datagram> receive(Deadline deadline) = 0;
};

// Opens the kernel of this thread's network namespace. `protocol`: NETLINK_ROUTE, NETLINK_GENERIC.
Result<std::unique_ptr<Channel>> open_kernel(int protocol = NETLINK_ROUTE);

class Session {
 public:
  using Visit = std::function<void(const Message&)>;

  static Result<Session> open(int protocol = NETLINK_ROUTE);  // With open_kernel().
  explicit Session(std::unique_ptr<Channel> channel) : channel_(std::move(channel)) {}

  // Errc::kSystem with the kernel's errno if it refuses.
  Status carry_out(NetlinkRequest request);
  // The same for a request that the kernel answers with a message: calls visit for it.
  Status query(NetlinkRequest request, const Visit& visit);

  // Calls visit for each message of a dump. A dump that was interrupted by a change is repeated,
  // and visited only once it is consistent: on failure nothing was visited.
  template <class Fixed>
  Status dump(std::uint16_t type, const Fixed& fixed, const Visit& visit) {
    return dump(NetlinkRequest(type, NLM_F_DUMP, fixed), visit);
  }

 private:
  enum class End : std::uint8_t { kWhole, kInterrupted };
  Status dump(NetlinkRequest request, const Visit& visit);
  Result<End> exchange(NetlinkRequest& request, std::vector<std::byte>& heard);

  std::unique_ptr<Channel> channel_;
  std::uint32_t sequence_ = 0;
};

}  // namespace ztcp::netlink
