// SPDX-License-Identifier: Apache-2.0
// Copyright the ztcp authors
#include "plugin/abi/collnet_windows.h"

#include "plugin/collnet_windows.h"
#include "plugin/guard.h"

namespace ztcp::plugin::abi {
namespace {

// The first of `pieces` and this host's part, in memory as NCCL registered it. Piece: the versions
// differ in the width of its size.
template <class Piece>
WindowCall window_call(int pieces, const Piece* piece, void* own, void* own_mhandle,
                       std::size_t part_bytes, std::size_t offset, std::size_t bytes) {
  WindowCall call{.pieces = pieces,
                  .own = static_cast<std::byte*>(own),
                  .own_memory = memory_of(own_mhandle),
                  .part_bytes = part_bytes,
                  .offset = offset,
                  .bytes = bytes};
  if (pieces < 1) return call;
  call.address = static_cast<std::byte*>(piece->address);
  call.piece_bytes = piece->size;
  call.memory = memory_of(piece->mhandle);
  return call;
}

ncclResult_t gather(void* comm, const WindowCall& call, void** request) {
  return guard("iallgather", [&]() -> Told<void> {
    *request = nullptr;
    *request = ZTCP_TRY(all_gather(group_of(comm), call));
    return {};
  });
}

ncclResult_t scatter(void* comm, const WindowCall& call, ncclDataType_t type, ncclRedOp_t operation,
                     void** request) {
  return guard("ireducescatter", [&]() -> Told<void> {
    *request = nullptr;
    if (!is_reduced(type, operation))
      return report(Errc::kInvalidArgument, "ireducescatter of data type {} by operation {}",
                    static_cast<int>(type), static_cast<int>(operation));
    *request =
        ZTCP_TRY(reduce_scatter(group_of(comm), call, element_of(type), reduction_of(operation)));
    return {};
  });
}

}  // namespace

ncclResult_t coll_iallgather_v8(void* comm, void* own, int pieces, ncclNetSGE_v8_t* piece,
                                size_t part_bytes, size_t offset, size_t bytes, void* own_mhandle,
                                void** request) {
  return gather(comm, window_call(pieces, piece, own, own_mhandle, part_bytes, offset, bytes),
                request);
}
ncclResult_t coll_iallgather_v9(void* comm, void* own, int pieces, ncclNetSGE_v9_t* piece,
                                size_t part_bytes, size_t offset, size_t bytes, void* own_mhandle,
                                void** request) {
  return gather(comm, window_call(pieces, piece, own, own_mhandle, part_bytes, offset, bytes),
                request);
}

ncclResult_t coll_ireducescatter_v8(void* comm, int pieces, ncclNetSGE_v8_t* piece, void* own,
                                    size_t part_bytes, size_t offset, size_t bytes,
                                    ncclDataType_t type, ncclRedOp_t operation, void* own_mhandle,
                                    void** request) {
  return scatter(comm, window_call(pieces, piece, own, own_mhandle, part_bytes, offset, bytes),
                 type, operation, request);
}
ncclResult_t coll_ireducescatter_v9(void* comm, int pieces, ncclNetSGE_v9_t* piece, void* own,
                                    size_t part_bytes, size_t offset, size_t bytes,
                                    ncclDataType_t type, ncclRedOp_t operation, void* own_mhandle,
                                    void** request) {
  return scatter(comm, window_call(pieces, piece, own, own_mhandle, part_bytes, offset, bytes),
                 type, operation, request);
}

}  // namespace ztcp::plugin::abi
