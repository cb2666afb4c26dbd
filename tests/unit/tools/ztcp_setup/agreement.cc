// SPDX-License-Identifier: Apache-2.0
// Copyright the ztcp authors
#include "tests/unit/tools/ztcp_setup/agreement.h"

#include <algorithm>
#include <string_view>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/unit/tools/ztcp_setup/bare_machine.h"
#include "tests/unit/tools/ztcp_setup/kind_cases.h"
#include "tools/ztcp_setup/run/preview.h"

namespace ztcp::setup::test {

using testing::ElementsAreArray;
using testing::IsEmpty;

Announcement announced(const DryRun& run) {
  Announcement found;
  for (const config::Check& note : run.plan.notes)
    if (note.severity == config::Severity::kFault) found.faults += to_string(note.problem) + "\n";
  auto resource = run.plan.resources.begin();
  for (const Preview& preview : run.changes) {
    constexpr std::string_view kReverted = "reverted: ";
    if (preview.what.starts_with(kReverted)) {
      found.reverted.push_back(preview.what.substr(kReverted.size()));
      continue;
    }
    while (resource != run.plan.resources.end() && resource->why != preview.what) ++resource;
    if (resource == run.plan.resources.end()) {
      ADD_FAILURE() << "nobody wants, or not in this order: " << preview.what;
      break;
    }
    found.changes.push_back({*resource++, preview});
  }
  return found;
}

DryRun dry_run(FakeHost& host, const Resources& resources) {
  DryRun run;
  run.plan.fabric.emplace();
  run.plan.resources = resources;
  run.changes = preview_run(host, Mode::kFresh, run.plan);
  return run;
}

std::vector<std::string> lines_of(const DryRun& run) {
  std::vector<std::string> lines;
  for (const Preview& change : run.changes)
    lines.push_back(change.what + ": " + change.have + " -> " + change.want + "\n" +
                    change.command);
  return lines;
}

std::vector<std::string> names_of(const std::vector<Announced>& changes) {
  std::vector<std::string> names;
  for (const Announced& one : changes) names.push_back(one.preview.what);
  return names;
}

std::vector<std::string> names_of(const Outcome& outcome) {
  std::vector<std::string> names;
  for (const Step& step : outcome.steps)
    if (step.result == StepResult::kChanged) names.push_back(step.why);
  return names;
}

std::vector<std::string> reverted_of(const Outcome& outcome, const Resources& resources) {
  std::vector<std::string> names;
  for (const Step& step : outcome.steps) {
    const bool is_announced = std::ranges::none_of(resources, [&](const Resource& resource) {
      return is_notice(resource) && resource.why == step.why;
    });
    if (step.result == StepResult::kReverted && is_announced) names.push_back(step.why);
  }
  return names;
}

void expect_seen(FakeHost& host, const std::vector<Announced>& changes, Moment moment) {
  for (const Announced& one : changes)
    EXPECT_EQ(seen(host, one.resource, one.preview.is_text),
              moment == Moment::kBefore ? one.preview.have : one.preview.want)
        << one.preview.what;
}

void expect_agreement(FakeHost host, const Resources& resources) {
  const FakeHost::State bare = host.state;
  const DryRun told = dry_run(host, resources);
  const Announcement first = announced(told);
  EXPECT_EQ(first.faults, "");
  EXPECT_THAT(first.reverted, IsEmpty());
  EXPECT_EQ(host.changes, 0U) << "a preview changes nothing";
  expect_seen(host, first.changes, Moment::kBefore);

  const Outcome applied = set_up(host, resources);
  ASSERT_TRUE(applied.complete()) << all_of(applied.faults);
  EXPECT_THAT(names_of(applied), ElementsAreArray(names_of(first.changes)));
  expect_seen(host, first.changes, Moment::kAfter);

  const auto changes = host.changes;
  EXPECT_THAT(lines_of(dry_run(host, resources)), IsEmpty());
  EXPECT_THAT(names_of(set_up(host, resources)), IsEmpty());
  EXPECT_EQ(host.changes, changes);

  FakeHost with_less = host;
  const Resources fewer(resources.begin(), resources.end() - 1);
  const Announcement less = announced(dry_run(with_less, fewer));
  EXPECT_EQ(with_less.changes, changes);
  const Outcome given_back = set_up(with_less, fewer);
  ASSERT_TRUE(given_back.complete()) << all_of(given_back.faults);
  EXPECT_THAT(reverted_of(given_back, resources), ElementsAreArray(less.reverted));
  EXPECT_THAT(names_of(given_back), ElementsAreArray(names_of(less.changes)));
  expect_seen(with_less, less.changes, Moment::kAfter);

  const Outcome undone = undo(host);
  ASSERT_TRUE(undone.complete()) << all_of(undone.faults);
  expect_same(host.state, bare);
  EXPECT_THAT(lines_of(dry_run(host, resources)), ElementsAreArray(lines_of(told)));
}

}  // namespace ztcp::setup::test
