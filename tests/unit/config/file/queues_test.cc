// SPDX-License-Identifier: Apache-2.0
// Copyright the ztcp authors
//
// `queues` of NICs on PCI.
#include <string>

#include <gtest/gtest.h>

#include "config/file/load.h"

namespace ztcp::config {
namespace {

std::string pci_nic(const std::string& lines) {
  return "schema = 1\n[hugepages]\npage_kib = 2048\n[[nic]]\nname = \"ztcp0\"\ndriver = \"pci\"\n"
         "pci = \"0000:3b:00.0\"\nmac = \"02:00:00:00:00:01\"\naddress = \"10.0.0.1/24\"\n" +
         lines;
}

TEST(PciQueues, AreANumberOrAuto) {
  const struct {
    const char* line;
    std::uint32_t queues;
  } rows[] = {
      {"", 1}, {"queues = 1\n", 1}, {"queues = 8\n", 8}, {"queues = \"auto\"\n", kAutoQueues}};
  for (const auto& row : rows) {
    const LoadResult result = parse(pci_nic(row.line), "f.conf");
    ASSERT_TRUE(result.fabric) << row.line << to_string(result.problems.front());
    EXPECT_EQ(result.fabric->nics[0].queues, row.queues);
    // It is read back as written.
    const std::string text = to_toml(*result.fabric);
    EXPECT_EQ(text.find("\nqueues = \"auto\"") != std::string::npos, row.queues == kAutoQueues);
    EXPECT_EQ(parse(text, "f.conf").fabric, result.fabric);
  }
}

TEST(PciQueues, AnythingElseIsRefusedByName) {
  for (const char* value : {"0", "9", "\"all\"", "\"\"", "true", "1.5"}) {
    const LoadResult result = parse(pci_nic(std::string("queues = ") + value + "\n"), "f.conf");
    ASSERT_EQ(result.problems.size(), 1U) << value;
    EXPECT_EQ(result.problems[0].where, "f.conf:10:10");
    EXPECT_NE(result.problems[0].what.find("queues"), std::string::npos);
    EXPECT_NE(result.problems[0].mend.find("1..8, or \"auto\""), std::string::npos)
        << result.problems[0].mend;
  }
}

TEST(PciQueues, AutoIsForPciOnly) {
  const LoadResult result = parse(
      "schema = 1\n[[nic]]\nname = \"ztcp0\"\ndriver = \"memif\"\nmemif_socket = \"a.sock\"\n"
      "mac = \"02:00:00:00:00:01\"\naddress = \"10.0.0.1/24\"\nqueues = \"auto\"\n",
      "f.conf");
  ASSERT_EQ(result.problems.size(), 1U);
  EXPECT_EQ(result.problems[0].where, "f.conf:8:10");
  EXPECT_EQ(result.problems[0].what, "queues = \"auto\", but nic \"ztcp0\" is not on PCI");
}

}  // namespace
}  // namespace ztcp::config
