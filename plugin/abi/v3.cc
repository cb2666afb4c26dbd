// SPDX-License-Identifier: Apache-2.0
// Copyright the ztcp authors
//
// NCCL 2.6 and 2.7. connect, accept and flush block: this NCCL calls them once.
#include "plugin/abi/common.h"

using namespace ztcp::plugin::abi;

extern "C" ZTCP_EXPORT const ncclNet_v3_t ncclNetPlugin_v3 = {
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
    .flush = flush_v3,
    .test = test_v3,
    .closeSend = close_v3,
    .closeRecv = close_v3,
    .closeListen = close_v3,
};
