// SPDX-License-Identifier: Apache-2.0
// Copyright the ztcp authors
#include "tools/ztcp_setup/resources/unit.h"

#include <cerrno>

#include <gtest/gtest.h>

#include "tests/unit/tools/ztcp_setup/bare_machine.h"

namespace ztcp::setup {
namespace {

using test::bare_machine;
using test::expect_same;
using test::FakeHost;
using test::set_up;
using test::undo;

TEST(Unit, AUnitOfUnknownStateIsDisabled) {
  const FakeHost bare = bare_machine();
  FakeHost host = bare;
  ASSERT_TRUE(set_up(host).complete());
  host.errors["run systemctl is-enabled ztcp-setup.service"] = ETIMEDOUT;
  EXPECT_TRUE(undo(host).complete());
  expect_same(host.state, bare.state);
}

}  // namespace
}  // namespace ztcp::setup
