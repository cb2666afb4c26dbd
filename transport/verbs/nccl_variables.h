// SPDX-License-Identifier: Apache-2.0
// Copyright the ztcp authors
//
// NCCL's own variables for RDMA, so that job scripts written for NCCL's own network also work here.
// Each variable that NCCL reads is in one of two tables (nccl_variables.cc): either it is honoured,
// or a job that sets it to another value than the behaviour here gets a warning with its name.
// docs/nccl-variables.md describes all of them. Keys of the config take precedence
// (device_settings.cc).
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "core/gid.h"

namespace ztcp::verbs {

// NCCL_IB_HCA: "mlx5" by its beginning, "=mlx5_0:1" exactly, "^mlx5_3" all others; behind a port
// the rail and the plane, "=mlx5_0:1:0:2".
class HcaFilter {
 public:
  struct Name {
    std::string device;
    int port = -1;   // Any.
    int rail = -1;   // Not told.
    int plane = -1;  // Likewise.
  };

  HcaFilter() = default;
  explicit HcaFilter(std::string_view text);

  bool fits(std::string_view device, int port) const;
  // Whether any of the device's ports may fit.
  bool fits(std::string_view device) const;
  // The first that names it; null: none does.
  const Name* find(std::string_view device, int port) const;
  bool is_set() const { return !names_.empty(); }

 private:
  bool means(const Name& name, std::string_view device) const {
    return is_exact_ ? device == name.device : device.starts_with(name.device);
  }

  std::vector<Name> names_;
  bool is_exact_ = false;
  bool is_excluding_ = false;
};

struct NcclVariables {
  HcaFilter devices;
  std::string devices_text;
  std::string library;             // NCCL_IBVERBS_LIB; empty: libibverbs.so.1.
  bool is_disabled = false;        // NCCL_IB_DISABLE
  bool is_pci_ordered = true;      // NCCL_IB_DEVICE_PCI_ORDER
  bool asks_port_speed = true;     // NCCL_IB_QUERY_PORT_SPEED
  int gid_index = -1;              // NCCL_IB_GID_INDEX, of RoCE; -1: chosen.
  GidWish gid_wish;                // NCCL_IB_ADDR_FAMILY, _ADDR_RANGE, _ROCE_VERSION_NUM; of
                                   // InfiniBand NCCL_IB_ROUTABLE_FLID_GID_INDEX.
  std::string gid_wished_by;       // "NCCL_IB_ADDR_FAMILY=AF_INET6"
  int timeout = 20;                // NCCL_IB_TIMEOUT: 4.096 us times 2 to this, for each attempt.
  int retries = 7;                 // NCCL_IB_RETRY_CNT
  int traffic_class = -1;          // NCCL_IB_TC
  int slot_traffic_class = -1;     // NCCL_IB_FIFO_TC, of RoCE.
  int service_level = -1;          // NCCL_IB_SL
  std::uint32_t queue_pairs = 1;   // NCCL_IB_QPS_PER_CONNECTION
  bool is_split = false;           // NCCL_IB_SPLIT_DATA_ON_QPS
  bool is_relaxed = true;          // NCCL_IB_PCI_RELAXED_ORDERING is not 0.
  bool has_ece = true;             // NCCL_IB_ECE_ENABLE
  std::uint16_t pkey_index = 0;    // NCCL_IB_PKEY
  bool merges = true;              // NCCL_IB_MERGE_NICS is not 0.
  bool is_flush_disabled = false;  // NCCL_GDR_FLUSH_DISABLE
  int adaptive_routing = -1;       // NCCL_IB_ADAPTIVE_ROUTING; -1: InfiniBand's networks have it.
  int adaptive_threshold = 8192;   // NCCL_IB_AR_THRESHOLD, in bytes.

  // Variables with an invalid value: "NCCL_IB_TIMEOUT=forty".
  std::vector<std::string> ignored;
  // Variables without effect here, with our behaviour: "NCCL_IB_OOO_RQ=1: receives are ...".
  std::vector<std::string> unheeded;
};

// `get` answers as getenv() does.
NcclVariables read_nccl_variables(const std::function<const char*(const char*)>& get);
NcclVariables read_nccl_variables();
// The names of all variables that are read.
std::vector<std::string> nccl_variable_names();

}  // namespace ztcp::verbs
