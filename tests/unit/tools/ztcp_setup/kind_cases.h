// SPDX-License-Identifier: Apache-2.0
// Copyright the ztcp authors
//
// Every kind of resource, once on the bare machine: the only list for tests over all kinds. A new
// kind needs a case in kind_cases() and a line in Seen; without them agreement_test.cc fails, or
// does not compile.
#pragma once

#include <string>
#include <vector>

#include "tests/unit/tools/ztcp_setup/fake_host.h"
#include "tools/ztcp_setup/resources/resource.h"

namespace ztcp::setup::test {

struct KindCase {
  Resources resources;  // The last one is of the kind; those before it are its preconditions.
  std::string have;     // Before it is applied, in the words of the preview.
  std::string want;

  const Resource& resource() const { return resources.back(); }
};

std::vector<KindCase> kind_cases();

// A resource's state as the machine has it, in the words of the preview. `text`: the text of a
// file; else its mode and owner.
std::string seen(FakeHost& host, const Resource& resource, bool text);

}  // namespace ztcp::setup::test
