// SPDX-License-Identifier: Apache-2.0
// Copyright the ztcp authors
//
// An XDP program on an interface, and the map of its sockets.
//
// Either this process attaches it, and the program leaves the interface when the process ends,
// however it ends; or it was attached before and pinned into a folder of a file system of type bpf,
// where it stays until it is removed, and processes that may open its files use it. Without a
// process the kernel receives all frames.
#pragma once

#include <cstdint>
#include <string>

#include "core/fd.h"
#include "core/result.h"
#include "transport/link/xdp/interface.h"
#include "transport/link/xdp/program.h"

namespace ztcp::link::xdp {

// More than any NIC has.
inline constexpr std::uint32_t kMostQueues = 1024;

struct Attachment {
  Fd map;
  Fd program;
  Fd link;  // Holds the program on the interface, unless it is pinned.
  std::uint32_t program_id = 0;
  // The driver runs the program, else the kernel does, behind the driver; then why: an errno, or 0
  // where another process attached it.
  bool is_native = false;
  int native_errno = 0;
};

// Logs its failure. kBusy: another program is on the interface.
Result<Attachment> attach(const InterfaceFacts& interface, const Steering& steering,
                          bool may_be_native);

// The files of a pinned program are in `folder`, which exists. Logs its failure, and leaves nothing
// behind then.
Status attach_and_pin(const InterfaceFacts& interface, const Steering& steering,
                      const std::string& folder);
// Takes the program off. Succeeds where there is none.
Status remove_pinned(const std::string& folder);
bool is_pinned(const std::string& folder);
struct PinnedProgram {
  Steering steering;
  std::uint32_t program_id = 0;
};
Result<PinnedProgram> read_pinned(const std::string& folder);
// "cil_xdp (id 7)"; without the name where this user may not ask for it.
std::string describe_other(std::uint32_t id);
// By its name: false also where this user may not ask for it.
bool is_program_of_ztcp(std::uint32_t id);
// The program must be on the interface, and steer so. Logs its failure.
Result<Attachment> open_pinned_program(const InterfaceFacts& interface, const Steering& steering,
                                       const std::string& folder);

}  // namespace ztcp::link::xdp
