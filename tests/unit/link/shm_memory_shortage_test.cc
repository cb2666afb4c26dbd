// SPDX-License-Identifier: Apache-2.0
// Copyright the ztcp authors
//
// Memory runs out while two ends of shared memory meet: the link is down and tries again.
#include <chrono>
#include <filesystem>
#include <fstream>
#include <memory>
#include <new>
#include <string>
#include <unistd.h>

#include <gtest/gtest.h>

#include "tests/support/failing_allocation.h"
#include "tests/unit/link/frames.h"
#include "transport/link/shm_link.h"

namespace ztcp::link {
namespace {

using namespace std::chrono_literals;

constexpr MacAddress kServerMac{{2, 0, 0, 0, 0, 1}};
constexpr MacAddress kClientMac{{2, 0, 0, 0, 0, 2}};

class ShmMemoryShortage : public testing::Test {
 protected:
  ShmMemoryShortage() {
    folder_ = std::filesystem::temp_directory_path() / "ztcp-shm-XXXXXX";
    EXPECT_NE(::mkdtemp(folder_.data()), nullptr);
  }
  ~ShmMemoryShortage() override { std::filesystem::remove_all(folder_); }

  std::unique_ptr<Link> open(bool server) const {
    ShmConfig config;
    config.socket_path = folder_ + "/0.sock";
    config.server = server;
    config.mac = server ? kServerMac : kClientMac;
    config.peer_mac = server ? kClientMac : kServerMac;
    auto link = open_shm(config);
    EXPECT_TRUE(link);
    return link ? std::move(*link) : nullptr;
  }
  static std::size_t mapped_regions() {
    std::ifstream maps("/proc/self/maps");
    std::size_t count = 0;
    for (std::string line; std::getline(maps, line);)
      if (line.find("ztcp-link") != std::string::npos) ++count;
    return count;
  }
  void look(Link& link) { link.transmit_room(now_ += 1s); }

  std::string folder_;
  TimePoint now_{};
};

TEST_F(ShmMemoryShortage, DoesNotInterruptAMeetingHalfWay) {
  for (const bool server_has_none : {true, false}) {
    std::size_t failures = 0;
    for (std::size_t nth = 1;; ++nth) {
      const std::unique_ptr<Link> server = open(true);
      const std::unique_ptr<Link> client = open(false);
      test::SentFrame sent(1, 300, 1);
      ztcp::test::FailingAllocation failing(nth);
      for (int i = 0; i < 16; ++i) {
        for (Link* const link : {client.get(), server.get()}) {
          const bool has_none = (link == server.get()) == server_has_none;
          try {
            if (has_none)
              failing.during([&] { look(*link); });
            else
              look(*link);
          } catch (const std::bad_alloc&) {
            ++failures;
          }
          EXPECT_EQ(link->transmit({&sent.frame(), 1}), 1U) << "down, or it has room";
        }
      }
      EXPECT_TRUE(server->is_up());
      EXPECT_TRUE(client->is_up());
      EXPECT_EQ(mapped_regions(), 2U) << "an end each";
      if (!failing.has_failed()) break;
    }
    EXPECT_GT(failures, 3U);
  }
}

}  // namespace
}  // namespace ztcp::link
