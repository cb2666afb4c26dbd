// SPDX-License-Identifier: Apache-2.0
// Copyright the ztcp authors
#include "plugin/statistics_page.h"

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <string>
#include <utility>

#include "tests/unit/plugin/startup_host.h"
#include "transport/stats/page_reader.h"
#include "transport/stats/process_page.h"

namespace ztcp::plugin {
namespace {

class StatisticsPageTest : public StartupTest {
 protected:
  StatisticsPageTest() {
    std::string path = std::filesystem::temp_directory_path() / "ztcp-run-XXXXXX";
    run_dir_ = ::mkdtemp(path.data());
    ::setenv("XDG_RUNTIME_DIR", run_dir_.c_str(), 1);
    loaded_.fabric->run_dir = run_dir_;
    loaded_.fabric->path = "/etc/ztcp/ztcp.conf";
    loaded_.hash = 99;
    open_page_ = open_statistics_page;
  }
  ~StatisticsPageTest() override {
    stats::set_process_page(nullptr);
    ::unsetenv("XDG_RUNTIME_DIR");
    std::filesystem::remove_all(run_dir_);
  }
  std::string run_dir_;
};

TEST_F(StatisticsPageTest, PageListsTheDevicesWithTheirPlans) {
  ASSERT_TRUE(start());
  const auto pages = stats::find_pages(stats::page_folder(run_dir_));
  ASSERT_TRUE(pages);
  ASSERT_EQ(pages->size(), 1U);
  const auto snapshot = stats::read_page(pages->front());
  ASSERT_TRUE(snapshot);
  EXPECT_EQ(snapshot->process.config_path, "/etc/ztcp/ztcp.conf");
  EXPECT_EQ(snapshot->process.config_hash, 99U);
  EXPECT_FALSE(snapshot->process.version.empty());
  ASSERT_EQ(snapshot->devices.size(), 1U);
  EXPECT_EQ(snapshot->devices[0].name, "ztcp0");
  EXPECT_TRUE(contains(snapshot->devices[0].plan, "in memory"));
  EXPECT_EQ(log_.infos().size(), 1U) << "the device's line alone";
}

TEST_F(StatisticsPageTest, PageTellsTheFactsOfADevice) {
  loaded_.fabric->nics[0].gpu_pci = "0000:18:00.0";
  loaded_.fabric->nics[0].mtu_bytes = 9000;
  ASSERT_TRUE(start());
  const auto pages = stats::find_pages(stats::page_folder(run_dir_));
  ASSERT_TRUE(pages);
  const auto snapshot = stats::read_page(pages->at(0));
  ASSERT_TRUE(snapshot);
  const stats::Device& device = snapshot->devices.at(0);
  EXPECT_EQ(device.mtu_bytes, 9000U);
  EXPECT_EQ(device.address, "10.0.0.1");
  EXPECT_EQ(device.numa_node, 1);
  EXPECT_EQ(device.gpu, "0000:18:00.0");
}

TEST_F(StatisticsPageTest, KeyOfTheConfigTurnsItOff) {
  loaded_.fabric->statistics.page = false;
  ASSERT_TRUE(start());
  EXPECT_EQ(stats::process_page(), nullptr);
  EXPECT_TRUE(std::filesystem::is_empty(run_dir_));
}

TEST_F(StatisticsPageTest, VariableTurnsItOff) {
  environment_.has_statistics_page = false;
  ASSERT_TRUE(start());
  EXPECT_EQ(stats::process_page(), nullptr);
}

TEST_F(StatisticsPageTest, ProcessStartsWithoutAPageAndSaysWhy) {
  loaded_.fabric->run_dir = "/proc/ztcp/none";
  std::ofstream(run_dir_ + "/ztcp") << "a file in place of the folder";
  ASSERT_TRUE(start());
  EXPECT_EQ(stats::process_page(), nullptr);
  EXPECT_TRUE(log_.warnings().empty());
  ASSERT_EQ(log_.infos().size(), 2U);
  EXPECT_TRUE(contains(log_.infos()[0], "no statistics page in " + run_dir_ + "/ztcp: "))
      << log_.infos()[0];
}

}  // namespace
}  // namespace ztcp::plugin
