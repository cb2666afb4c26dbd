// SPDX-License-Identifier: Apache-2.0
// Copyright the ztcp authors
//
// RDMA devices of the kinds found in practice, with the differences that a program can see
// (rdma-core's providers and the kernel's drivers): whole connections are tried over each.
#pragma once

#include <cerrno>
#include <cstdint>
#include <ostream>
#include <string>

#include <gtest/gtest.h>

#include "tests/unit/verbs/fake_host.h"

namespace ztcp::verbs {

enum class Profile : std::uint8_t {
  kMlx5,
  kMlx5InfiniBand,
  kBnxt,
  kIrdma,
  kIrdmaIwarp,
  kErdma,
  kHns,
  kEfa,
};

inline const char* name_of(Profile profile) {
  switch (profile) {
    case Profile::kMlx5:
      return "Mlx5";
    case Profile::kMlx5InfiniBand:
      return "Mlx5InfiniBand";
    case Profile::kBnxt:
      return "Bnxt";
    case Profile::kIrdma:
      return "Irdma";
    case Profile::kIrdmaIwarp:
      return "IrdmaIwarp";
    case Profile::kErdma:
      return "Erdma";
    case Profile::kHns:
      return "Hns";
    case Profile::kEfa:
      return "Efa";
  }
  return "";
}
inline void PrintTo(Profile profile, std::ostream* out) { *out << name_of(profile); }
inline std::string name_of_row(const testing::TestParamInfo<Profile>& row) {
  return name_of(row.param);
}

inline test::FakeDeviceSpec device_of(Profile profile, const std::string& name, unsigned host) {
  const bool is_iwarp = profile == Profile::kIrdmaIwarp || profile == Profile::kErdma;
  test::FakeDeviceSpec out = is_iwarp ? iwarp_device(name, host) : roce_device(name, host);
  test::FakePort& port = out.ports[0];
  switch (profile) {
    case Profile::kMlx5InfiniBand:
      port.link_layer = IBV_LINK_LAYER_INFINIBAND;
      port.lid = static_cast<std::uint16_t>(host);
      port.gids = {gid_of(0xfe80'0000'0000'0000, host)};
      [[fallthrough]];
    case Profile::kMlx5:
      out.ece_vendor = 0x15b3;
      out.ece_options = 0x30;
      out.max_inline = 512;
      out.scatters_lines = true;
      break;
    case Profile::kBnxt:
      out.max_inline = 96;
      out.max_sge = 6;
      out.max_reads = 126;
      out.scatters_lines = true;
      out.tells_of_pairs = true;
      break;
    case Profile::kIrdma:
      // RoCE version 2 alone.
      port.gids = {port.gids[1], port.gids[3]};
      port.gid_types = {"RoCE v2", "RoCE v2"};
      [[fallthrough]];
    case Profile::kIrdmaIwarp:
      out.max_inline = 101;
      out.max_sge = 13;
      out.max_reads = 127;
      out.max_mr_bytes = std::uint64_t{1} << 47;
      out.scatters_lines = true;
      out.tells_of_pairs = true;
      break;
    case Profile::kErdma:
      out.max_inline = 96;
      out.max_sge = 4;
      out.max_mr_bytes = std::uint64_t{64} << 30;
      out.refuses_after_failure = true;
      break;
    case Profile::kHns:
      // A slot of 64 bytes goes from memory.
      out.max_inline = 32;
      out.max_reads = 128;
      out.knows_dmabuf = false;
      out.has_peer_memory = false;
      out.tells_of_pairs = true;
      break;
    case Profile::kEfa:
      // Datagrams alone, reliable ones (SRD) and others.
      out.transport = IBV_TRANSPORT_UNSPECIFIED;
      port.link_layer = IBV_LINK_LAYER_UNSPECIFIED;
      out.max_inline = 32;
      out.max_sge = 2;
      out.max_reads = 0;
      out.has_rc = false;
      break;
  }
  return out;
}

// Those that have reliable connections.
inline auto all_profiles() {
  return testing::Values(Profile::kMlx5, Profile::kMlx5InfiniBand, Profile::kBnxt, Profile::kIrdma,
                         Profile::kIrdmaIwarp, Profile::kErdma, Profile::kHns);
}
// Those of them that may be merged.
inline auto mergeable_profiles() {
  return testing::Values(Profile::kMlx5, Profile::kMlx5InfiniBand, Profile::kBnxt, Profile::kIrdma,
                         Profile::kHns);
}
// Those that reach GPU memory.
inline auto gpu_profiles() {
  return testing::Values(Profile::kMlx5, Profile::kMlx5InfiniBand, Profile::kBnxt, Profile::kIrdma,
                         Profile::kIrdmaIwarp, Profile::kErdma);
}

}  // namespace ztcp::verbs
