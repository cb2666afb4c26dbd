// SPDX-License-Identifier: Apache-2.0
// Copyright the ztcp authors
//
// A table of text with aligned columns and marked cells.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

namespace ztcp::stat {

enum class Mark : std::uint8_t { kPlain, kHeading, kGood, kWarning, kBad, kFaint };

// The escape sequences around a text; without colour the text alone.
std::string marked(const std::string& text, Mark mark, bool has_colour);

// Columns that a terminal shows for a text: one for each UTF-8 character.
std::size_t columns_of(const std::string& text);
// At most `columns` columns of a text without escape sequences.
std::string cut(const std::string& text, std::size_t columns);

struct Cell {
  std::string text;
  Mark mark = Mark::kPlain;
};

struct Column {
  std::string heading;
  bool is_right = false;  // Aligned right, as numbers are.
  std::size_t most = 40;  // A longer text is cut.
};

class Table {
 public:
  explicit Table(std::vector<Column> columns) : columns_(std::move(columns)) {}

  void add(std::vector<Cell> row) { rows_.push_back(std::move(row)); }
  std::size_t rows() const { return rows_.size(); }
  // The heading and at most `most_rows` rows, each no wider than `width` columns (0: any width).
  std::vector<std::string> lines(std::size_t width, std::size_t most_rows, bool has_colour) const;

 private:
  std::vector<Column> columns_;
  std::vector<std::vector<Cell>> rows_;
};

}  // namespace ztcp::stat
