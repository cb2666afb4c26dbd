// SPDX-License-Identifier: Apache-2.0
// Copyright the ztcp authors
//
// Texts of config files, and the messages for wrong ones: one case per message.
#pragma once

#include <ostream>
#include <string>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "config/file/load.h"

namespace ztcp::config {

inline constexpr const char* kMemifNic = R"([[nic]]
name = "ztcp0"
driver = "memif"
address = "10.0.0.1/24"
mac = "02:00:00:00:00:01"
memif_socket = "a.sock"
)";
inline constexpr const char* kPciNic = R"([[nic]]
name = "ztcp0"
driver = "pci"
pci = "0000:3b:00.0"
address = "10.0.0.1/24"
mac = "02:00:00:00:00:01"
)";

inline constexpr const char* kSocketNic = R"([[nic]]
name = "ztcp0"
driver = "socket"
address = "10.0.0.1/24"
interface = "eth1"
)";
inline constexpr const char* kVerbsNic = R"([[nic]]
name = "ztcp0"
driver = "verbs"
address = "10.0.0.1/24"
device = "mlx5_0"
)";

inline std::string with_nic(const std::string& text) {
  return "schema = 1\n" + text + "\n" + kMemifNic;
}

inline std::string replaced(std::string text, const std::string& from, const std::string& to) {
  const auto at = text.find(from);
  EXPECT_NE(at, std::string::npos) << from;
  return text.replace(at, from.size(), to);
}

inline std::string nic_with(const std::string& from, const std::string& to) {
  return "schema = 1\n" + replaced(kMemifNic, from, to);
}

inline std::string of(const char* nic, const std::string& from, const std::string& to) {
  return "schema = 1\n" + replaced(nic, from, to);
}

struct MessageCase {
  const char* name;
  std::string text;
  const char* where;  // Line and column.
  const char* what;   // Part of the message.
  const char* mend = "";
  friend void PrintTo(const MessageCase& row, std::ostream* out) { *out << row.text; }
};

// TEST_P(..., NamesPlaceValueAndMend) { judge(); }
class MessageTest : public testing::TestWithParam<MessageCase> {
 protected:
  void judge() {
    const auto result = parse(GetParam().text, "f.conf");
    EXPECT_FALSE(result.fabric);
    ASSERT_EQ(result.problems.size(), 1U)
        << (result.problems.size() > 1 ? to_string(result.problems[1]) : "");
    const Problem& problem = result.problems.front();
    EXPECT_EQ(problem.where, std::string("f.conf:") + GetParam().where);
    EXPECT_THAT(problem.what, testing::HasSubstr(GetParam().what));
    EXPECT_THAT(problem.mend, testing::HasSubstr(GetParam().mend));
    EXPECT_FALSE(problem.mend.empty());
  }
};

}  // namespace ztcp::config
