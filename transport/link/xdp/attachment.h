// SPDX-License-Identifier: Apache-2.0
// Copyright the ztcp authors
//
// An XDP program on an interface, and the map of its sockets. This process attaches it: the program
// leaves the interface when the process ends, however it ends, and the kernel then receives all
// frames again.
#pragma once

#include <cstdint>
#include <string>

#include "core/fd.h"
#include "core/result.h"
#include "transport/link/xdp/interface.h"
#include "transport/link/xdp/program.h"

namespace ztcp::link::xdp {

struct Attachment {
  Fd map;
  Fd program;
  Fd link;  // Holds the program on the interface.
  std::uint32_t program_id = 0;
  // The driver runs the program, else the kernel does, behind the driver; then why: an errno.
  bool is_native = false;
  int native_errno = 0;
};

// Logs its failure. kBusy: another program is on the interface.
Result<Attachment> attach(const InterfaceFacts& interface, const Steering& steering,
                          std::uint32_t queues, bool may_be_native);

}  // namespace ztcp::link::xdp
