// SPDX-License-Identifier: Apache-2.0
// Copyright the ztcp authors
#include "transport/link/xdp/attachment.h"

#include <array>
#include <cerrno>
#include <cstring>
#include <linux/if_link.h>
#include <unistd.h>
#include <utility>

#include <fmt/format.h>

#include "core/log.h"
#include "transport/link/xdp/bpf.h"

namespace ztcp::link::xdp {
namespace {

// Files of a pinned program. The link is what holds it on the interface.
constexpr const char* kSockets = "/sockets";
constexpr const char* kProgram = "/program";
constexpr const char* kLink = "/link";
constexpr const char* kSteering = "/steering";

tl::unexpected<Error> tell_failure(const InterfaceFacts& interface, const Error& error) {
  const char* advice = "see dmesg, and whether the kernel was built with CONFIG_XDP_SOCKETS";
  if (error.sys_errno == EPERM || error.sys_errno == EACCES)
    advice =
        "a process that attaches the XDP program itself needs CAP_BPF, CAP_NET_ADMIN and "
        "CAP_NET_RAW";
  else if (error.sys_errno == EBUSY || error.sys_errno == EEXIST)
    advice = "another XDP program came onto it: remove that one";
  log::warn("xdp {}: {} failed: {}; {}", interface.name, error.where,
            std::strerror(error.sys_errno), advice);
  return tl::unexpected(error);
}

std::string text_of(const Steering& steering) {
  const std::string more = steering.processes == 1
                               ? std::string()
                               : fmt::format("-{}", steering.listen_port + steering.processes - 1);
  return fmt::format("{} port {}{} and {}-{}", to_string(steering.address), steering.listen_port,
                     more, steering.first_port, steering.last_port);
}

// The form in which a steering is pinned.
struct StoredSteering {
  std::uint64_t high = 0;
  std::uint64_t low = 0;
  std::uint16_t listen_port = 0;
  std::uint16_t first_port = 0;
  std::uint16_t last_port = 0;
  std::uint16_t processes = 1;
  friend bool operator==(const StoredSteering&, const StoredSteering&) = default;
};
StoredSteering stored(const Steering& steering) {
  return {steering.address.high, steering.address.low, steering.listen_port,
          steering.first_port,   steering.last_port,   steering.processes};
}
Steering restored(const StoredSteering& from) {
  return {{from.high, from.low}, from.listen_port, from.first_port, from.last_port, from.processes};
}

}  // namespace

Result<Attachment> attach(const InterfaceFacts& interface, const Steering& steering,
                          bool may_be_native) {
  if (interface.program_id != 0) {
    log::warn(
        "xdp {}: the XDP program {} is on this interface already; remove it (ip link set {} xdp "
        "off, or end the process that attached it), or choose another interface",
        interface.name, describe_other(interface.program_id), interface.name);
    return fail(Errc::kBusy, "attach XDP program", EBUSY);
  }
  Attachment out;
  const auto try_to = [&]() -> Status {
    out.map = ZTCP_TRY(make_socket_map(kMostQueues));
    out.program = ZTCP_TRY(load_program(assemble(steering, out.map.get())));
    out.program_id = ZTCP_TRY(describe_program(out.program)).id;
    Result<Fd> link = may_be_native
                          ? attach_program(out.program, interface.index, XDP_FLAGS_DRV_MODE)
                          : fail(Errc::kSystem, "not wanted", ECANCELED);
    out.is_native = link.has_value();
    if (!link) {
      out.native_errno = link.error().sys_errno;
      link = attach_program(out.program, interface.index, XDP_FLAGS_SKB_MODE);
    }
    out.link = ZTCP_TRY(std::move(link));
    return {};
  };
  if (const Status done = try_to(); !done) return tell_failure(interface, done.error());
  return out;
}

Status attach_and_pin(const InterfaceFacts& interface, const Steering& steering,
                      const std::string& folder) {
  const Attachment attachment = ZTCP_TRY(attach(interface, steering, /*may_be_native=*/true));
  const auto try_to = [&]() -> Status {
    const StoredSteering value = stored(steering);
    const Fd map = ZTCP_TRY(make_value_map(sizeof(value)));
    ZTCP_CHECK(put_value(map, std::as_bytes(std::span(&value, 1))));
    ZTCP_CHECK(pin(map, folder + kSteering));
    ZTCP_CHECK(pin(attachment.map, folder + kSockets));
    ZTCP_CHECK(pin(attachment.program, folder + kProgram));
    return pin(attachment.link, folder + kLink);
  };
  const Status done = try_to();
  if (done) return {};
  static_cast<void>(remove_pinned(folder));
  return tell_failure(interface, done.error());
}

Status remove_pinned(const std::string& folder) {
  // Without the file the kernel takes the program off as well, but a little later. Fails where the
  // interface is gone.
  if (const auto link = open_pinned(folder + kLink, Access::kReadAndWrite))
    static_cast<void>(detach_link(*link));
  for (const char* file : {kLink, kProgram, kSockets, kSteering})
    if (::unlink((folder + file).c_str()) != 0 && errno != ENOENT) return fail_errno("unlink");
  return {};
}

bool is_pinned(const std::string& folder) { return ::access((folder + kLink).c_str(), F_OK) == 0; }

std::string describe_other(std::uint32_t id) {
  const auto facts = describe_program(id);
  return facts && !facts->name.empty() ? fmt::format("{} (id {})", facts->name, id)
                                       : fmt::format("id {}", id);
}

bool is_program_of_ztcp(std::uint32_t id) {
  const auto facts = describe_program(id);
  return facts && facts->name == kProgramName;
}

Result<PinnedProgram> read_pinned(const std::string& folder) {
  StoredSteering value;
  const Fd map = ZTCP_TRY(open_pinned(folder + kSteering, Access::kRead));
  ZTCP_CHECK(get_value(map, std::as_writable_bytes(std::span(&value, 1))));
  const Fd program = ZTCP_TRY(open_pinned(folder + kProgram, Access::kRead));
  return PinnedProgram{restored(value), ZTCP_TRY(describe_program(program)).id};
}

Result<Attachment> open_pinned_program(const InterfaceFacts& interface, const Steering& steering,
                                       const std::string& folder) {
  Attachment out;
  PinnedProgram pinned;
  const auto try_to = [&]() -> Status {
    pinned = ZTCP_TRY(read_pinned(folder));
    out.program_id = pinned.program_id;
    out.map = ZTCP_TRY(open_pinned(folder + kSockets, Access::kReadAndWrite));
    return {};
  };
  if (const Status done = try_to(); !done) {
    const bool is_refused = done.error().sys_errno == EACCES || done.error().sys_errno == EPERM;
    log::warn("xdp {}: {} failed in {}: {}; {}", interface.name, done.error().where, folder,
              std::strerror(done.error().sys_errno),
              is_refused ? "this user needs access to its files, and before Linux 6.0 CAP_BPF"
                         : "run ztcp_setup");
    return tl::unexpected(done.error());
  }
  if (pinned.steering != steering) {
    log::warn("xdp {}: the program of {} steers {}, the config wants {}; run ztcp_setup",
              interface.name, folder, text_of(pinned.steering), text_of(steering));
    return fail(Errc::kBadConfig, "XDP program");
  }
  if (interface.program_id != out.program_id) {
    log::warn("xdp {}: the program of {} is not on this interface; run ztcp_setup", interface.name,
              folder);
    return fail(Errc::kBadConfig, "XDP program");
  }
  out.is_native = interface.has_native_program;
  return out;
}

}  // namespace ztcp::link::xdp
