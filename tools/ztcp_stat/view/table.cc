// SPDX-License-Identifier: Apache-2.0
// Copyright the ztcp authors
#include "tools/ztcp_stat/view/table.h"

#include <algorithm>

namespace ztcp::stat {
namespace {

constexpr const char* kGap = "  ";

bool begins_character(char c) { return (static_cast<unsigned char>(c) & 0xc0) != 0x80; }

const char* code_of(Mark mark) {
  switch (mark) {
    case Mark::kHeading:
      return "\033[1m";
    case Mark::kGood:
      return "\033[32m";
    case Mark::kWarning:
      return "\033[33m";
    case Mark::kBad:
      return "\033[1;31m";
    case Mark::kFaint:
      return "\033[2m";
    case Mark::kPlain:
      break;
  }
  return "";
}

}  // namespace

std::string marked(const std::string& text, Mark mark, bool has_colour) {
  if (!has_colour || mark == Mark::kPlain || text.empty()) return text;
  return code_of(mark) + text + "\033[0m";
}

std::size_t columns_of(const std::string& text) {
  return static_cast<std::size_t>(std::count_if(text.begin(), text.end(), begins_character));
}

std::string cut(const std::string& text, std::size_t columns) {
  std::size_t seen = 0;
  for (std::size_t i = 0; i < text.size(); ++i)
    if (begins_character(text[i]) && ++seen > columns) return text.substr(0, i);
  return text;
}

std::vector<std::string> Table::lines(std::size_t width, std::size_t most_rows,
                                      bool has_colour) const {
  std::vector<std::size_t> widths;
  for (const Column& column : columns_) widths.push_back(columns_of(column.heading));
  const std::size_t shown = std::min(rows_.size(), most_rows);
  for (std::size_t row = 0; row < shown; ++row)
    for (std::size_t i = 0; i < columns_.size() && i < rows_[row].size(); ++i)
      widths[i] = std::max(widths[i], std::min(columns_of(rows_[row][i].text), columns_[i].most));

  const auto line_of = [&](const std::vector<Cell>& cells) {
    std::string line;
    std::size_t used = 0;
    for (std::size_t i = 0; i < columns_.size() && i < cells.size(); ++i) {
      const std::string text = cut(cells[i].text, widths[i]);
      const std::string padding(widths[i] - columns_of(text), ' ');
      const std::string gap = i == 0 ? "" : kGap;
      const bool is_last = i + 1 == columns_.size();
      std::string shown_text =
          columns_[i].is_right ? padding + text : text + (is_last ? "" : padding);
      if (width > 0) {
        const std::size_t room = width > used + gap.size() ? width - used - gap.size() : 0;
        if (room == 0) break;
        shown_text = cut(shown_text, room);
      }
      used += gap.size() + columns_of(shown_text);
      line += gap + marked(shown_text, cells[i].mark, has_colour);
    }
    while (line.ends_with(' ')) line.pop_back();
    return line;
  };

  std::vector<std::string> lines;
  std::vector<Cell> heading;
  for (const Column& column : columns_) heading.push_back({column.heading, Mark::kHeading});
  lines.push_back(line_of(heading));
  for (std::size_t row = 0; row < shown; ++row) lines.push_back(line_of(rows_[row]));
  return lines;
}

}  // namespace ztcp::stat
