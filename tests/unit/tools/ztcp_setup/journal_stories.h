// SPDX-License-Identifier: Apache-2.0
// Copyright the ztcp authors
//
// How machines got the journals of tests/data/setup/journals: set up completely and in part,
// killed, booted, changed by others since. Together the journals contain every kind of resource in
// every state.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "tests/unit/tools/ztcp_setup/fake_host.h"

namespace ztcp::setup::test {

struct JournalStory {
  std::string name;
  std::function<void(FakeHost& host)> tell;  // From story_machine() to the start of undo.
  bool untouched = false;                    // Not killed, and not changed by others.
};

// A machine with a state to restore for every kind of resource.
FakeHost story_machine();
std::vector<JournalStory> journal_stories();

}  // namespace ztcp::setup::test
