// SPDX-License-Identifier: Apache-2.0
// Copyright the ztcp authors
//
// Converts the machine in memory to text and back, one line per item: for machines stored in files.
// Two machines are equal if their lines are.
#pragma once

#include <set>
#include <string>

#include "tests/unit/tools/ztcp_setup/fake_host.h"

namespace ztcp::setup::test {

using Lines = std::set<std::string>;

// Without the journal, which is a file of its own.
Lines lines_of(const FakeHost::State& state);
FakeHost::State state_of(const Lines& lines);

}  // namespace ztcp::setup::test
