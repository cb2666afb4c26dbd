// SPDX-License-Identifier: Apache-2.0
// Copyright the ztcp authors
#include "tools/ztcp_setup/live/safe_path.h"

#include <algorithm>
#include <array>
#include <cerrno>
#include <climits>
#include <fcntl.h>
#include <sys/stat.h>

namespace ztcp::setup {
namespace {

constexpr int kMaxPathLinks = 8;

bool others_may_write(const struct stat& facts) {
  return (facts.st_mode & S_IWOTH) != 0 || ((facts.st_mode & S_IWGRP) != 0 && facts.st_gid != 0);
}

}  // namespace

SafePath::SafePath(std::string root) : root_(std::move(root)) {}

bool SafePath::trusted_user(std::uint32_t user) const { return user == 0 || user == ::geteuid(); }

Result<Descriptor> SafePath::walk(const std::string& path, int links_left) const {
  constexpr int kFolder = O_PATH | O_CLOEXEC | O_NOFOLLOW;
  Descriptor folder(::open(root_.c_str(), O_PATH | O_CLOEXEC | O_DIRECTORY));
  if (folder.get() < 0) return fail_errno("open");
  std::string walked;
  for (std::size_t begin = 0; begin < path.size();) {
    const auto slash = std::min(path.find('/', begin), path.size());
    const std::string name = path.substr(begin, slash - begin);
    begin = slash + 1;
    if (name.empty() || name == ".") continue;
    if (name == "..") {
      // Checked again from the top. The part walked so far contains no links.
      if (links_left == 0) return fail(Errc::kRefused, "open", ELOOP);
      const std::string up =
          walked.substr(0, walked.rfind('/') == std::string::npos ? 0 : walked.rfind('/'));
      return walk(up + "/" + (begin < path.size() ? path.substr(begin) : ""), links_left - 1);
    }
    Descriptor next(::openat(folder.get(), name.c_str(), kFolder));
    if (next.get() < 0) return fail_errno("open");
    struct stat facts {};
    if (::fstat(next.get(), &facts) != 0) return fail_errno("fstat");
    if (!trusted_user(facts.st_uid)) return fail(Errc::kRefused, "open", EPERM);
    if (S_ISLNK(facts.st_mode)) {
      if (links_left == 0) return fail(Errc::kRefused, "open", ELOOP);
      std::array<char, PATH_MAX> target{};
      const ssize_t length = ::readlinkat(next.get(), "", target.data(), target.size() - 1);
      if (length < 0) return fail_errno("readlink");
      std::string rest(target.data(), static_cast<std::size_t>(length));
      if (!rest.starts_with('/')) rest = walked + "/" + rest;
      if (begin < path.size()) rest += "/" + path.substr(begin);
      return walk(rest, links_left - 1);
    }
    if (!S_ISDIR(facts.st_mode)) return fail(Errc::kSystem, "open", ENOTDIR);
    if (others_may_write(facts)) return fail(Errc::kRefused, "open", EPERM);
    walked += "/" + name;
    folder = std::move(next);
  }
  return folder;
}

Result<FolderEntry> SafePath::find(const std::string& path) const {
  if (path.empty())
    return fail(Errc::kSystem, "open", ENOENT);  // An empty path is not the root folder.
  const auto slash = path.rfind('/');
  FolderEntry place;
  place.folder =
      ZTCP_TRY(walk(path.substr(0, slash == std::string::npos ? 0 : slash), kMaxPathLinks));
  place.name = slash == std::string::npos ? path : path.substr(slash + 1);
  if (place.name.empty()) place.name = ".";
  return place;
}

}  // namespace ztcp::setup
