// SPDX-License-Identifier: Apache-2.0
// Copyright the ztcp authors
#include "transport/sockets/engine.h"

#include <gtest/gtest.h>

#include "tests/support/log_capture.h"
#include "tests/unit/sockets/engine_host.h"
#include "transport/comms/send_comm.h"

namespace ztcp::sockets {
namespace {

// The descriptors that are ours to have are taken: what is said helps.
TEST(Engine, WithoutAPlaceForAStreamADialSaysWhatGivesItOne) {
  const auto host = std::make_shared<EngineHost>(1, /*max_streams=*/0);
  const test::LogCapture log;
  auto sender = comms::SendingComm::connect(host, {kLoopback4, 1}, {});
  ASSERT_TRUE(sender);
  Result<bool> ready = false;
  while (ready && !*ready) ready = (*sender)->is_ready();
  ASSERT_FALSE(ready);
  EXPECT_EQ(ready.error().code, Errc::kOutOfMemory);
  ASSERT_FALSE(log.warnings().empty());
  EXPECT_EQ(log.warnings()[0],
            "lo: no descriptor for another connection (0 are open): raise ulimit -n");
}

}  // namespace
}  // namespace ztcp::sockets
