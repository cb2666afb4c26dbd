// SPDX-License-Identifier: Apache-2.0
// Copyright the ztcp authors
//
// The socket file by which the two ends of a memif, or of a link of a mesh, find each other: its
// server makes it and takes it away again. The name comes from a config or a command line, and a
// typing error may make it that of anything: what is removed is a socket of this user that nobody
// serves, and nothing else. The folder is opened once and everything done by
// its descriptor, so that nobody can lead a root's unlink() elsewhere by swapping a folder for a
// link meanwhile.
#pragma once

#include <string>
#include <sys/socket.h>

#include "transport/core/result.h"
#include "transport/link/fd.h"

namespace ztcp::link {

// Held from before the old socket is looked at until the new one listens: between its bind() and
// its listen() another server's socket looks like one that nobody serves.
struct SocketFolder {
  Fd fd;  // Locked, unless the folder can't be read or somebody held its lock for too long.
};

// Removes what a killed server left at `path`. Everything else of that name is left alone and
// refused, with a warning that names it and what mends it.
Result<SocketFolder> make_way_for_server(const std::string& path);

// bind() and remove() for DPDK's driver, which removes by name what it bound: with these only the
// very file that it made.
int bind_socket_file(int fd, const sockaddr* address, socklen_t size);
int remove_socket_file(const char* path);

}  // namespace ztcp::link
