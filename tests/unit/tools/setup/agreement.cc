// SPDX-License-Identifier: Apache-2.0
// Copyright the ztcp authors
#include "tests/unit/tools/setup/agreement.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/unit/tools/setup/bare_machine.h"
#include "tests/unit/tools/setup/kind_cases.h"
#include "tools/ztcp_setup/run/preview.h"

namespace ztcp::setup::test {

using testing::ElementsAreArray;
using testing::IsEmpty;

std::vector<Announced> announced(FakeHost& host, const Resources& resources) {
  std::vector<Announced> found;
  auto resource = resources.begin();
  for (Preview& preview : preview_changes(host, *Journal::open(host), resources)) {
    while (resource != resources.end() && resource->why != preview.what) ++resource;
    if (resource == resources.end()) {
      ADD_FAILURE() << "nobody wants, or not in this order: " << preview.what;
      break;
    }
    found.push_back({*resource++, std::move(preview)});
  }
  return found;
}

std::vector<std::string> lines_of(const std::vector<Announced>& announced) {
  std::vector<std::string> lines;
  for (const Announced& one : announced)
    lines.push_back(one.preview.what + ": " + one.preview.have + " -> " + one.preview.want + "\n" +
                    one.preview.command);
  return lines;
}

std::vector<std::string> names_of(const std::vector<Announced>& announced) {
  std::vector<std::string> names;
  for (const Announced& one : announced) names.push_back(one.preview.what);
  return names;
}

std::vector<std::string> names_of(const Outcome& outcome) {
  std::vector<std::string> names;
  for (const Step& step : outcome.steps)
    if (step.result == StepResult::kChanged) names.push_back(step.why);
  return names;
}

void expect_seen(FakeHost& host, const std::vector<Announced>& announced, Moment moment) {
  for (const Announced& one : announced)
    EXPECT_EQ(seen(host, one.resource, one.preview.is_text),
              moment == Moment::kBefore ? one.preview.have : one.preview.want)
        << one.preview.what;
}

void expect_agreement(FakeHost host, const Resources& resources) {
  const FakeHost::State bare = host.state;
  const auto first = announced(host, resources);
  EXPECT_EQ(host.changes, 0U) << "a preview changes nothing";
  expect_seen(host, first, Moment::kBefore);

  const Outcome applied = set_up(host, resources);
  ASSERT_TRUE(applied.complete()) << all_of(applied.faults);
  EXPECT_THAT(names_of(applied), ElementsAreArray(names_of(first)));
  expect_seen(host, first, Moment::kAfter);

  const auto changes = host.changes;
  EXPECT_THAT(lines_of(announced(host, resources)), IsEmpty());
  EXPECT_THAT(names_of(set_up(host, resources)), IsEmpty());
  EXPECT_EQ(host.changes, changes);

  const Outcome undone = undo(host);
  ASSERT_TRUE(undone.complete()) << all_of(undone.faults);
  expect_same(host.state, bare);
  EXPECT_THAT(lines_of(announced(host, resources)), ElementsAreArray(lines_of(first)));
}

}  // namespace ztcp::setup::test
