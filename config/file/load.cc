// SPDX-License-Identifier: Apache-2.0
// Copyright the ztcp authors
#include "config/file/load.h"

#include <cerrno>
#include <cstring>
#include <utility>

#include <fmt/format.h>

#include "config/file/parse_state.h"
#include "config/machine/machine.h"
#include "core/shell_word.h"

namespace ztcp::config {
namespace {

const char* word_for(FileKind kind) {
  if (kind == FileKind::kFolder) return "a folder";
  if (kind == FileKind::kPipe) return "a pipe";
  return kind == FileKind::kSocket ? "a socket" : "a device";
}

std::string mend_reading(int why, const std::string& path) {
  if (why == EMFILE) return "this process may open no more files: raise ulimit -n";
  if (why == ENFILE) return "this machine may open no more files: raise sysctl fs.file-max";
  return fmt::format("ls -l {}, then make it readable for this user", shell_word(path));
}

// FNV-1a: tells whether two hosts have the same file.
std::uint64_t hash_of(std::string_view text) {
  std::uint64_t hash = 0xcbf29ce484222325;
  for (const char c : text) hash = (hash ^ static_cast<unsigned char>(c)) * 0x100000001b3;
  return hash;
}

}  // namespace

LoadResult not_loaded(LoadFailure failure, const std::string& path, Problem problem) {
  LoadResult result;
  result.failure = failure;
  result.path = path;
  result.problems.push_back(std::move(problem));
  return result;
}

LoadResult load(Machine& machine, const std::string& path) {
  // Checked before opening: a device may act on being opened.
  const FileFacts facts = machine.facts_behind(path);
  if (facts.kind != FileKind::kFile && facts.kind != FileKind::kAbsent)
    return not_loaded(LoadFailure::kUnreadable, path,
                      {path, fmt::format("is {}, not a file", word_for(facts.kind)),
                       fmt::format("ls -ld {}, then name the config file", shell_word(path))});
  if (facts.size_bytes > kMaxFileBytes) return too_large(path);
  // Files can be hidden by permissions: only opening them shows whether they exist.
  const auto text = machine.read_value(path);
  if (!text) {
    const int why = text.error().sys_errno;
    if (why == ENOENT || why == ENOTDIR)
      return not_loaded(LoadFailure::kMissing, path,
                        {path, "no such file: ztcp is not set up on this host",
                         "ztcp_setup, or export ZTCP_CONFIG=FILE"});
    return not_loaded(
        LoadFailure::kUnreadable, path,
        {path, fmt::format("can't be read: {}", std::strerror(why)), mend_reading(why, path)});
  }
  LoadResult result = parse(*text, path);
  result.hash = hash_of(*text);
  return result;
}

}  // namespace ztcp::config
