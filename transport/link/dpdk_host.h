// SPDX-License-Identifier: Apache-2.0
// Copyright the ztcp authors
//
// What DPDK gets from the process it lives in. Its archives are linked into one object first
// (`ld -r`), with --wrap for the C library calls by which it would otherwise show: printing on
// stdout and stderr, taking over syslog, descriptors that survive exec, and ending the process
// when it panics. Only DPDK's own calls are routed here, nobody else's.
#pragma once

#include <cstdio>

namespace ztcp::link {

// Where DPDK's prints go; must be set before anything of DPDK is called.
void set_dpdk_output(std::FILE* stream);

// True once DPDK has panicked (it ran out of descriptors, say). The thread that did sleeps for
// ever, which is logged; DPDK is not to be called again.
bool dpdk_panicked();

}  // namespace ztcp::link
