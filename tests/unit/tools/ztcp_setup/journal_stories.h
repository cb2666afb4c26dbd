// SPDX-License-Identifier: Apache-2.0
// Copyright the ztcp authors
//
// How machines came to the journals of tests/data/setup/journals: set up whole and in part, killed
// on the way, booted, changed by others since. Together their journals have every kind of resource
// in every state.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "tests/unit/tools/ztcp_setup/fake_host.h"

namespace ztcp::setup::test {

struct JournalStory {
  std::string name;
  std::function<void(FakeHost& host)> tell;  // From story_machine() to where undo begins.
  bool untouched = false;                    // No one was killed and nobody else changed anything.
};

// A machine with something to put back for every kind of resource.
FakeHost story_machine();
std::vector<JournalStory> journal_stories();

}  // namespace ztcp::setup::test
