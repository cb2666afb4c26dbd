// SPDX-License-Identifier: Apache-2.0
// Copyright the ztcp authors
//
// What NCCL's own variables say of RDMA, so that whoever has told NCCL has told us. OPERATING.md
// has the table of all of them. What the config says of a NIC goes before (device_list.cc).
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

namespace ztcp::verbs {

// NCCL_IB_HCA: "mlx5" by its beginning, "=mlx5_0:1" exactly, "^mlx5_3" all others.
class HcaFilter {
 public:
  HcaFilter() = default;
  explicit HcaFilter(std::string_view text);

  bool fits(std::string_view device, int port) const;
  bool is_set() const { return !names_.empty(); }

 private:
  struct Name {
    std::string device;
    int port = -1;  // Any.
  };
  std::vector<Name> names_;
  bool is_exact_ = false;
  bool is_excluding_ = false;
};

struct NcclVariables {
  HcaFilter devices;
  std::string devices_text;
  bool is_disabled = false;          // NCCL_IB_DISABLE
  int gid_index = -1;                // NCCL_IB_GID_INDEX; -1: chosen.
  int timeout = 18;                  // NCCL_IB_TIMEOUT: 4.096 us times 2 to this, for each attempt.
  int retries = 7;                   // NCCL_IB_RETRY_CNT
  int traffic_class = -1;            // NCCL_IB_TC
  int service_level = 0;             // NCCL_IB_SL
  std::uint32_t queue_pairs = 1;     // NCCL_IB_QPS_PER_CONNECTION
  bool is_relaxed = true;            // NCCL_IB_PCI_RELAXED_ORDERING is not 0.
  std::uint16_t pkey_index = 0;      // NCCL_IB_PKEY
  bool merges = true;                // NCCL_IB_MERGE_NICS is not 0.
  bool is_flush_disabled = false;    // NCCL_GDR_FLUSH_DISABLE
  int adaptive_routing = -1;         // NCCL_IB_ADAPTIVE_ROUTING; -1: InfiniBand's networks have it.
  int adaptive_threshold = 8192;     // NCCL_IB_AR_THRESHOLD, in bytes.
  std::vector<std::string> ignored;  // "NCCL_IB_TIMEOUT=forty", which are no such numbers.
};

// `get` answers as getenv() does.
NcclVariables read_nccl_variables(const std::function<const char*(const char*)>& get);
NcclVariables read_nccl_variables();

}  // namespace ztcp::verbs
