// SPDX-License-Identifier: Apache-2.0
// Copyright the ztcp authors
//
// Stands in for libFuzzer where the compiler has none: feeds a target every file of its corpus,
// then seeded mutations of them up to a count or a few seconds. It finds only crashes, failed
// assertions and sanitizer reports; its runs repeat exactly, up to the one it stopped at.
#include <algorithm>
#include <chrono>
#include <cstdint>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <random>
#include <vector>

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size);

namespace {

using Bytes = std::vector<std::uint8_t>;

constexpr std::size_t kMaxBytes = 16384;
constexpr int kMutations = 50'000;
constexpr std::chrono::seconds kLimit(4);

std::vector<Bytes> read_corpus(const char* folder) {
  std::vector<std::filesystem::path> paths;
  for (const auto& entry : std::filesystem::directory_iterator(folder)) paths.push_back(entry);
  std::sort(paths.begin(), paths.end());  // The folder's own order differs between machines.
  std::vector<Bytes> corpus;
  for (const auto& path : paths) {
    std::ifstream file(path, std::ios::binary);
    corpus.emplace_back(std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>());
  }
  return corpus;
}

class Mutator {
 public:
  explicit Mutator(const std::vector<Bytes>& corpus) : corpus_(corpus) {}

  const Bytes& next() {
    unit_ = pick();
    for (std::size_t edits = 1 + rng_() % 8; edits > 0; --edits) edit();
    if (unit_.size() > kMaxBytes) unit_.resize(kMaxBytes);
    return unit_;
  }

 private:
  const Bytes& pick() { return corpus_[rng_() % corpus_.size()]; }
  std::size_t place() { return unit_.empty() ? 0 : rng_() % unit_.size(); }
  auto at(std::size_t index) { return unit_.begin() + static_cast<std::ptrdiff_t>(index); }

  void edit() {
    static constexpr std::uint8_t kInteresting[] = {0, 1, 2, 0x7f, 0x80, 0xff};
    if (unit_.empty()) unit_.push_back(0);
    const std::size_t index = place();
    switch (rng_() % 7) {
      case 0:
        unit_[index] ^= static_cast<std::uint8_t>(1U << rng_() % 8);
        break;
      case 1:
        unit_[index] = static_cast<std::uint8_t>(rng_());
        break;
      case 2:
        unit_[index] = kInteresting[rng_() % std::size(kInteresting)];
        break;
      case 3:
        unit_.resize(index);
        break;
      case 4:
        unit_.insert(at(index), 1 + rng_() % 16, static_cast<std::uint8_t>(rng_()));
        break;
      case 5:
        unit_.erase(at(index), at(std::min<std::size_t>(unit_.size(), index + 1 + rng_() % 16)));
        break;
      default: {  // The end of another one.
        const Bytes& other = pick();
        const std::size_t from = other.empty() ? 0 : rng_() % other.size();
        unit_.insert(at(index), other.begin() + static_cast<std::ptrdiff_t>(from), other.end());
      }
    }
  }

  const std::vector<Bytes>& corpus_;
  std::minstd_rand rng_{1};
  Bytes unit_;
};

}  // namespace

int main(int argc, char** argv) {
  if (argc != 2) {
    std::fprintf(stderr, "usage: %s CORPUS_FOLDER\n", argv[0]);
    return 2;
  }
  const std::vector<Bytes> corpus = read_corpus(argv[1]);
  if (corpus.empty()) {
    std::fprintf(stderr, "%s holds no seeds\n", argv[1]);
    return 2;
  }
  for (const Bytes& unit : corpus) LLVMFuzzerTestOneInput(unit.data(), unit.size());
  Mutator mutator(corpus);
  const auto end = std::chrono::steady_clock::now() + kLimit;
  int mutations = 0;
  for (; mutations < kMutations && std::chrono::steady_clock::now() < end; ++mutations) {
    const Bytes& unit = mutator.next();
    LLVMFuzzerTestOneInput(unit.data(), unit.size());
  }
  std::printf("%zu seeds, %d mutations\n", corpus.size(), mutations);
  return 0;
}
