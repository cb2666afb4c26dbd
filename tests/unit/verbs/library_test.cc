// SPDX-License-Identifier: Apache-2.0
// Copyright the ztcp authors
#include "transport/verbs/library.h"

#include <gmock/gmock.h>

#include "tests/support/log_capture.h"
#include "transport/verbs/completion_text.h"

namespace ztcp::verbs {
namespace {

using testing::HasSubstr;

TEST(VerbsLibrary, OneThatIsNotThereIsNamedWithItsPackage) {
  const auto api = open_library("libibverbs-of-nobody.so.1");
  ASSERT_FALSE(api);
  EXPECT_THAT(api.error(), HasSubstr("libibverbs-of-nobody.so.1 is not installed (apt install"));
}

TEST(VerbsLibrary, AnotherLibraryOfThatNameIsRefusedByWhatItLacks) {
  const auto api = open_library("libc.so.6");
  ASSERT_FALSE(api);
  EXPECT_THAT(api.error(), HasSubstr("libc.so.6 has no ibv_get_device_list@IBVERBS_1.1"));
}

TEST(VerbsLibrary, TheHostsOwnHasAllThatIsCalled) {
  const auto api = open_library();
  if (!api) GTEST_SKIP() << api.error();
  int count = -1;
  ibv_device** const list = (*api)->get_device_list(&count);
  if (list == nullptr) return;  // Without ib_uverbs there is none.
  EXPECT_GE(count, 0);
  (*api)->free_device_list(list);
}

TEST(VerbsLibrary, OneThatAVariableNamesAndIsNoneIsWarnedOfAndTheHostsOwnTaken) {
  const test::LogCapture log;
  NcclVariables variables;
  variables.library = "libibverbs-of-nobody.so.1";
  EXPECT_EQ(open_library_for(variables).has_value(), open_library().has_value());
  EXPECT_THAT(log.warned(), HasSubstr("NCCL_IBVERBS_LIB=libibverbs-of-nobody.so.1: "));
  EXPECT_THAT(log.warned(), HasSubstr("; libibverbs.so.1 is taken instead"));
}

TEST(VerbsLibrary, AConnectionManagerThatIsNotThereIsNamedWithItsPackage) {
  const auto none = open_manager("librdmacm-of-nobody.so.1");
  ASSERT_FALSE(none);
  EXPECT_THAT(none.error(), HasSubstr("is not installed (apt install librdmacm1"));
  const auto other = open_manager("libc.so.6");
  ASSERT_FALSE(other);
  EXPECT_THAT(other.error(), HasSubstr("libc.so.6 has no rdma_create_event_channel@RDMACM_1.0"));
}

TEST(VerbsLibrary, TheHostsOwnConnectionManagerHasAllThatIsCalled) {
  const auto api = open_manager();
  if (!api) GTEST_SKIP() << api.error();
  EXPECT_STREQ((*api)->event_str(CmEventKind::kEstablished), "RDMA_CM_EVENT_ESTABLISHED");
  EXPECT_STREQ((*api)->event_str(CmEventKind::kRejected), "RDMA_CM_EVENT_REJECTED");
}

TEST(CompletionText, EveryStatusHasWordsAndAMend) {
  for (int status = IBV_WC_LOC_LEN_ERR; status <= IBV_WC_TM_RNDV_INCOMPLETE; ++status) {
    const CompletionText text = describe(static_cast<ibv_wc_status>(status));
    EXPECT_NE(*text.words, '\0') << status;
    EXPECT_NE(*text.advice, '\0') << status;
  }
}

}  // namespace
}  // namespace ztcp::verbs
