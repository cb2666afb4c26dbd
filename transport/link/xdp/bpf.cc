// SPDX-License-Identifier: Apache-2.0
// Copyright the ztcp authors
#include "transport/link/xdp/bpf.h"

#include <array>
#include <cerrno>
#include <cstring>
#include <sys/syscall.h>
#include <unistd.h>

namespace ztcp::link::xdp {
namespace {

constexpr std::uint32_t kHasFrags = 1U << 5;  // BPF_F_XDP_HAS_FRAGS, Linux 5.18.

long bpf(bpf_cmd command, bpf_attr& attributes) {
  return ::syscall(SYS_bpf, command, &attributes, sizeof(attributes));
}
Result<Fd> bpf_fd(bpf_cmd command, bpf_attr& attributes, const char* what) {
  const long fd = bpf(command, attributes);
  if (fd < 0) return fail_errno(what);
  return Fd(static_cast<int>(fd));
}
std::uint64_t pointer(const void* address) {
  return static_cast<std::uint64_t>(reinterpret_cast<std::uintptr_t>(address));
}

Result<Fd> load(std::span<const bpf_insn> code, std::uint32_t flags) {
  // Only a program under a licence that is compatible with the GPL may call some helpers; ours
  // calls none of these.
  static constexpr char kLicence[] = "Apache-2.0";
  bpf_attr attributes{};
  attributes.prog_type = BPF_PROG_TYPE_XDP;
  attributes.expected_attach_type = BPF_XDP;
  attributes.insn_cnt = static_cast<std::uint32_t>(code.size());
  attributes.insns = pointer(code.data());
  attributes.license = pointer(kLicence);
  attributes.prog_flags = flags;
  std::strcpy(attributes.prog_name, kProgramName);
  return bpf_fd(BPF_PROG_LOAD, attributes, "bpf (load program)");
}

}  // namespace

Result<Fd> make_socket_map(std::uint32_t queues) {
  bpf_attr attributes{};
  attributes.map_type = BPF_MAP_TYPE_XSKMAP;
  attributes.key_size = sizeof(std::uint32_t);
  attributes.value_size = sizeof(std::uint32_t);
  attributes.max_entries = queues;
  std::strcpy(attributes.map_name, kProgramName);
  return bpf_fd(BPF_MAP_CREATE, attributes, "bpf (make map)");
}

Status put_socket(const Fd& map, std::uint32_t queue, const Fd& socket) {
  const int fd = socket.get();
  bpf_attr attributes{};
  attributes.map_fd = static_cast<std::uint32_t>(map.get());
  attributes.key = pointer(&queue);
  attributes.value = pointer(&fd);
  attributes.flags = BPF_ANY;
  if (bpf(BPF_MAP_UPDATE_ELEM, attributes) != 0) return fail_errno("bpf (put socket into map)");
  return {};
}

Result<Fd> make_value_map(std::uint32_t value_bytes) {
  bpf_attr attributes{};
  attributes.map_type = BPF_MAP_TYPE_ARRAY;
  attributes.key_size = sizeof(std::uint32_t);
  attributes.value_size = value_bytes;
  attributes.max_entries = 1;
  std::strcpy(attributes.map_name, kProgramName);
  return bpf_fd(BPF_MAP_CREATE, attributes, "bpf (make map)");
}

Status put_value(const Fd& map, std::span<const std::byte> value) {
  const std::uint32_t key = 0;
  bpf_attr attributes{};
  attributes.map_fd = static_cast<std::uint32_t>(map.get());
  attributes.key = pointer(&key);
  attributes.value = pointer(value.data());
  if (bpf(BPF_MAP_UPDATE_ELEM, attributes) != 0) return fail_errno("bpf (write map)");
  return {};
}

Status get_value(const Fd& map, std::span<std::byte> value) {
  const std::uint32_t key = 0;
  bpf_map_info info{};
  bpf_attr asked{};
  asked.info.bpf_fd = static_cast<std::uint32_t>(map.get());
  asked.info.info_len = sizeof(info);
  asked.info.info = pointer(&info);
  if (bpf(BPF_OBJ_GET_INFO_BY_FD, asked) != 0) return fail_errno("bpf (describe map)");
  if (info.value_size != value.size()) return fail(Errc::kProtocol, "bpf (describe map)", EBADMSG);
  bpf_attr attributes{};
  attributes.map_fd = static_cast<std::uint32_t>(map.get());
  attributes.key = pointer(&key);
  attributes.value = pointer(value.data());
  if (bpf(BPF_MAP_LOOKUP_ELEM, attributes) != 0) return fail_errno("bpf (read map)");
  return {};
}

Result<Fd> load_program(std::span<const bpf_insn> code) {
  Result<Fd> loaded = load(code, kHasFrags);
  if (loaded || loaded.error().sys_errno != EINVAL) return loaded;
  return load(code, 0);
}

Result<Fd> attach_program(const Fd& program, unsigned interface_index, std::uint32_t mode) {
  bpf_attr attributes{};
  attributes.link_create.prog_fd = static_cast<std::uint32_t>(program.get());
  attributes.link_create.target_ifindex = interface_index;
  attributes.link_create.attach_type = BPF_XDP;
  attributes.link_create.flags = mode;
  return bpf_fd(BPF_LINK_CREATE, attributes, "bpf (attach program)");
}

Status detach_link(const Fd& link) {
  bpf_attr attributes{};
  attributes.link_detach.link_fd = static_cast<std::uint32_t>(link.get());
  if (bpf(BPF_LINK_DETACH, attributes) != 0) return fail_errno("bpf (detach program)");
  return {};
}

Result<ProgramFacts> describe_program(const Fd& program) {
  bpf_prog_info info{};
  bpf_attr attributes{};
  attributes.info.bpf_fd = static_cast<std::uint32_t>(program.get());
  attributes.info.info_len = sizeof(info);
  attributes.info.info = pointer(&info);
  if (bpf(BPF_OBJ_GET_INFO_BY_FD, attributes) != 0) return fail_errno("bpf (describe program)");
  return ProgramFacts{info.id, std::string(info.name, ::strnlen(info.name, sizeof(info.name)))};
}

Result<ProgramFacts> describe_program(std::uint32_t id) {
  bpf_attr attributes{};
  attributes.prog_id = id;
  const Fd program = ZTCP_TRY(bpf_fd(BPF_PROG_GET_FD_BY_ID, attributes, "bpf (open program)"));
  return describe_program(program);
}

Result<std::uint32_t> run_program(const Fd& program, std::span<const std::byte> frame) {
  std::array<std::byte, 2048> out;
  bpf_attr attributes{};
  attributes.test.prog_fd = static_cast<std::uint32_t>(program.get());
  attributes.test.data_in = pointer(frame.data());
  attributes.test.data_size_in = static_cast<std::uint32_t>(frame.size());
  attributes.test.data_out = pointer(out.data());
  attributes.test.data_size_out = out.size();
  attributes.test.repeat = 1;
  if (bpf(BPF_PROG_TEST_RUN, attributes) != 0) return fail_errno("bpf (run program)");
  return attributes.test.retval;
}

Status pin(const Fd& object, const std::string& path) {
  bpf_attr attributes{};
  attributes.bpf_fd = static_cast<std::uint32_t>(object.get());
  attributes.pathname = pointer(path.c_str());
  if (bpf(BPF_OBJ_PIN, attributes) != 0) return fail_errno("bpf (pin)");
  return {};
}

Result<Fd> open_pinned(const std::string& path, Access access) {
  bpf_attr attributes{};
  attributes.pathname = pointer(path.c_str());
  attributes.file_flags = access == Access::kRead ? std::uint32_t{BPF_F_RDONLY} : 0U;
  return bpf_fd(BPF_OBJ_GET, attributes, "bpf (open pinned object)");
}

}  // namespace ztcp::link::xdp
