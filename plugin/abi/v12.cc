// SPDX-License-Identifier: Apache-2.0
// Copyright the ztcp authors
//
// NCCL 2.30. Adds rail and plane ids to the properties.
#include "plugin/abi/common.h"

using namespace ztcp::plugin::abi;

extern "C" ZTCP_EXPORT const ncclNet_v12_t ncclNetPlugin_v12 = {
    .name = kName,
    .init = init_v11,
    .devices = devices_v3,
    .getProperties = get_properties_v12,
    .listen = listen_v11,
    .connect = connect_v11,
    .accept = accept_v7,
    .regMr = reg_mr_v8,
    .regMrDmaBuf = reg_mr_dma_buf_v6,
    .deregMr = dereg_mr_v3,
    .isend = isend_v10,
    .irecv = irecv_v10,
    .iflush = iflush_v5,
    .test = test_v3,
    .closeSend = close_v3,
    .closeRecv = close_v3,
    .closeListen = close_v3,
    .getDeviceMr = nullptr,
    .irecvConsumed = nullptr,
    .makeVDevice = make_vdevice_v12,
    .finalize = finalize_v11,
    .setNetAttr = nullptr,
};
