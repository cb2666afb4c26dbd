// SPDX-License-Identifier: Apache-2.0
// Copyright the ztcp authors
//
// libibverbs, opened when an RDMA device is first asked for. Its symbols are taken with the
// versions that rdma-core 22 and all later ones export: a container's other copy is refused by name
// and does not end the plugin's load.
#pragma once

#include <string>

#include <tl/expected.hpp>

#include "transport/verbs/api.h"

namespace ztcp::verbs {

inline constexpr const char* kLibrary = "libibverbs.so.1";

// Stays open for good, as the drivers that it loads do. The error is a sentence for the operator,
// without a full stop.
tl::expected<const Api*, std::string> open_library(const char* name = kLibrary);

}  // namespace ztcp::verbs
