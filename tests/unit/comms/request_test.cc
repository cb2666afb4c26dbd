// SPDX-License-Identifier: Apache-2.0
// Copyright the ztcp authors
#include "transport/comms/request.h"

#include <array>
#include <cstddef>

#include <gtest/gtest.h>

#include "transport/comms/comm.h"

namespace ztcp::comms {
namespace {

ReceivingComm& nobody() {
  alignas(64) static std::array<std::byte, 64> place;
  return reinterpret_cast<ReceivingComm&>(place);  // Only its address is kept.
}

TEST(Request, TouchesTheMemoryOfPartsThatHaveNotArrived) {
  RecvRequest request(nobody(), 0);
  std::array<std::byte, 64> memory{};
  const std::array<RecvBuffer, 2> buffers = {RecvBuffer{std::span(memory).first(16), 1},
                                             RecvBuffer{std::span(memory).subspan(32, 16), 2}};
  EXPECT_FALSE(request.touches(memory.data(), 64));
  request.start(buffers);
  EXPECT_TRUE(request.touches(memory.data(), 16));
  EXPECT_FALSE(request.touches(memory.data() + 16, 16));
  EXPECT_TRUE(request.touches(memory.data() + 47, 1));
  request.parts()[0].arrival().begin(0);
  request.finish_part(request.parts()[0]);
  EXPECT_FALSE(request.touches(memory.data(), 32));
  request.parts()[1].arrival().begin(0);
  request.finish_part(request.parts()[1]);
  EXPECT_FALSE(request.touches(memory.data(), 64));
}

}  // namespace
}  // namespace ztcp::comms
