// SPDX-License-Identifier: Apache-2.0
// Copyright the ztcp authors
//
// The socket file by which the two ends of a memif, or of a link of a mesh, find each other: its
// server makes and removes it. The name comes from a config or a command line, and a mistyped one
// may be that of any file: so only a socket of this user without a server is removed, and nothing
// else. The folder is opened once and used by its descriptor, so that nobody can redirect root's
// unlink() by replacing a folder by a link meanwhile.
#pragma once

#include <string>
#include <sys/socket.h>

#include "core/fd.h"
#include "core/result.h"

namespace ztcp::link {

// Held from the check of the old socket until the new one listens: between its bind() and its
// listen() another server's socket looks like one without a server.
struct SocketFolder {
  Fd fd;  // Locked, unless the folder can't be read or its lock was held for too long.
};

// Removes the socket that a killed server left at `path`. Any other file of that name is left alone
// and refused, with a warning that names it and the mending step.
Result<SocketFolder> make_way_for_server(const std::string& path);

// bind() and remove() for DPDK's driver, which removes by name: these remove only the very file
// that it made.
int bind_socket_file(int fd, const sockaddr* address, socklen_t size);
int remove_socket_file(const char* path);

}  // namespace ztcp::link
