// SPDX-License-Identifier: Apache-2.0
// Copyright the ztcp authors
//
// A tree as set-up's machine: files and accounts are the tree's, and so is what rtnetlink would
// say.
#pragma once

#include "tests/support/tree.h"
#include "tools/ztcp_setup/live/live_host.h"

namespace ztcp::setup::test {

class TreeHost final : public LiveHost {
 public:
  explicit TreeHost(const ztcp::test::Tree& tree) : LiveHost(tree.root()), tree_(tree) {}
  tl::expected<config::Network, config::Problem> network() override { return tree_.network(); }

 private:
  const ztcp::test::Tree& tree_;
};

}  // namespace ztcp::setup::test
