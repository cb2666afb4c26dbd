// SPDX-License-Identifier: Apache-2.0
// Copyright the ztcp authors
#pragma once

// For functions of the data path that use no data but their own numbers, and in which callgrind
// shows the stack protector (bench/results/README.md, "Hardening"). Never for one that writes a
// peer's bytes, or by a peer's numbers, to its own stack.
#if defined(__has_attribute)
#if __has_attribute(no_stack_protector)
#define ZTCP_UNPROTECTED __attribute__((no_stack_protector))
#endif
#endif
#ifndef ZTCP_UNPROTECTED
#define ZTCP_UNPROTECTED
#endif
