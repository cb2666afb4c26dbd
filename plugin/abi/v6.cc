// SPDX-License-Identifier: Apache-2.0
// Copyright the ztcp authors
//
// NCCL 2.13 to 2.18. Adds regMrDmaBuf; NCCL calls it for devices that offer NCCL_PTR_DMABUF.
#include "plugin/abi/common.h"

using namespace ztcp::plugin::abi;

extern "C" ZTCP_EXPORT const ncclNet_v6_t ncclNetPlugin_v6 = {
    .name = kName,
    .init = init_v3,
    .devices = devices_v3,
    .getProperties = get_properties_v5,
    .listen = listen_v5,
    .connect = connect_v5,
    .accept = accept_v5,
    .regMr = reg_mr_v3,
    .regMrDmaBuf = reg_mr_dma_buf_v6,
    .deregMr = dereg_mr_v3,
    .isend = isend_v5,
    .irecv = irecv_v5,
    .iflush = iflush_v5,
    .test = test_v3,
    .closeSend = close_v3,
    .closeRecv = close_v3,
    .closeListen = close_v3,
};
