// SPDX-License-Identifier: Apache-2.0
// Copyright the ztcp authors
//
// The way of frames between an interface and AF_XDP sockets: through the driver or behind it, with
// zero copy or not, and the reasons against the faster one. For the init line and `ztcp_setup
// --check`.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "core/result.h"

namespace ztcp::link::xdp {

// Features of a driver; the kernel tells them from Linux 6.3 on.
struct DriverSupport {
  bool runs_programs = false;          // Else the kernel runs them, behind the driver.
  bool has_zero_copy = false;          //
  std::uint32_t zero_copy_pieces = 1;  // Of a frame, at most.
};

// Nothing: the kernel does not tell.
std::optional<DriverSupport> read_driver_support(unsigned interface_index);
// "virtio_net"; empty: unknown.
std::string driver_name(const std::string& interface);

struct Mode {
  std::uint32_t queues = 1;
  std::string driver{};
  std::optional<DriverSupport> support{};
  std::uint16_t mtu_bytes = 1500;
  // Nothing: neither a program nor a socket is on the interface yet; the text then follows from
  // `support`.
  std::optional<bool> is_native{};
  int native_errno = 0;
  std::optional<bool> is_zero_copy{};
  int zero_copy_errno = 0;
};

// "4 queues, native mode, copy mode (veth has no zero copy)"
std::string to_text(const Mode& mode);

}  // namespace ztcp::link::xdp
