// SPDX-License-Identifier: Apache-2.0
// Copyright the ztcp authors
#include "tools/ztcp_setup/resources/kernel_words.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace ztcp::setup {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;

TEST(KernelWords, ASizeAndItsCountAreOneArgument) {
  const KernelWords ours{"iommu=pt", "hugepagesz=1G", "hugepages=20"};
  EXPECT_THAT(lacking_words(ours, {"ro", "iommu=pt", "hugepagesz=1G", "hugepages=20"}), IsEmpty());
  EXPECT_THAT(lacking_words(ours, {"hugepages=20", "hugepagesz=1G", "iommu=pt"}),
              ElementsAre("hugepagesz=1G", "hugepages=20"));
  EXPECT_THAT(lacking_words(ours, {"quiet"}),
              ElementsAre("iommu=pt", "hugepagesz=1G", "hugepages=20"));
  EXPECT_THAT(lacking_words({"hugepages=20"}, {"ro", "hugepages=20"}), IsEmpty());
}

TEST(KernelWords, FindsThePageWordsOfOthers) {
  const KernelWords ours{"hugepagesz=1G", "hugepages=20"};
  EXPECT_THAT(page_words_of_others({"ro", "hugepages=512"}, ours), ElementsAre("hugepages=512"));
  EXPECT_THAT(
      page_words_of_others(
          {"hugepagesz=2M", "hugepages=512", "hugepagesz=1G", "hugepages=20", "quiet"}, ours),
      ElementsAre("hugepagesz=2M", "hugepages=512"));
  EXPECT_THAT(page_words_of_others({"ro", "hugepagesz=1G", "hugepages=20"}, ours), IsEmpty());
}

}  // namespace
}  // namespace ztcp::setup
