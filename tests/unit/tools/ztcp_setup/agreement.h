// SPDX-License-Identifier: Apache-2.0
// Copyright the ztcp authors
//
// What --dry-run announces, in a form that can be held against what set-up does.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "tests/unit/tools/ztcp_setup/fake_host.h"
#include "tools/ztcp_setup/report/progress.h"
#include "tools/ztcp_setup/resources/resource.h"
#include "tools/ztcp_setup/run/commands.h"

namespace ztcp::setup::test {

struct Announced {
  Resource resource;
  Preview preview;
};

// Of one --dry-run.
struct Announcement {
  std::vector<std::string> reverted;  // The resources' own lines, last first.
  std::vector<Announced> changes;
  std::string faults;  // Why nothing would be done.
};
Announcement announced(const DryRun& run);
// What --dry-run does where a plan wants these.
DryRun dry_run(FakeHost& host, const Resources& resources);

// The resources' own lines; of an outcome, those that were changed.
std::vector<std::string> names_of(const std::vector<Announced>& changes);
std::vector<std::string> names_of(const Outcome& outcome);
// Those that were reverted; of notices among these resources nothing is announced.
std::vector<std::string> reverted_of(const Outcome& outcome, const Resources& resources);
// All that is told.
std::vector<std::string> lines_of(const DryRun& run);

// That inside of the machine all is as announced: what there is before, or what is wanted.
enum class Moment : std::uint8_t { kBefore, kAfter };
void expect_seen(FakeHost& host, const std::vector<Announced>& changes, Moment moment);

// Previews, applies, does both again, once more without the last one, and undoes.
void expect_agreement(FakeHost host, const Resources& resources);

}  // namespace ztcp::setup::test
