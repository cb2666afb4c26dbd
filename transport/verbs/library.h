// SPDX-License-Identifier: Apache-2.0
// Copyright the ztcp authors
//
// libibverbs, opened when an RDMA device is first asked for, and librdmacm, when one is of iWARP.
// Their symbols are taken with the versions that rdma-core 22 and all later ones export: a
// container's other copy is refused by name and does not end the plugin's load.
#pragma once

#include <string>

#include "core/result.h"
#include "transport/verbs/api.h"
#include "transport/verbs/nccl_variables.h"

namespace ztcp::verbs {

inline constexpr const char* kLibrary = "libibverbs.so.1";

// Stays open for good, as the drivers that it loads do. The error is a sentence for the operator,
// without a full stop.
Result<const Api*, std::string> open_library(const char* name = kLibrary);

// The one that NCCL_IBVERBS_LIB names, where it can be opened.
Result<const Api*, std::string> open_library_for(const NcclVariables& variables);

inline constexpr const char* kManagerLibrary = "librdmacm.so.1";

// librdmacm, likewise.
Result<const CmApi*, std::string> open_manager(const char* name = kManagerLibrary);

}  // namespace ztcp::verbs
