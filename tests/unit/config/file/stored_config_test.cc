// SPDX-License-Identifier: Apache-2.0
// Copyright the ztcp authors
//
// A config that an earlier release was given is read by each later one, with the same meaning
// (docs/versions.md). Every schema has a stored file.
#include <cstdint>
#include <fstream>
#include <iterator>
#include <string>

#include <gtest/gtest.h>

#include "config/file/load.h"
#include "config/schema.h"

namespace ztcp::config {
namespace {

std::string stored(std::uint32_t schema) {
  std::ifstream file(ZTCP_TREES "/../config/schema-" + std::to_string(schema) + ".conf");
  return {std::istreambuf_iterator<char>(file), {}};
}

TEST(StoredConfig, OneOfEverySchemaIsReadWithoutAProblem) {
  for (std::uint32_t schema = 1; schema <= kSchemaVersion; ++schema) {
    const auto result = parse(stored(schema), "ztcp.conf");
    EXPECT_TRUE(result.problems.empty())
        << "schema " << schema << ": " << to_string(result.problems.front());
    EXPECT_TRUE(result.fabric) << "schema " << schema;
  }
}

TEST(StoredConfig, Schema1KeepsItsMeaning) {
  const auto result = parse(stored(1), "ztcp.conf");
  ASSERT_TRUE(result.fabric);
  const Fabric& fabric = *result.fabric;
  EXPECT_EQ(fabric.name, "rack-7");
  EXPECT_EQ(fabric.hugepages.page_kib, 1048576U);
  EXPECT_EQ(fabric.messages.cluster_key.size(), 64U);
  EXPECT_EQ(fabric.tcp.congestion_control, CongestionControl::kDctcp);
  EXPECT_EQ(fabric.poller.workers, 2);
  ASSERT_EQ(fabric.nics.size(), 3U);
  EXPECT_EQ(fabric.nics[0].driver, NicDriver::kPci);
  EXPECT_EQ(fabric.nics[0].pci, "0000:3b:00.0");
  EXPECT_EQ(fabric.nics[0].mtu_bytes, 9000U);
  EXPECT_EQ(fabric.nics[1].driver, NicDriver::kSocket);
  EXPECT_EQ(fabric.nics[1].last_port, 7599);
  EXPECT_EQ(fabric.nics[2].driver, NicDriver::kVerbs);
  EXPECT_EQ(fabric.nics[2].device, "mlx5_0");
}

}  // namespace
}  // namespace ztcp::config
