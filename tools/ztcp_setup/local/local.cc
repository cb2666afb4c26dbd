// SPDX-License-Identifier: Apache-2.0
// Copyright the ztcp authors
#include "tools/ztcp_setup/local/local.h"

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <filesystem>
#include <optional>
#include <sys/stat.h>
#include <sys/un.h>
#include <system_error>
#include <unistd.h>

#include <fmt/format.h>

#include "config/file/load.h"
#include "config/machine/live_machine.h"
#include "config/mesh.h"
#include "config/schema.h"
#include "tools/common/atomic_file.h"
#include "transport/plan/device_plan.h"

namespace ztcp::setup {
namespace {

// ztcp_switch has a DPDK port for each rank.
constexpr unsigned kMaxRanks = ZTCP_DPDK_MAX_PORTS;
// 10.99.0.1, .2, ...: private addresses, visible only inside the shared memory.
constexpr Ipv4Address kFirstAddress{0x0a630001};
constexpr std::uint8_t kPrefixLength = 24;

std::size_t longest_socket(const config::Fabric& fabric, const std::filesystem::path& folder) {
  const auto length = [&](const std::string& socket) { return (folder / socket).string().size(); };
  std::size_t longest = 0;
  for (const config::Nic& nic : fabric.nics) {
    longest = std::max(longest, length(nic.memif_socket));
    for (const config::MeshPeer& peer : config::mesh_peers(fabric, nic))
      longest = std::max(longest, length(peer.sockets.back()));
  }
  return longest;
}

tl::unexpected<config::Problem> refuse(std::string where, std::string what, std::string mend) {
  return tl::unexpected(config::Problem{std::move(where), std::move(what), std::move(mend)});
}

// A user that can change the folder can redirect our writes, perhaps root's, and
// controls the files that jobs open by the config.
std::optional<config::Problem> why_not_our_folder(const std::string& folder) {
  const std::string mend = "choose a folder of its own with --dir, such as --dir ztcp-local";
  struct stat facts {};
  if (::stat(folder.c_str(), &facts) != 0)
    return config::Problem{folder, std::strerror(errno), mend};
  if (facts.st_uid != ::geteuid() && facts.st_uid != 0)
    return config::Problem{
        folder, fmt::format("belongs to user {}, this is user {}", facts.st_uid, ::geteuid()),
        mend};
  if ((facts.st_mode & S_IWOTH) != 0)
    return config::Problem{folder, "is writable by every user of this machine", mend};
  return std::nullopt;
}

// Another user's link on the way would redirect root's writes; the kernel refuses such links in
// /tmp only where fs.protected_symlinks = 1.
std::optional<config::Problem> find_foreign_link(const std::filesystem::path& path,
                                                 int links_left = 40) {
  std::filesystem::path walked;
  for (auto part = path.begin(); part != path.end(); ++part) {
    walked /= *part;
    struct stat facts {};
    if (::lstat(walked.c_str(), &facts) != 0 || !S_ISLNK(facts.st_mode)) continue;
    const std::string mend = "name the folder itself with --dir, or another one";
    if (facts.st_uid != ::geteuid() && facts.st_uid != 0)
      return config::Problem{
          walked.string(),
          fmt::format("is a symbolic link that belongs to user {}, this is user {}: not followed",
                      facts.st_uid, ::geteuid()),
          mend};
    if (links_left == 0) return config::Problem{walked.string(), std::strerror(ELOOP), mend};
    std::error_code error;
    std::filesystem::path target = std::filesystem::read_symlink(walked, error);
    if (error) return config::Problem{walked.string(), error.message(), mend};
    // Continue at the link's target, and then with the rest of the path.
    target = walked.parent_path() / target;
    for (++part; part != path.end(); ++part) target /= *part;
    return find_foreign_link(target, links_left - 1);
  }
  return std::nullopt;
}

unsigned max_queues() { return static_cast<unsigned>(config::find_key("nic", "queues")->max); }

unsigned choose_queues(const LocalRequest& request) {
  if (request.topology != LocalTopology::kMesh || request.ranks < 2) return 1;
  if (request.queues != 0) return request.queues;
  return static_cast<unsigned>(plan::mesh_lanes(request.cpus, request.ranks));
}

config::Nic make_nic(const LocalRequest& request, unsigned rank) {
  config::Nic nic;
  nic.name = fmt::format("ztcp{}", rank);
  nic.driver = config::NicDriver::kMemif;
  nic.address = Ipv4Prefix{{kFirstAddress.value + rank}, kPrefixLength};
  // 0x02: locally administered.
  nic.mac = {{0x02, 0x5a, 0x00, 0x00, 0x00, static_cast<std::uint8_t>(rank + 1)}};
  nic.mtu_bytes = static_cast<std::uint16_t>(request.mtu_bytes);
  const bool mesh = request.topology == LocalTopology::kMesh;
  nic.memif_role = !mesh               ? config::MemifRole::kClient
                   : request.ranks > 1 ? config::MemifRole::kMesh
                                       : config::MemifRole::kServer;  // Without a peer.
  // Relative, so that the folder can be moved or mounted elsewhere.
  nic.memif_socket = mesh ? "mesh" : fmt::format("port{}.sock", rank);
  nic.queues = choose_queues(request);
  return nic;
}

}  // namespace

Result<config::Fabric, config::Problem> plan_local(const LocalRequest& request) {
  if (request.ranks < 1 || request.ranks > kMaxRanks)
    return refuse("--local",
                  fmt::format("{} ranks, wanted 1..{}: ztcp_switch needs a port for each rank, and "
                              "DPDK has no more in one process",
                              request.ranks, kMaxRanks),
                  fmt::format("ztcp_setup --local {}", kMaxRanks));
  if (request.topology == LocalTopology::kMesh && request.ranks > LocalRequest::kMaxMeshRanks)
    return refuse(
        "--topology mesh",
        fmt::format("{} ranks, a mesh has at most {}", request.ranks, LocalRequest::kMaxMeshRanks),
        fmt::format("ztcp_setup --local {} --topology switch", request.ranks));
  if (request.queues != 0 && (request.topology != LocalTopology::kMesh || request.ranks < 2))
    return refuse("--queues", "only the NICs of a mesh have several queues",
                  "ztcp_setup --local 2 --queues 2");
  if (request.queues > max_queues())
    return refuse("--queues", fmt::format("{} queues, wanted 1..{}", request.queues, max_queues()),
                  fmt::format("ztcp_setup --local {} --queues {}", request.ranks, max_queues()));
  const config::Key* mtu = config::find_key("nic", "mtu_bytes");
  if (request.mtu_bytes < mtu->min || request.mtu_bytes > mtu->max)
    return refuse("--mtu",
                  fmt::format("{} is outside {}..{} bytes", request.mtu_bytes, mtu->min, mtu->max),
                  "ztcp_setup --local 4 --mtu 9000");
  std::error_code error;
  const auto folder = std::filesystem::absolute(request.folder, error).lexically_normal();
  if (request.folder.empty() || error)
    return refuse("--dir", fmt::format("\"{}\" is not a folder", request.folder),
                  "--dir ztcp-local");

  config::Fabric fabric;
  fabric.name = "local";
  fabric.path = (folder / "ztcp.conf").string();
  fabric.run_dir = "run";
  for (unsigned rank = 0; rank < request.ranks; ++rank)
    fabric.nics.push_back(make_nic(request, rank));

  if (const auto at = folder.string().find_first_of(config::kNotInMemifPath);
      at != std::string::npos)
    return refuse(
        "--dir",
        fmt::format("\"{}\" has {} in its path, which DPDK can't take for a socket",
                    folder.string(),
                    folder.string()[at] == ' ' ? "a blank" : "one of , = [ ] \" or a line end"),
        "choose a folder without them, such as --dir /tmp/ztcp-local");
  const std::size_t length = longest_socket(fabric, folder);
  if (length >= sizeof(sockaddr_un{}.sun_path))
    return refuse("--dir",
                  fmt::format("socket paths in {} have {} characters, the kernel takes {}",
                              folder.string(), length, sizeof(sockaddr_un{}.sun_path) - 1),
                  "choose a shorter folder, such as --dir /tmp/ztcp-local");
  return fabric;
}

Result<void, config::Problem> write_local(const config::Fabric& fabric) {
  const auto folder = std::filesystem::path(fabric.path).parent_path();
  if (auto problem = find_foreign_link(folder)) return tl::unexpected(std::move(*problem));
  config::LiveMachine machine;
  const config::LoadResult existing = config::load(machine, fabric.path);
  const bool absent = !existing.fabric && existing.failure == config::LoadFailure::kMissing;
  const bool local =
      existing.fabric &&
      std::all_of(existing.fabric->nics.begin(), existing.fabric->nics.end(),
                  [](const config::Nic& nic) { return nic.driver == config::NicDriver::kMemif; });
  if (!absent && !local)
    return refuse(fabric.path, "exists and is not a local fabric; not changed",
                  "choose another folder with --dir, or remove the file");

  std::error_code error;
  std::filesystem::create_directories(folder, error);
  if (auto problem = error ? std::nullopt : why_not_our_folder(folder.string()))
    return tl::unexpected(std::move(*problem));
  // Checked again: a user with access to a parent may have placed a link meanwhile. In a folder
  // that belongs to us now no other user can.
  if (auto problem = find_foreign_link(folder)) return tl::unexpected(std::move(*problem));
  if (!error) std::filesystem::create_directory(folder / fabric.run_dir, error);
  if (error)
    return refuse(folder.string(), fmt::format("can't be created: {}", error.message()),
                  "choose a folder you may write to with --dir");

  const std::string text = config::to_toml(fabric);
  if (const Status status = tools::write_atomically(fabric.path, text); !status)
    return refuse(
        fabric.path,
        fmt::format("{} failed: {}", status.error().where, std::strerror(status.error().sys_errno)),
        "choose a folder you may write to with --dir");
  // Read it back as the plugin will.
  const config::LoadResult read_back = config::load(machine, fabric.path);
  if (!read_back.fabric) return tl::unexpected(read_back.problems.front());
  return {};
}

}  // namespace ztcp::setup
