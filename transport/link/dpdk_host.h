// SPDX-License-Identifier: Apache-2.0
// Copyright the ztcp authors
//
// DPDK's interface to its host process. Its archives are linked into one object first (`ld -r`),
// with --wrap for C library calls with effects outside DPDK: printing on stdout and stderr, taking
// over syslog, descriptors that survive exec, and ending the process in a panic. Only DPDK's own
// calls are redirected.
#pragma once

#include <cstdio>

namespace ztcp::link {

// Sets the stream for DPDK's prints; must be called before any DPDK function.
void set_dpdk_output(std::FILE* stream);

// True once DPDK has panicked (because it ran out of descriptors, for example). The panicking
// thread sleeps for ever, which is logged; DPDK must not be called again.
bool dpdk_panicked();

}  // namespace ztcp::link
