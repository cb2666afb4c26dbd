// SPDX-License-Identifier: Apache-2.0
// Copyright the ztcp authors
//
// A NIC in shared memory against the machine.
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include <fmt/format.h>

#include "config/check/checklist.h"
#include "config/file/fields.h"
#include "config/machine/machine.h"
#include "transport/core/shell_word.h"

namespace ztcp::config {
namespace {

// What is at the path of a socket and is none. A server would refuse to start, and rightly: it
// might be anybody's file.
bool is_no_socket(const std::string& path) {
  struct stat facts {};
  return ::lstat(path.c_str(), &facts) == 0 && !S_ISSOCK(facts.st_mode);
}

}  // namespace

// A path that can't be the address of a socket leaves nothing else to say.
Next check_memif_path(Checklist& list, const Nic& nic) {
  constexpr std::size_t kRoom = sizeof(sockaddr_un{}.sun_path);
  if (nic.memif_socket.size() < kRoom) return Next::kGoOn;
  list.fault("memif", nic.name,
             fmt::format("memif_socket {} has {} characters, the kernel takes {}", nic.memif_socket,
                         nic.memif_socket.size(), kRoom - 1),
             "move the fabric to a folder with a shorter path");
  return Next::kStop;
}

Next check_memif_socket(Checklist& list, const Nic& nic) {
  const auto slash = nic.memif_socket.rfind('/');
  const std::string folder = slash == std::string::npos ? "." : nic.memif_socket.substr(0, slash);
  const bool serves = nic.memif_role == MemifRole::kServer;
  if (!exists(folder)) {
    list.fault("memif", nic.name, fmt::format("folder {} of memif_socket does not exist", folder),
               fmt::format("mkdir -p {}", shell_word(folder)));
  } else if (!is_folder(folder)) {
    list.fault("memif", nic.name, fmt::format("{} of memif_socket is no folder", folder),
               fmt::format("correct memif_socket in {}", list.fabric.path));
  } else if (!may_access(folder, W_OK | X_OK)) {
    // DPDK wants that of clients, too.
    list.fault("memif", nic.name,
               fmt::format("user {} may not write to folder {}", ::geteuid(), folder),
               "run the job as the user whose folder it is, or write a fabric into a folder of "
               "this user's own: ztcp_setup --local N --dir FOLDER; in a container, mount it "
               "writable");
  } else if (is_no_socket(nic.memif_socket)) {
    list.fault("memif", nic.name,
               fmt::format("memif_socket {} is there and is no socket", nic.memif_socket),
               fmt::format("ls -ld {}; move it away, or correct memif_socket in {}",
                           shell_word(nic.memif_socket), list.fabric.path));
  } else if (!serves && exists(nic.memif_socket) && !may_access(nic.memif_socket, R_OK | W_OK)) {
    list.fault("memif", nic.name,
               fmt::format("user {} may not open {}", ::geteuid(), nic.memif_socket),
               "run ztcp_switch, or the NIC's other side, as the same user");
  } else {
    // A server that does not run yet is waited for; nothing is wrong with the machine.
    list.good("memif", nic.name, fmt::format("{} {}", name_of(nic.memif_role), nic.memif_socket));
  }
  return Next::kGoOn;
}

}  // namespace ztcp::config
