// SPDX-License-Identifier: Apache-2.0
// Copyright the ztcp authors
//
// The machine in memory as text, a line for each thing there is, and back: for machines that are
// kept in files. Two machines are equal when their lines are.
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
