// SPDX-License-Identifier: Apache-2.0
// Copyright the ztcp authors
//
// Detects the topology of the machines in tests/data/trees.
#pragma once

#include <string>

#include <gtest/gtest.h>

#include "config/machine/live_machine.h"
#include "config/topology/topology.h"
#include "tests/support/tree.h"

namespace ztcp::test {

inline config::Topology detect_tree(const Tree& tree, const config::Selection& selection = {}) {
  config::LiveMachine machine(tree.root());
  auto topology = config::detect(machine, tree.root(), tree.network(), selection);
  EXPECT_TRUE(topology) << to_string(topology.error());
  return topology ? *topology : config::Topology{};
}
inline config::Topology detect_tree(const char* name) {
  return detect_tree(Tree(Tree::read(std::string(ZTCP_TREES) + "/" + name + ".tree")));
}

}  // namespace ztcp::test
