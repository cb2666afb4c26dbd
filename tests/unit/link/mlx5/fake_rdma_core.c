/* SPDX-License-Identifier: Apache-2.0
 * Copyright the ztcp authors
 *
 * Stands in for libibverbs and libmlx5: each function returns its own name. */
#include "transport/link/mlx5/rdma_core_calls.h"

#define FUNCTION(name, version) \
  const char* name(void);       \
  const char* name(void) { return #name; }
ZTCP_RDMA_CORE_CALLS(FUNCTION, FUNCTION, FUNCTION)
