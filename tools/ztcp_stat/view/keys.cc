// SPDX-License-Identifier: Apache-2.0
// Copyright the ztcp authors
#include "tools/ztcp_stat/view/keys.h"

#include <algorithm>
#include <array>

namespace ztcp::stat {
namespace {

constexpr char kEscape = '\033';
constexpr char kDelete = '\177';
constexpr std::size_t kLongestFilter = 64;

// Takes one escape sequence ("\033[A") from the front; the letter or digit that names the key.
char take_sequence(std::string_view& input) {
  input.remove_prefix(2);
  char name = '\0';
  while (!input.empty()) {
    const char c = input.front();
    input.remove_prefix(1);
    if (name == '\0') name = c;
    if (c >= '@' && c <= '~') break;
  }
  return name;
}

void scroll(Choice& choice, char key, std::size_t page_rows) {
  const auto up = [&](std::size_t rows) { choice.first_row -= std::min(choice.first_row, rows); };
  if (key == 'A') up(1);
  if (key == 'B') ++choice.first_row;
  if (key == '5') up(page_rows);
  if (key == '6') choice.first_row += page_rows;
  if (key == 'H') choice.first_row = 0;
}

void type(char c, Choice& choice) {
  if (c == '\n' || c == '\r') {
    choice.is_typing = false;
  } else if (c == kEscape) {
    choice.filter.clear();
    choice.is_typing = false;
  } else if (c == kDelete || c == '\b') {
    if (!choice.filter.empty()) choice.filter.pop_back();
  } else if (c >= ' ' && c <= '~' && choice.filter.size() < kLongestFilter) {
    choice.filter += c;
  }
  choice.first_row = 0;
}

// False: the key has no meaning.
bool choose_sort(char c, Choice& choice) {
  constexpr std::array<std::pair<char, Sort>, kSorts> kKeys = {{{'w', Sort::kWorst},
                                                                {'r', Sort::kRate},
                                                                {'t', Sort::kRtt},
                                                                {'l', Sort::kLosses},
                                                                {'g', Sort::kWait},
                                                                {'p', Sort::kPeer}}};
  if (c == 's') {
    choice.sort = static_cast<Sort>((static_cast<std::size_t>(choice.sort) + 1) % kSorts);
    return true;
  }
  for (const auto& [key, sort] : kKeys) {
    if (key != c) continue;
    choice.sort = sort;
    return true;
  }
  return false;
}

}  // namespace

Action press(std::string_view input, Choice& choice, std::size_t page_rows) {
  Action action = Action::kNone;
  while (!input.empty()) {
    if (input.size() >= 3 && input[0] == kEscape && (input[1] == '[' || input[1] == 'O')) {
      scroll(choice, take_sequence(input), page_rows);
      action = std::max(action, Action::kRedraw);
      continue;
    }
    const char c = input.front();
    input.remove_prefix(1);
    if (choice.is_typing) {
      type(c, choice);
      action = std::max(action, Action::kRedraw);
    } else if (c == 'q' || c == 'Q') {
      return Action::kQuit;
    } else if (c == ' ') {
      action = std::max(action, Action::kLook);
    } else if (c == '/') {
      choice.is_typing = true;
      action = std::max(action, Action::kRedraw);
    } else if (c == kEscape) {
      choice.filter.clear();
      action = std::max(action, Action::kRedraw);
    } else if (choose_sort(c, choice)) {
      choice.first_row = 0;
      action = std::max(action, Action::kRedraw);
    }
  }
  return action;
}

}  // namespace ztcp::stat
