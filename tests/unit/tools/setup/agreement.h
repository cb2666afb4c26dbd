// SPDX-License-Identifier: Apache-2.0
// Copyright the ztcp authors
//
// What --dry-run announces, in a form that can be held against what set-up does.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "tests/unit/tools/setup/fake_host.h"
#include "tools/ztcp_setup/report/progress.h"
#include "tools/ztcp_setup/resources/resource.h"

namespace ztcp::setup::test {

struct Announced {
  Resource resource;
  Preview preview;
};

// As --dry-run has it, with the resource that each is about.
std::vector<Announced> announced(FakeHost& host, const Resources& resources);

// The resources' own lines; of an outcome, those that were changed.
std::vector<std::string> names_of(const std::vector<Announced>& announced);
std::vector<std::string> names_of(const Outcome& outcome);
// All that is told.
std::vector<std::string> lines_of(const std::vector<Announced>& announced);

// That inside of the machine all is as announced: what there is before, or what is wanted.
enum class Moment : std::uint8_t { kBefore, kAfter };
void expect_seen(FakeHost& host, const std::vector<Announced>& announced, Moment moment);

// Previews, applies, does both again, and undoes.
void expect_agreement(FakeHost host, const Resources& resources);

}  // namespace ztcp::setup::test
