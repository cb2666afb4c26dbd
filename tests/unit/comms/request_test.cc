// SPDX-License-Identifier: Apache-2.0
// Copyright the ztcp authors
#include "transport/comms/request.h"

#include <array>
#include <atomic>
#include <thread>

#include <gtest/gtest.h>

#include "transport/comms/recv_comm.h"

namespace ztcp::comms {
namespace {

ReceivingComm& nobody() {
  alignas(64) static std::array<std::byte, 64> place;
  return reinterpret_cast<ReceivingComm&>(place);  // Only its address is kept.
}

TEST(Request, TouchesWhatItsMissingPartsArePostedFor) {
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

// deregister_memory() looks while NCCL's progress thread uses the request again and again, for a
// small buffer in front of that memory and a large one behind it: neither touches it, the address
// of one with the size of the other would.
TEST(Request, OneThatIsUsedAgainMeanwhileIsNotMisread) {
  RecvRequest request(nobody(), 0);
  std::array<std::byte, 4096> memory{};
  const RecvBuffer small{std::span(memory).first(8), 1};
  const RecvBuffer large{std::span(memory).subspan(2048, 2048), 1};
  std::atomic<bool> stop{false};
  std::thread progress([&] {
    for (std::size_t i = 0; i < 300'000 && !stop; ++i) {
      request.start({i % 2 == 0 ? &small : &large, 1});
      request.parts()[0].arrival().begin(0);
      request.finish_part(request.parts()[0]);
      request.set_free(0);
    }
    stop = true;
  });
  while (!stop) {
    if (request.touches(memory.data() + 1024, 8)) {
      stop = true;
      ADD_FAILURE() << "the memory of nobody's message";
    }
  }
  progress.join();
}

}  // namespace
}  // namespace ztcp::comms
