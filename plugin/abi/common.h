// SPDX-License-Identifier: Apache-2.0
// Copyright the ztcp authors
//
// Adapters from NCCL's signatures to the version-free Net. Each is named after the first version
// that uses it, and serves every later one with the same signature. Declared through
// NCCL's signature types, so that a table and its adapters cannot drift apart.
#pragma once

#include "plugin/abi/nccl_abi.h"
#include "plugin/agreement.h"

// The tables are the only exported symbols (exports.map).
#define ZTCP_EXPORT [[gnu::visibility("default")]]

namespace ztcp::plugin::abi {

// NCCL_NET=ztcp selects this name. Must be readable before init.
inline constexpr const char* kName = "ztcp";

ncclNetInit_v3_t init_v3;
ncclNetInit_v3_t init_v9;
ncclNetInit_v10_t init_v10;
ncclNetInit_v11_t init_v11;
ncclNetDevices_v3_t devices_v3;
ncclNetGetProperties_v3_t get_properties_v3;
ncclNetGetProperties_v5_t get_properties_v5;
ncclNetGetProperties_v7_t get_properties_v7;
ncclNetGetProperties_v8_t get_properties_v8;
ncclNetGetProperties_v9_t get_properties_v9;
ncclNetGetProperties_v11_t get_properties_v11;
ncclNetGetProperties_v12_t get_properties_v12;
ncclNetListen_v3_t listen_v3;  // 64-byte handle.
ncclNetListen_v3_t listen_v5;  // 128-byte handle.
ncclNetListen_v11_t listen_v11;
ncclNetConnect_v3_t connect_v3;  // Blocks.
ncclNetConnect_v3_t connect_v5;
ncclNetConnect_v7_t connect_v7;
ncclNetConnect_v10_t connect_v10;
ncclNetConnect_v11_t connect_v11;
ncclNetAccept_v3_t accept_v3;  // Blocks.
ncclNetAccept_v3_t accept_v5;
ncclNetAccept_v7_t accept_v7;
ncclNetRegMr_v3_t reg_mr_v3;
ncclNetRegMr_v8_t reg_mr_v8;
ncclNetRegMrDmaBuf_v6_t reg_mr_dma_buf_v6;
ncclNetDeregMr_v3_t dereg_mr_v3;
ncclNetIsend_v3_t isend_v3;
ncclNetIsend_v5_t isend_v5;
ncclNetIsend_v9_t isend_v9;
ncclNetIsend_v10_t isend_v10;
ncclNetIrecv_v3_t irecv_v3;
ncclNetIrecv_v5_t irecv_v5;
ncclNetIrecv_v9_t irecv_v9;
ncclNetIrecv_v10_t irecv_v10;
ncclNetFlush_v3_t flush_v3;  // Blocks.
ncclNetIflush_v4_t iflush_v4;
ncclNetIflush_v5_t iflush_v5;
ncclNetTest_v3_t test_v3;
ncclNetClose_v3_t close_v3;               // For senders, receivers and listeners.
ncclNetMakeVDevice_v9_t make_vdevice_v9;  // Shows NICs that cannot be merged one by one.
ncclNetMakeVDevice_v9_t make_vdevice_v11;
ncclNetMakeVDevice_v12_t make_vdevice_v12;
ncclNetFinalize_v11_t finalize_v11;

// Left NULL in every table, as NCCL allows: getDeviceMr and irecvConsumed (no device offload), and
// setNetAttr (hints).

}  // namespace ztcp::plugin::abi
