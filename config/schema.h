// SPDX-License-Identifier: Apache-2.0
// Copyright the ztcp authors
//
// The keys of ztcp.conf as data, generated from schema.toml: the only source of ranges, required
// keys and comments.
#pragma once

#include <cstdint>
#include <span>
#include <string_view>

namespace ztcp::config {

enum class Type : std::uint8_t { kString, kInteger, kBoolean, kChoice, kIntegers };

struct Key {
  std::string_view section;  // "" is the top of the file, "nic" each [[nic]].
  std::string_view name;
  Type type;
  std::int64_t min, max;
  std::int64_t max_pci;  // Replaces max for a NIC on PCI.
  // Enumerators' names in order, "auto|dedicated|shared"; for an integer the word that stands for
  // 0.
  std::string_view choices;
  std::string_view default_text;  // As TOML writes it; empty: none, the key is required.
  std::string_view unit;
  std::string_view form;          // Describes the allowed strings.
  std::string_view drivers;       // "pci|memif"; empty: every NIC driver.
  std::string_view required_for;  // "all", or NIC drivers as above; empty: optional.
  std::string_view meaning;
};

struct Section {
  std::string_view name;
  std::string_view meaning;
};

std::span<const Key> keys();
std::span<const Section> sections();
// ZTCP_* variables.
std::span<const std::string_view> environment_names();

const Key* find_key(std::string_view section, std::string_view name);

// Whether a NIC with this driver may have the key.
bool is_for(const Key& key, std::string_view driver);
// Whether "a|b|c" contains "b".
bool lists(std::string_view alternatives, std::string_view word);
// The candidate that `word` probably misspells; empty when nothing is close.
std::string_view nearest(std::string_view word, std::span<const std::string_view> candidates);

}  // namespace ztcp::config
