// SPDX-License-Identifier: Apache-2.0
// Copyright the ztcp authors
//
// How the two ends of a link in shared memory find each other, agree, and hear of each other's
// end: over a unix socket that carries a hello, its answer with the descriptor of the memory, and
// then nothing until it closes with its process. What they agree on is in the hello: the version
// (and with it that frames have no checksums, since they never leave this machine's memory), both
// MAC addresses, the MTU and the slots. Who differs is refused, and both say in what.
//
// Never waits. Belongs to the link's thread.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <utility>

#include "transport/core/address.h"
#include "transport/core/clock.h"
#include "transport/core/result.h"
#include "transport/link/fd.h"
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
  // A server's socket is there when this returns.
  static Result<ShmMeeting> open(ShmMeetingConfig config);
  ShmMeeting(ShmMeeting&& other) noexcept = default;
  ShmMeeting& operator=(ShmMeeting&&) = delete;
  ~ShmMeeting();

  // Goes on with what is under way. Memory when the peer has been found.
  std::unique_ptr<ShmRegion> look(TimePoint now);
  bool is_up() const { return up_; }
  // The peer did what none does: no more with this one.
  void drop(std::string_view why);

 private:
  // What either says first. The layout is the one between all versions.
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
  std::string
      said_;  // The last complaint, until a peer ends as peers do: it is not made twice in a row.
};

}  // namespace ztcp::link
