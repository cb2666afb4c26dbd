// SPDX-License-Identifier: Apache-2.0
// Copyright the ztcp authors
//
// The calls of bpf(2) that an AF_XDP link needs, without libbpf: it would be one more library that
// the plugin needs at run time.
#pragma once

#include <cstdint>
#include <linux/bpf.h>
#include <optional>
#include <span>
#include <string>

#include "core/fd.h"
#include "core/result.h"

namespace ztcp::link::xdp {

// The name of each program and map.
inline constexpr const char* kProgramName = "ztcp_xdp";

// A map from queues to AF_XDP sockets.
Result<Fd> make_socket_map(std::uint32_t queues);
Status put_socket(const Fd& map, std::uint32_t queue, const Fd& socket);

// A map with one value, which is readable for every process that may open the map.
Result<Fd> make_value_map(std::uint32_t value_bytes);
Status put_value(const Fd& map, std::span<const std::byte> value);
Status get_value(const Fd& map, std::span<std::byte> value);

// Loads with support for frames in several pieces where the kernel (5.18 and later) has it.
Result<Fd> load_program(std::span<const bpf_insn> code);
// Attaches for as long as the returned descriptor is open or pinned. `mode`: XDP_FLAGS_DRV_MODE or
// XDP_FLAGS_SKB_MODE.
Result<Fd> attach_program(const Fd& program, unsigned interface_index, std::uint32_t mode);

// Takes the program off at once, although the link is still open or pinned.
Status detach_link(const Fd& link);

struct ProgramFacts {
  std::uint32_t id = 0;
  std::string name;  // Up to 15 characters.
};
Result<ProgramFacts> describe_program(const Fd& program);
// Needs CAP_SYS_ADMIN, or CAP_BPF.
Result<ProgramFacts> describe_program(std::uint32_t id);

// Runs the program on a frame of queue 0, and returns its verdict. For tests.
Result<std::uint32_t> run_program(const Fd& program, std::span<const std::byte> frame);

// Pinned objects outlive their processes. A path is in a file system of type bpf.
Status pin(const Fd& object, const std::string& path);
enum class Access : std::uint8_t { kRead, kReadAndWrite };
Result<Fd> open_pinned(const std::string& path, Access access);

}  // namespace ztcp::link::xdp
