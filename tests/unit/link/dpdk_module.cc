// SPDX-License-Identifier: Apache-2.0
// Copyright the ztcp authors
//
// A shared object linked against DPDK like the plugin, with one exported symbol. The NEEDED check
// runs on it, so that a new driver that adds a library fails here, close to its cause.
extern "C" int rte_eal_cleanup(void);
extern "C" __attribute__((visibility("default"))) int ztcp_dpdk_module(void);
int ztcp_dpdk_module(void) { return rte_eal_cleanup(); }
