// SPDX-License-Identifier: Apache-2.0
// Copyright the ztcp authors
//
// NCCL's tuner in the library of its network. NCCL makes one tuner per communicator, after the
// network's init, and asks it before each collective. Where this process does not tune (Net) and
// CollNet is off, it answers with NCCL's own choice: a failure would end the collective.
#include <memory>
#include <optional>
#include <span>

#include "plugin/abi/common.h"
#include "plugin/abi/nccl_tuner.h"
#include "plugin/channel_tuner.h"
#include "plugin/guard.h"
#include "plugin/net.h"

namespace ztcp::plugin::abi {
namespace {

// A null context leaves NCCL's own choices unchanged.
ncclResult_t tuner_init(std::size_t ranks, std::size_t hosts, void** context) {
  return guard("tuner's init", [&]() -> Told<void> {
    const std::optional<TransportKind> network = net().tuned();
    const CollnetSettings collnet = net().collnet();
    *context = network || collnet.is_on
                   ? new ChannelTuner(network, ranks, hosts,
                                      collnet.is_on ? std::optional(collnet.sizes) : std::nullopt)
                   : nullptr;
    return {};
  });
}

ncclTunerInit_v3_t tuner_init_v3;
ncclResult_t tuner_init_v3(size_t ranks, size_t hosts, ncclDebugLogger_t, void** context) {
  return tuner_init(ranks, hosts, context);
}

ncclTunerInit_v5_t tuner_init_v5;
ncclResult_t tuner_init_v5(void** context, uint64_t, size_t ranks, size_t hosts, ncclDebugLogger_t,
                           void*, void*) {
  return tuner_init(ranks, hosts, context);
}

ncclTunerGetCollInfo_v3_t tuner_get_coll_info_v3;
ncclResult_t tuner_get_coll_info_v3(void* context, ncclFunc_t collective, size_t bytes, int,
                                    float** costs, int algorithms, int protocols, int* channels) {
  return guard("tuner's getCollInfo", [&]() -> Told<void> {
    if (context == nullptr || algorithms <= 0 || protocols <= 0) return {};
    const auto rows = static_cast<std::size_t>(algorithms);
    const auto columns = static_cast<std::size_t>(protocols);
    // The table is one contiguous array of rows, behind NCCL's cast.
    CostTable table({reinterpret_cast<float*>(costs), rows * columns}, columns);
    if (const int wanted =
            static_cast<const ChannelTuner*>(context)->tune(collective, bytes, table);
        wanted != 0)
      *channels = wanted;
    return {};
  });
}

ncclTunerGetCollInfo_v4_t tuner_get_coll_info_v4;
ncclResult_t tuner_get_coll_info_v4(void* context, ncclFunc_t collective, size_t bytes,
                                    int pipelined, float** costs, int algorithms, int protocols,
                                    int, int* channels) {
  return tuner_get_coll_info_v3(context, collective, bytes, pipelined, costs, algorithms, protocols,
                                channels);
}

ncclTunerDestroy_v3_t tuner_destroy_v3;
ncclResult_t tuner_destroy_v3(void* context) {
  return guard("tuner's destroy", [&]() -> Told<void> {
    const std::unique_ptr<const ChannelTuner> tuner(static_cast<const ChannelTuner*>(context));
    return {};
  });
}

}  // namespace
}  // namespace ztcp::plugin::abi

using namespace ztcp::plugin::abi;

extern "C" ZTCP_EXPORT const ncclTuner_v3_t ncclTunerPlugin_v3 = {
    .name = kName,
    .init = tuner_init_v3,
    .getCollInfo = tuner_get_coll_info_v3,
    .destroy = tuner_destroy_v3,
};

extern "C" ZTCP_EXPORT const ncclTuner_v4_t ncclTunerPlugin_v4 = {
    .name = kName,
    .init = tuner_init_v3,
    .getCollInfo = tuner_get_coll_info_v4,
    .destroy = tuner_destroy_v3,
};

extern "C" ZTCP_EXPORT const ncclTuner_v5_t ncclTunerPlugin_v5 = {
    .name = kName,
    .init = tuner_init_v5,
    .getCollInfo = tuner_get_coll_info_v4,
    .finalize = tuner_destroy_v3,
};
