// SPDX-License-Identifier: Apache-2.0
// Copyright the ztcp authors
//
// The result of --dry-run, in a form to compare with set-up's changes.
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

// The announcements of one --dry-run.
struct Announcement {
  std::vector<std::string> reverted;  // The resources' descriptions, last first.
  std::vector<Announced> changes;
  std::string faults;  // Why nothing would be done.
};
Announcement announced(const DryRun& run);
// The result of --dry-run for a plan with these resources.
DryRun dry_run(FakeHost& host, const Resources& resources);

// The resources' descriptions; for an outcome, those that were changed.
std::vector<std::string> names_of(const std::vector<Announced>& changes);
std::vector<std::string> names_of(const Outcome& outcome);
// The reverted ones; notices among these resources are not announced.
std::vector<std::string> reverted_of(const Outcome& outcome, const Resources& resources);
// All lines that are printed.
std::vector<std::string> lines_of(const DryRun& run);

// Expects the machine's inside to be as announced: the state before, or the wanted one.
enum class Moment : std::uint8_t { kBefore, kAfter };
void expect_seen(FakeHost& host, const std::vector<Announced>& changes, Moment moment);

// Previews, applies, does both again, once more without the last resource, and undoes.
void expect_agreement(FakeHost host, const Resources& resources);

}  // namespace ztcp::setup::test
