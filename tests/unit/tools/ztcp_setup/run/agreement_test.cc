// SPDX-License-Identifier: Apache-2.0
// Copyright the ztcp authors
//
// --dry-run announces exactly the changes of set-up: --dry-run, apply, --dry-run again, apply less,
// undo and --dry-run once more, on one machine, for every kind of resource.
#include "tests/unit/tools/ztcp_setup/agreement.h"

#include <set>

#include <gtest/gtest.h>

#include "tests/unit/tools/ztcp_setup/bare_machine.h"
#include "tests/unit/tools/ztcp_setup/kind_cases.h"

namespace ztcp::setup {
namespace {

using test::bare_machine;
using test::expect_agreement;
using test::FakeHost;
using test::KindCase;

TEST(Agreement, EveryKindHasACase) {
  std::set<std::size_t> kinds;
  for (const KindCase& one : test::kind_cases()) kinds.insert(one.resource().what.index());
  EXPECT_EQ(kinds.size(), std::variant_size_v<Kinds::What>);
}

TEST(Agreement, DryRunAgreesWithRunsForEveryKind) {
  for (const KindCase& one : test::kind_cases()) {
    SCOPED_TRACE(one.resource().why);
    FakeHost host = bare_machine();
    host.add_folder("/etc/kernel");
    host.add_file(test::kCommandLine, "ro\n");
    const Preview told = preview(host, one.resource());
    EXPECT_EQ(told.have, one.have);
    EXPECT_EQ(told.want, one.want);
    expect_agreement(host, one.resources);
  }
}

TEST(Agreement, DryRunAgreesWithRunsForAllKindsTogether) {
  expect_agreement(bare_machine(), test::all_resources());
}

}  // namespace
}  // namespace ztcp::setup
