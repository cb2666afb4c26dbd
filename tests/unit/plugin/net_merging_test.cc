// SPDX-License-Identifier: Apache-2.0
// Copyright the ztcp authors
//
// Devices that NCCL has merged.
#include <algorithm>
#include <vector>

#include <gtest/gtest.h>

#include "plugin/net.h"
#include "tests/unit/plugin/net_fixture.h"
#include "tests/unit/stats/page_fixture.h"
#include "transport/stats/page_reader.h"
#include "transport/stats/process_page.h"

namespace ztcp::plugin {
namespace {

class NetMerging : public NetTest {
 protected:
  static constexpr auto kFails = Net::Unmerged::kFails;
  static constexpr auto kAlone = Net::Unmerged::kShownAlone;
  Told<int> merge(std::vector<int> devices, Net::Unmerged unmerged = kFails) {
    return net_.merge(devices, unmerged);
  }
};

TEST_F(NetMerging, AMergedDeviceIsAdded) {
  Context* const context = new_context();
  ASSERT_EQ(net_.device_count().value(), 2);
  const auto merged = merge({0, 1});
  ASSERT_TRUE(merged);
  EXPECT_EQ(*merged, 2);
  EXPECT_EQ(net_.device_count().value(), 3);
  EXPECT_EQ((*net_.device(2))->properties.name, "ztcp0+ztcp1");
  EXPECT_EQ((*net_.device(2))->parts, (std::vector{0, 1}));
  EXPECT_TRUE((*net_.device(1))->parts.empty());
  EXPECT_TRUE(net_.listen(context, 2, handle_));
  EXPECT_TRUE(net_.connect(context, 2, handle_));
  EXPECT_FALSE(net_.device(3));
}

TEST_F(NetMerging, AMergedDeviceIsListedOnTheStatisticsPageOnce) {
  const stats::PageFolder folder;
  const auto page = folder.create();
  stats::set_process_page(page);
  new_context();
  ASSERT_TRUE(merge({0, 1}));
  ASSERT_TRUE(merge({0, 1}));
  stats::set_process_page(nullptr);
  const auto snapshot = stats::read_page(folder.path() / page->file_name());
  ASSERT_TRUE(snapshot);
  EXPECT_EQ(std::ranges::count(snapshot->devices, "ztcp0+ztcp1", &stats::Device::name), 1);
}

// NCCL 2.28 asks for them, as it does for ports of one card.
TEST_F(NetMerging, DevicesOfOneNicAreNotMergedAndNotLogged) {
  shows_first_twice_ = true;
  for (DeviceProperties& device : devices_) device.pci_path.clear();
  new_context();
  ASSERT_EQ(net_.device_count().value(), 3);
  const std::size_t said = log_.infos().size();
  EXPECT_FALSE(merge({0, 2}));
  EXPECT_EQ(log_.infos().size(), said);
  EXPECT_EQ(net_.device_count().value(), 3);
}

// NCCL 2.28 would end the job: "Could not find any local path from gpu 0 to net".
TEST_F(NetMerging, NicsWithoutAPciFunctionAreNotMerged) {
  devices_.back().pci_path.clear();
  new_context();
  EXPECT_FALSE(merge({0, 1}));
  EXPECT_NE(log_.infos().back().find("without a PCI path"), std::string::npos);
}

TEST_F(NetMerging, UnmergeableNicsAreRefusedWithoutAWarning) {
  other_devices_.resize(1);
  new_context();
  EXPECT_FALSE(merge({0, 2})) << "of two transports";
  EXPECT_EQ(log_.warned(), "");
  EXPECT_FALSE(merge({0, 9}));
  EXPECT_TRUE(warned(log_, "no device 9: there are 3"));
  EXPECT_FALSE(merge({}));
  EXPECT_EQ(net_.device_count().value(), 3);
}

// 2.24 to 2.26 ask for every NIC, and if there is a virtual device drop all others.
TEST_F(NetMerging, EachNicCanBeShownAsAVirtualDevice) {
  other_devices_.resize(1);
  Context* const context = new_context();
  EXPECT_EQ(*merge({1}, kAlone), 3);
  EXPECT_EQ((*net_.device(3))->properties.name, "ztcp1");
  EXPECT_EQ((*net_.device(3))->parts, std::vector{1});
  EXPECT_EQ(*merge({0, 2}, kAlone), 4) << "of two transports: one more each";
  EXPECT_EQ(net_.device_count().value(), 6);
  EXPECT_EQ((*net_.device(4))->properties.name, "ztcp0");
  EXPECT_EQ((*net_.device(5))->parts, std::vector{2});
  EXPECT_TRUE(net_.listen(context, 3, handle_));
  EXPECT_EQ(transport_->last_device(), 1);
}

// 2.28 and later unload plugins between communicators, unless told to keep them.
TEST_F(NetMerging, MergedDevicesEndWhenNcclLoadsThePluginAnew) {
  Context* const first = new_context();
  ASSERT_EQ(net_.device_count().value(), 2);
  const char* const name = (*net_.device(*merge({1, 0})))->properties.name.c_str();
  net_.finalize(first);

  Context* const kept = new_context();
  EXPECT_TRUE(net_.device(2)) << "it was not loaded anew: it has not asked how many there are";
  EXPECT_EQ(net_.device_count().value(), 3);
  net_.finalize(kept);

  new_context();
  EXPECT_EQ(net_.device_count().value(), 2);
  EXPECT_FALSE(net_.device(2));
  EXPECT_EQ(*merge({0, 1}), 2);
  EXPECT_STREQ(name, "ztcp1+ztcp0") << "NCCL borrows names for good";
}

}  // namespace
}  // namespace ztcp::plugin
