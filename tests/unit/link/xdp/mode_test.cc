// SPDX-License-Identifier: Apache-2.0
// Copyright the ztcp authors
#include "transport/link/xdp/mode.h"

#include <cerrno>

#include <gtest/gtest.h>

namespace ztcp::link::xdp {
namespace {

Mode attached(bool is_native, bool is_zero_copy) {
  return {.queues = 4,
          .driver = "ixgbe",
          .support = DriverSupport{true, true, 1},
          .is_native = is_native,
          .is_zero_copy = is_zero_copy};
}

TEST(XdpMode, FastestWay) {
  EXPECT_EQ(to_text(attached(true, true)), "4 queues, native mode, zero copy");
}

TEST(XdpMode, DriverWithoutZeroCopyIsTheReason) {
  Mode mode = attached(true, false);
  mode.queues = 1;
  mode.driver = "virtio_net";
  mode.support = DriverSupport{true, false, 1};
  mode.zero_copy_errno = EOPNOTSUPP;
  EXPECT_EQ(to_text(mode), "1 queue, native mode, copy mode (virtio_net has no zero copy)");
}

TEST(XdpMode, MtuAboveADriversZeroCopyIsTheReason) {
  Mode mode = attached(true, false);
  mode.mtu_bytes = 9000;
  mode.zero_copy_errno = EOPNOTSUPP;
  EXPECT_EQ(to_text(mode),
            "4 queues, native mode, copy mode (ixgbe has no zero copy for MTU 9000: 3822 or less)");
  mode.support->zero_copy_pieces = 8;
  EXPECT_EQ(to_text(mode), "4 queues, native mode, copy mode (zero copy: Operation not supported)");
}

TEST(XdpMode, KernelThatDoesNotTellItsDriversLeavesTheErrno) {
  Mode mode = attached(true, false);
  mode.support.reset();
  mode.zero_copy_errno = EOPNOTSUPP;
  EXPECT_EQ(to_text(mode), "4 queues, native mode, copy mode (zero copy: Operation not supported)");
}

TEST(XdpMode, GenericModeHasItsReason) {
  Mode mode = attached(false, false);
  mode.native_errno = EINVAL;
  mode.mtu_bytes = 9000;
  EXPECT_EQ(to_text(mode),
            "4 queues, generic mode (native, with MTU 9000: Invalid argument), copy mode (generic "
            "mode has no zero copy)");
  mode.support->runs_programs = false;
  mode.native_errno = EOPNOTSUPP;
  EXPECT_EQ(to_text(mode),
            "4 queues, generic mode (ixgbe runs no XDP programs), copy mode (generic mode has no "
            "zero copy)");
}

TEST(XdpMode, IsForeseenFromTheDriver) {
  Mode mode{.queues = 2, .driver = "ice", .support = DriverSupport{true, true, 5}};
  EXPECT_EQ(to_text(mode), "2 queues, native mode, zero copy");
  mode.support->has_zero_copy = false;
  EXPECT_EQ(to_text(mode), "2 queues, native mode, copy mode (ice has no zero copy)");
  mode.support->runs_programs = false;
  EXPECT_EQ(
      to_text(mode),
      "2 queues, generic mode (ice runs no XDP programs), copy mode (generic mode has no zero "
      "copy)");
  mode.support.reset();
  EXPECT_EQ(to_text(mode),
            "2 queues; before Linux 6.3 the kernel does not tell whether ice has native mode and "
            "zero copy: a job's init line does");
  mode.is_native = true;  // A program is pinned.
  EXPECT_EQ(to_text(mode), "2 queues, native mode, zero copy or not: a job's init line tells");
}

}  // namespace
}  // namespace ztcp::link::xdp
