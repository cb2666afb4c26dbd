// SPDX-License-Identifier: Apache-2.0
// Copyright the ztcp authors
//
// Checks a NIC in shared memory.
#include <algorithm>
#include <string>
#include <sys/un.h>
#include <unistd.h>
#include <vector>

#include <fmt/format.h>

#include "config/check/checklist.h"
#include "config/file/fields.h"
#include "config/machine/readings.h"
#include "config/mesh.h"
#include "core/shell_word.h"

namespace ztcp::config {
namespace {

// True for a file at the socket's path that is not a socket. A server refuses to start then: the
// file may belong to someone else.
bool is_no_socket(Machine& machine, const std::string& path) {
  const FileKind kind = machine.facts(path).kind;
  return kind != FileKind::kAbsent && kind != FileKind::kSocket;
}

// A Unix socket that a NIC creates or connects to.
struct Meeting {
  std::string path;
  bool serves = false;
};

std::vector<Meeting> meetings_of(const Checklist& list, const Nic& nic) {
  if (nic.memif_role != MemifRole::kMesh)
    return {{nic.memif_socket, nic.memif_role == MemifRole::kServer}};
  std::vector<Meeting> meetings;
  for (const MeshPeer& peer : mesh_peers(list.fabric, nic))
    for (const std::string& socket : peer.sockets) meetings.push_back({socket, peer.serves});
  return meetings;
}

// Reports faults; returns false if there was one.
bool check_meeting(Checklist& list, const Nic& nic, const Meeting& meeting) {
  if (is_no_socket(list.machine, meeting.path)) {
    list.fault("memif", nic.name,
               fmt::format("memif_socket {} exists and is not a socket", meeting.path),
               fmt::format("ls -ld {}; move it away, or correct memif_socket in {}",
                           shell_word(meeting.path), list.fabric.path));
    return false;
  }
  if (!meeting.serves && exists(list.machine, meeting.path) &&
      !list.machine.may_access(meeting.path, R_OK | W_OK)) {
    list.fault("memif", nic.name, fmt::format("user {} may not open {}", ::geteuid(), meeting.path),
               fmt::format("run {}the NIC's other side, as the same user",
                           nic.memif_role == MemifRole::kMesh ? "" : "ztcp_switch, or "));
    return false;
  }
  return true;
}

}  // namespace

// Stops if the path cannot be the address of a socket: other faults would follow from this one.
Next check_memif_path(Checklist& list, const Nic& nic) {
  constexpr std::size_t kRoom = sizeof(sockaddr_un{}.sun_path);
  for (const Meeting& meeting : meetings_of(list, nic)) {
    if (meeting.path.size() < kRoom) continue;
    list.fault("memif", nic.name,
               fmt::format("memif_socket {} has {} characters, the kernel takes {}", meeting.path,
                           meeting.path.size(), kRoom - 1),
               "move the fabric to a folder with a shorter path");
    return Next::kStop;
  }
  return Next::kGoOn;
}

Next check_memif_socket(Checklist& list, const Nic& nic) {
  const auto slash = nic.memif_socket.rfind('/');
  const std::string folder = slash == std::string::npos ? "." : nic.memif_socket.substr(0, slash);
  if (!exists(list.machine, folder)) {
    list.fault("memif", nic.name, fmt::format("folder {} of memif_socket does not exist", folder),
               fmt::format("mkdir -p {}", shell_word(folder)));
  } else if (!is_folder(list.machine, folder)) {
    list.fault("memif", nic.name, fmt::format("{} of memif_socket is not a folder", folder),
               fmt::format("correct memif_socket in {}", list.fabric.path));
  } else if (!list.machine.may_access(folder, W_OK | X_OK)) {
    // DPDK requires this of clients, too.
    list.fault("memif", nic.name,
               fmt::format("user {} may not write to folder {}", ::geteuid(), folder),
               "run the job as the folder's owner, or write a fabric into a folder of "
               "this user's own: ztcp_setup --local N --dir FOLDER; in a container, mount it "
               "writable");
  } else {
    const std::vector<Meeting> meetings = meetings_of(list, nic);
    const bool good = std::all_of(meetings.begin(), meetings.end(), [&](const Meeting& meeting) {
      return check_meeting(list, nic, meeting);
    });
    // NICs wait for a server that does not run yet, so its absence is not a fault.
    if (good)
      list.good(
          "memif", nic.name,
          nic.memif_role == MemifRole::kMesh
              ? fmt::format("mesh {}, {} peers", nic.memif_socket, meetings.size() / nic.queues)
              : fmt::format("{} {}", name_of(nic.memif_role), nic.memif_socket));
  }
  return Next::kGoOn;
}

}  // namespace ztcp::config
