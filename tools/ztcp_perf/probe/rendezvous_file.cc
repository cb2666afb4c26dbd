// SPDX-License-Identifier: Apache-2.0
// Copyright the ztcp authors
#include "tools/ztcp_perf/probe/rendezvous_file.h"

#include <array>
#include <cerrno>
#include <cstring>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>
#include <utility>

#include "tools/common/write_all.h"
#include "tools/ztcp_perf/failure.h"
#include "tools/ztcp_perf/probe/messages.h"

namespace ztcp::perf::probe {

RendezvousFile::RendezvousFile(std::string path, const Place& place) : path_(std::move(path)) {
  const std::string temporary = fmt::format("{}.{}", path_, getpid());
  const int fd =
      open(temporary.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, 0600);
  const std::string line =
      to_line({{"host", place.host}, {"port", place.port}, {"secret", place.secret}});
  const bool is_written = fd >= 0 && tools::write_all(fd, line).has_value();
  if (fd >= 0) close(fd);
  if (!is_written || rename(temporary.c_str(), path_.c_str()) != 0) {
    const int error = errno;
    unlink(temporary.c_str());
    fail("--rendezvous-file {}: {}", path_, std::strerror(error));
  }
}

RendezvousFile::~RendezvousFile() { unlink(path_.c_str()); }

std::optional<Place> read_rendezvous_file(const std::string& path) {
  const int fd = open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK);
  if (fd < 0) return std::nullopt;
  struct stat facts {};
  std::array<char, 4096> text{};
  const bool is_known = fstat(fd, &facts) == 0;
  const ssize_t size = read(fd, text.data(), text.size());
  close(fd);
  if (is_known && (facts.st_uid != geteuid() || (facts.st_mode & 077U) != 0))
    fail("--rendezvous-file {}: others may use it; it must be this user's, with mode 0600", path);
  if (size <= 0) return std::nullopt;
  const auto json = parse_line({text.data(), static_cast<std::size_t>(size)});
  if (!json) return std::nullopt;
  Place place{text_in(*json, "host").value_or(""),
              static_cast<std::uint16_t>(whole_number_in(*json, "port")),
              text_in(*json, "secret").value_or("")};
  if (place.host.empty() || place.port == 0) return std::nullopt;
  return place;
}

}  // namespace ztcp::perf::probe
