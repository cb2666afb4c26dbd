// SPDX-License-Identifier: Apache-2.0
// Copyright the ztcp authors
//
// Floats distributed as the gradients of a training are, by a seed.
#pragma once

#include <cstddef>
#include <cstring>
#include <random>
#include <vector>

namespace ztcp::test {

inline std::vector<float> gradients(std::size_t count, std::size_t seed) {
  std::mt19937 random(static_cast<std::mt19937::result_type>(seed));
  std::normal_distribution<float> normal(0, 1);
  std::vector<float> out(count);
  for (float& one : out) one = normal(random);
  return out;
}

inline std::vector<float> floats_of(const std::vector<std::byte>& bytes) {
  std::vector<float> out(bytes.size() / sizeof(float));
  std::memcpy(out.data(), bytes.data(), bytes.size());
  return out;
}

}  // namespace ztcp::test
