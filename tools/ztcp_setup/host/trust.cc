// SPDX-License-Identifier: Apache-2.0
// Copyright the ztcp authors
#include "tools/ztcp_setup/host/trust.h"

#include <cerrno>
#include <cstring>

#include <fmt/format.h>

#include "core/shell_word.h"
#include "tools/ztcp_setup/host/place_file.h"

namespace ztcp::setup {
namespace {

constexpr std::uint32_t kGroupWrites = 0020;
constexpr std::uint32_t kOthersWrite = 0002;
constexpr int kMaxLinks = 8;

std::optional<config::Problem> judge(const std::string& path, const FileFacts& facts) {
  const Ownership& who = facts.ownership;
  if (who.user != 0)
    return config::Problem{
        path, fmt::format("belongs to user {}, wanted root", who.user),
        fmt::format("check its content, then: sudo chown root: {}", shell_word(path))};
  if (facts.kind == FileKind::kLink) return std::nullopt;  // A link's mode has no meaning.
  if ((who.mode & kOthersWrite) != 0 || ((who.mode & kGroupWrites) != 0 && who.group != 0))
    return config::Problem{
        path, fmt::format("is writable by others (mode {:04o}), wanted by root only", who.mode),
        fmt::format("check its content, then: sudo chmod go-w {}", shell_word(path))};
  return std::nullopt;
}

std::optional<config::Problem> judge_folder(Host& host, const std::string& path, int links) {
  if (path != "/")
    if (auto problem = judge_folder(host, folder_of(path), links)) return problem;
  const FileFacts facts = host.facts(path);
  if (facts.kind == FileKind::kAbsent) return std::nullopt;
  if (auto problem = judge(path, facts)) return problem;
  if (facts.kind != FileKind::kLink) return std::nullopt;
  if (links == 0)
    return config::Problem{path, "is one of too many links on the path",
                           fmt::format("ls -l {}; remove the link", shell_word(path))};
  const std::string target = host.link_target(path).value_or("");
  return judge_folder(host, target.starts_with('/') ? target : folder_of(path) + "/" + target,
                      links - 1);
}

}  // namespace

std::optional<config::Problem> why_not_trusted(Host& host, const std::string& path) {
  if (auto problem = judge_folder(host, folder_of(path), kMaxLinks)) return problem;
  const FileFacts facts = host.facts(path);
  if (facts.kind == FileKind::kAbsent) return std::nullopt;
  if (facts.kind == FileKind::kLink)
    return config::Problem{path, "is a symbolic link, wanted a regular file",
                           fmt::format("ls -l {}; remove the link", shell_word(path))};
  return judge(path, facts);
}

config::Problem problem_of(Host& host, const std::string& path, const Error& error,
                           std::string mend) {
  if (error.code == Errc::kRefused)
    if (auto problem = why_not_trusted(host, path)) return *problem;
  if (error.code == Errc::kTimedOut)
    return {path, fmt::format("{}: no answer in time", error.where), std::move(mend)};
  return {path,
          fmt::format("{}: {}", error.where,
                      error.sys_errno != 0 ? std::strerror(error.sys_errno) : describe(error.code)),
          std::move(mend)};
}

config::Problem problem_of(Host& host, const std::string& path, const Error& error) {
  const std::string folder = shell_word(folder_of(path));
  const std::string file = shell_word(path);
  std::string mend = fmt::format("ls -ld {} {}; dmesg | tail", folder, file);
  if (error.sys_errno == ENOSPC || error.sys_errno == EDQUOT)
    mend = fmt::format("df -h {0}; df -i {0}; free some space there and run this again", folder);
  if (error.sys_errno == EROFS)
    mend = fmt::format("findmnt -T {0}; sudo mount -o remount,rw \"$(findmnt -nro TARGET -T {0})\"",
                       folder);
  if (error.sys_errno == EPERM || error.sys_errno == EACCES)
    mend = fmt::format("ls -ld {0} {1}; sudo lsattr -d {0} {1}; sudo chattr -i files with an i",
                       folder, file);
  return problem_of(host, path, error, std::move(mend));
}

}  // namespace ztcp::setup
