// SPDX-License-Identifier: Apache-2.0
// Copyright the ztcp authors
//
// What --dry-run announces is what set-up does: preview, apply, preview again, undo and preview
// once more, on one machine, for every kind of resource.
#include <set>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/unit/tools/setup/bare_machine.h"
#include "tests/unit/tools/setup/kind_cases.h"

namespace ztcp::setup {
namespace {

using test::all_of;
using test::bare_machine;
using test::expect_same;
using test::FakeHost;
using test::KindCase;
using testing::ElementsAreArray;
using testing::IsEmpty;

struct Announced {
  Resource resource;
  Preview preview;
};

// What does not hold, in order; notices behind that.
std::vector<Announced> announced(FakeHost& host, const Resources& resources) {
  std::vector<Announced> found;
  bool due = false;
  for (std::size_t i = 0; i < resources.size(); ++i) {
    if (i > 0 && is_notice(resources[i - 1]) && !is_notice(resources[i])) due = false;
    if (is_notice(resources[i]) ? !due : holds(host, resources[i])) continue;
    due = true;
    found.push_back({resources[i], preview(host, resources[i])});
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

std::vector<std::string> changed(const Outcome& outcome) {
  std::vector<std::string> names;
  for (const Step& step : outcome.steps)
    if (step.result == StepResult::kChanged) names.push_back(step.why);
  return names;
}

void expect_agreement(FakeHost host, const Resources& resources) {
  const FakeHost::State bare = host.state;
  const auto first = announced(host, resources);
  EXPECT_EQ(host.changes, 0U) << "a preview changes nothing";
  for (const Announced& one : first)
    EXPECT_EQ(test::seen(host, one.resource, one.preview.is_text), one.preview.have);

  const Outcome applied = test::set_up(host, resources);
  ASSERT_TRUE(applied.complete()) << all_of(applied.faults);
  EXPECT_THAT(changed(applied), ElementsAreArray(names_of(first)));
  for (const Announced& one : first)
    EXPECT_EQ(test::seen(host, one.resource, one.preview.is_text), one.preview.want);

  const auto changes = host.changes;
  EXPECT_THAT(lines_of(announced(host, resources)), IsEmpty());
  EXPECT_THAT(changed(test::set_up(host, resources)), IsEmpty());
  EXPECT_EQ(host.changes, changes);

  const Outcome undone = test::undo(host);
  ASSERT_TRUE(undone.complete()) << all_of(undone.faults);
  expect_same(host.state, bare);
  EXPECT_THAT(lines_of(announced(host, resources)), ElementsAreArray(lines_of(first)));
}

TEST(Agreement, EveryKindHasACase) {
  std::set<std::size_t> kinds;
  for (const KindCase& one : test::kind_cases()) kinds.insert(one.resource().what.index());
  EXPECT_EQ(kinds.size(), std::variant_size_v<Kinds::What>);
}

TEST(Agreement, OfEveryKind) {
  for (const KindCase& one : test::kind_cases()) {
    SCOPED_TRACE(one.resource().why);
    FakeHost host = bare_machine();
    const Preview told = preview(host, one.resource());
    EXPECT_EQ(told.have, one.have);
    EXPECT_EQ(told.want, one.want);
    expect_agreement(host, one.resources);
  }
}

TEST(Agreement, OfAllKindsTogether) { expect_agreement(bare_machine(), test::all_wishes()); }

}  // namespace
}  // namespace ztcp::setup
