// SPDX-License-Identifier: Apache-2.0
// Copyright the ztcp authors
//
// NCCL 2.24 and 2.25. isend and irecv take size_t; adds virtual devices.
#include "plugin/abi/common.h"

using namespace ztcp::plugin::abi;

extern "C" ZTCP_EXPORT const ncclNet_v9_t ncclNetPlugin_v9 = {
    .name = kName,
    .init = init_v9,
    .devices = devices_v3,
    .getProperties = get_properties_v9,
    .listen = listen_v5,
    .connect = connect_v7,
    .accept = accept_v7,
    .regMr = reg_mr_v8,
    .regMrDmaBuf = reg_mr_dma_buf_v6,
    .deregMr = dereg_mr_v3,
    .isend = isend_v9,
    .irecv = irecv_v9,
    .iflush = iflush_v5,
    .test = test_v3,
    .closeSend = close_v3,
    .closeRecv = close_v3,
    .closeListen = close_v3,
    .getDeviceMr = nullptr,
    .irecvConsumed = nullptr,
    .makeVDevice = make_vdevice_v9,
};
