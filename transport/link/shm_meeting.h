// SPDX-License-Identifier: Apache-2.0
// Copyright the ztcp authors
//
// How the two ends of a link in shared memory find each other, agree, and notice each other's end:
// over a unix socket that carries a hello, its answer with the descriptor of the memory, and then
// nothing until it closes with its process. The hello holds the facts to agree on: the version (and
// with it that frames have no checksums, since they never leave this machine's memory), both MAC
// addresses, the MTU and the slots. A peer that differs is refused, and both log the difference.
//
// Never waits. Belongs to the link's thread.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <utility>

#include "core/address.h"
#include "core/clock.h"
#include "core/fd.h"
#include "core/result.h"
#include "transport/link/shm_region.h"

namespace ztcp::link {

struct ShmMeetingConfig {
  std::string socket_path;
  bool server = false;  // Makes the socket, and the memory.
  MacAddress mac;
  MacAddress peer_mac;
  std::uint16_t mtu_bytes = 1500;
  ShmShape shape;
};

class ShmMeeting {
 public:
  // A server's socket exists when this returns.
  static Result<ShmMeeting> open(ShmMeetingConfig config);
  ShmMeeting(ShmMeeting&& other) noexcept = default;
  ShmMeeting& operator=(ShmMeeting&&) = delete;
  ~ShmMeeting();

  // Makes progress. Returns memory when the peer has been found.
  std::unique_ptr<ShmRegion> poll(TimePoint now);
  bool is_up() const { return up_; }
  // The peer broke the protocol: ends the connection.
  void drop(std::string_view why);

 private:
  // The first message of both sides. Its layout is the same in all versions.
  struct Hello;
  explicit ShmMeeting(ShmMeetingConfig config) : config_(std::move(config)) {}
  Status listen();
  Hello own_hello() const;
  bool agrees(const Hello& hello);
  std::unique_ptr<ShmRegion> answer_caller(TimePoint now);
  std::unique_ptr<ShmRegion> call(TimePoint now);
  std::unique_ptr<ShmRegion> read_answer();
  void say_once(std::string text);
  bool is_stranger_there();
  bool is_cut_off() const;

  ShmMeetingConfig config_;
  Fd listener_;
  Fd peer_;
  bool up_ = false;
  TimePoint silent_until_{};
  TimePoint next_call_{};
  std::string said_;  // The last warning, until a peer ends normally: it is not repeated.
};

}  // namespace ztcp::link
