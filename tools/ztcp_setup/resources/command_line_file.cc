// SPDX-License-Identifier: Apache-2.0
// Copyright the ztcp authors
#include "tools/ztcp_setup/resources/command_line_file.h"

#include <algorithm>

#include <fmt/format.h>

#include "config/machine/text.h"
#include "core/shell_word.h"
#include "tools/ztcp_setup/host/trust.h"
#include "tools/ztcp_setup/resources/kernel_words.h"

namespace ztcp::setup::resource {
namespace {

// The end of the arguments: the end of the first line that has some.
std::size_t end_of_arguments(const std::string& text) {
  for (std::size_t begin = 0; begin < text.size();) {
    const std::size_t end = std::min(text.find('\n', begin), text.size());
    const auto words = config::own_words(std::string_view(text).substr(begin, end - begin));
    if (!words.empty() && !words.front().starts_with('#'))
      return text.find_last_not_of(" \t\r", end == 0 ? 0 : end - 1) + 1;
    begin = end + 1;
  }
  return text.size();
}

// Removes the last of these words, and the blank before it.
void take_away(std::string& text, const std::string& word) {
  for (std::size_t at = text.rfind(word); at != std::string::npos;
       at = at == 0 ? std::string::npos : text.rfind(word, at - 1)) {
    const std::size_t end = at + word.size();
    const auto is_blank = [&](std::size_t i) { return text[i] == ' ' || text[i] == '\n'; };
    if ((at > 0 && !is_blank(at - 1)) || (end < text.size() && !is_blank(end))) continue;
    const std::size_t begin = at > 0 && text[at - 1] == ' ' ? at - 1 : at;
    text.erase(begin, end - begin);
    return;
  }
}

Done write_line(Host& host, const std::string& path, const std::string& text) {
  return place_file(host, path, text, host.facts(path).ownership);
}

}  // namespace

void CommandLineFile::check(Host& host, const Others&, config::Problems& problems) const {
  if (auto problem = why_not_trusted(host, path)) problems.push_back(std::move(*problem));
  const FileKind kind = host.facts(path).kind;
  // Links have been reported.
  if (kind != FileKind::kAbsent && kind != FileKind::kFile && kind != FileKind::kLink)
    problems.push_back({path, "exists and is not a file", "move it away"});
  if (kind == FileKind::kAbsent)
    problems.push_back({path, "does not exist, so it can't give the next boot its arguments",
                        "write the kernel command line into it"});
}

bool CommandLineFile::holds(Host& host) const {
  const Result<std::string> text = host.read_file(path);
  return text && lacking_words(arguments, config::own_words(*text)).empty();
}

Read<CommandLineFile::Before> CommandLineFile::before(Host& host) const {
  Result<std::string> text = host.read_file(path);
  if (!text) return tl::unexpected(problem_of(host, path, text.error()));
  return Before{std::move(*text)};
}

Preview CommandLineFile::preview(Host&) const {
  const std::string text = fmt::format("{}", fmt::join(arguments, " "));
  return {"", "without", text, fmt::format("sed -i '1s|$| {}|' {}", text, shell_word(path))};
}

Done CommandLineFile::apply(Host& host, Before&) const {
  Result<std::string> text = host.read_file(path);
  if (!text) return tl::unexpected(problem_of(host, path, text.error()));
  // Ours come last: another program's count after our page size would count pages of that size.
  const auto lacking = lacking_words(arguments, config::own_words(*text));
  text->insert(end_of_arguments(*text),
               fmt::format("{}{}", text->empty() ? "" : " ", fmt::join(lacking, " ")));
  if (Done written = write_line(host, path, *text); !written) return written;
  if (holds(host)) return {};
  return tl::unexpected(config::Problem{path,
                                        fmt::format("still lacks {}", fmt::join(arguments, " ")),
                                        "find out which program overwrites it"});
}

Reverted CommandLineFile::revert(Host& host, const Before& before) const {
  if (Done cleared = clear_temporary(host, path); !cleared) return reverted(cleared);
  if (host.facts(path).kind == FileKind::kAbsent)
    return {{}, {{path, "no longer exists: nothing to remove", ""}}};
  const Result<std::string> now = host.read_file(path);
  if (!now) return reverted(tl::unexpected(problem_of(host, path, now.error())));
  std::string text = *now;
  auto ours = lacking_words(arguments, config::own_words(before.text));
  std::reverse(ours.begin(), ours.end());
  for (const std::string& word : ours) take_away(text, word);
  return text == *now ? Reverted{} : reverted(write_line(host, path, text));
}

std::string CommandLineFile::restored(const Before& before) const {
  return fmt::format("{} are removed from {}",
                     fmt::join(lacking_words(arguments, config::own_words(before.text)), " "),
                     path);
}

void CommandLineFile::fields(Fields& fields) {
  fields.text("path", path);
  fields.texts("arguments", arguments);
}

}  // namespace ztcp::setup::resource
