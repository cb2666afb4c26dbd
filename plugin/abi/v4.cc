// SPDX-License-Identifier: Apache-2.0
// Copyright the ztcp authors
//
// NCCL 2.8 to 2.11. flush became iflush.
#include "plugin/abi/common.h"

using namespace ztcp::plugin::abi;

extern "C" ZTCP_EXPORT const ncclNet_v4_t ncclNetPlugin_v4 = {
    .name = kName,
    .init = init_v3,
    .devices = devices_v3,
    .getProperties = get_properties_v3,
    .listen = listen_v3,
    .connect = connect_v3,
    .accept = accept_v3,
    .regMr = reg_mr_v3,
    .deregMr = dereg_mr_v3,
    .isend = isend_v3,
    .irecv = irecv_v3,
    .iflush = iflush_v4,
    .test = test_v3,
    .closeSend = close_v3,
    .closeRecv = close_v3,
    .closeListen = close_v3,
};
