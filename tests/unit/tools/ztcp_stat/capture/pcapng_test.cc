// SPDX-License-Identifier: Apache-2.0
// Copyright the ztcp authors
#include "tools/ztcp_stat/capture/pcapng.h"

#include <cstring>
#include <vector>

#include <gtest/gtest.h>

namespace ztcp::capture {
namespace {

std::uint32_t number_at(const std::string& text, std::size_t at) {
  std::uint32_t number = 0;
  std::memcpy(&number, text.data() + at, sizeof(number));
  return number;
}

// Checks both lengths of the only block and returns its type.
std::uint32_t type_of(const std::string& text) {
  EXPECT_EQ(text.size() % 4, 0U);
  EXPECT_EQ(number_at(text, 4), text.size());
  EXPECT_EQ(number_at(text, text.size() - 4), text.size());
  return number_at(text, 0);
}

// The bytes of the first option with this code, behind `at`; empty: there is none.
std::string option(const std::string& text, std::size_t at, std::uint16_t code) {
  while (at + 8 <= text.size()) {
    std::uint16_t found = 0;
    std::uint16_t size = 0;
    std::memcpy(&found, text.data() + at, 2);
    std::memcpy(&size, text.data() + at + 2, 2);
    if (found == 0) break;
    if (found == code) return text.substr(at + 4, size);
    at += 4U + (size + 3U) / 4U * 4U;
  }
  return {};
}

TEST(Pcapng, SectionTellsItsByteOrderAndComment) {
  std::string out;
  append_section(out, {.application = "ztcp_stat 1", .comment = "process 7"});
  EXPECT_EQ(type_of(out), kPcapngMagic);
  EXPECT_EQ(number_at(out, 8), 0x1a2b3c4dU);
  EXPECT_EQ(option(out, 24, 4), "ztcp_stat 1");
  EXPECT_EQ(option(out, 24, 1), "process 7");
}

TEST(Pcapng, InterfaceHasNanosecondsAndItsName) {
  std::string out;
  append_interface(out, {.name = "ztcp0",
                         .description = "d",
                         .comment = "c",
                         .filter = "arp",
                         .mac = {2, 0, 0, 0, 0, 1},
                         .snap_bytes = 256});
  EXPECT_EQ(type_of(out), 1U);
  EXPECT_EQ(number_at(out, 8), 1U);  // Ethernet.
  EXPECT_EQ(number_at(out, 12), 256U);
  EXPECT_EQ(option(out, 16, 2), "ztcp0");
  EXPECT_EQ(option(out, 16, 9), "\x09");
  EXPECT_EQ(option(out, 16, 11), std::string("\0arp", 4));
  EXPECT_EQ(option(out, 16, 6).size(), 6U);
}

TEST(Pcapng, PacketTellsTimeDirectionAndLoss) {
  const std::vector<std::byte> bytes(61, std::byte{5});
  std::string out;
  append_packet(out, {.time_ns = 0x0102030405060708,
                      .original_bytes = 1500,
                      .is_sent = true,
                      .lost_before = 3,
                      .bytes = bytes});
  EXPECT_EQ(type_of(out), 6U);
  EXPECT_EQ(number_at(out, 12), 0x01020304U);
  EXPECT_EQ(number_at(out, 16), 0x05060708U);
  EXPECT_EQ(number_at(out, 20), 61U);
  EXPECT_EQ(number_at(out, 24), 1500U);
  EXPECT_EQ(out[28 + 60], 5);
  EXPECT_EQ(out[28 + 61], 0);
  EXPECT_EQ(option(out, 28 + 64, 2), std::string("\2\0\0\0", 4));
  EXPECT_EQ(option(out, 28 + 64, 4), std::string("\3\0\0\0\0\0\0\0", 8));
  out.clear();
  append_packet(out, {.bytes = bytes});
  EXPECT_EQ(option(out, 28 + 64, 2), std::string("\1\0\0\0", 4));
  EXPECT_EQ(option(out, 28 + 64, 4), "");
}

TEST(Pcapng, StatisticsHaveTheLostFrames) {
  std::string out;
  append_statistics(out, {.begin_ns = 1, .end_ns = 2, .received = 9, .lost = 4, .written = 5});
  EXPECT_EQ(type_of(out), 5U);
  EXPECT_EQ(option(out, 20, 5), std::string("\4\0\0\0\0\0\0\0", 8));
  EXPECT_EQ(option(out, 20, 4), std::string("\x09\0\0\0\0\0\0\0", 8));
}

}  // namespace
}  // namespace ztcp::capture
