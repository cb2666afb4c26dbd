// SPDX-License-Identifier: Apache-2.0
// Copyright the ztcp authors
#include "tools/ztcp_perf/secret.h"

#include <cstdlib>
#include <fstream>
#include <map>
#include <sys/stat.h>
#include <unistd.h>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tools/ztcp_perf/failure.h"

namespace ztcp::perf {
namespace {

using testing::HasSubstr;

class PerfSecret : public testing::Test {
 protected:
  void SetUp() override {
    std::string pattern = testing::TempDir() + "secret-XXXXXX";
    const int fd = mkstemp(pattern.data());
    ASSERT_GE(fd, 0);
    close(fd);
    path_ = pattern;
  }
  void TearDown() override { unlink(path_.c_str()); }

  void write(const std::string& text, mode_t mode = 0600) {
    std::ofstream(path_) << text;
    ASSERT_EQ(chmod(path_.c_str(), mode), 0);
  }
  std::string find(const std::string& file) {
    return find_secret(file, [this](const char* name) -> std::optional<std::string> {
      const auto found = set_.find(name);
      return found == set_.end() ? std::nullopt : std::optional(found->second);
    });
  }
  std::string why_not(const std::string& file) {
    try {
      return "found " + find(file);
    } catch (const Failure& failure) {
      return failure.what();
    }
  }

  std::string path_;
  std::map<std::string, std::string> set_;
};

TEST_F(PerfSecret, IsReadOnlyFromAFileOthersCannotRead) {
  write("0123456789abcdef0123\n");
  EXPECT_EQ(find(path_), "0123456789abcdef0123");
  write("0123456789abcdef0123\n", 0640);
  EXPECT_THAT(why_not(path_), HasSubstr("(mode 0640); chmod 600 " + path_));
  write("short\n");
  EXPECT_THAT(why_not(path_), HasSubstr("5 characters; a secret has at least 16"));
  write(std::string(5000, 'x'));
  EXPECT_THAT(why_not(path_), HasSubstr("more than 4096 bytes"));
  EXPECT_THAT(why_not("/nonexistent/secret"), HasSubstr("No such file"));
  EXPECT_THAT(why_not("/dev/null"), HasSubstr("not a regular file"));
}

TEST_F(PerfSecret, AFifoDoesNotBlock) {
  ASSERT_EQ(unlink(path_.c_str()), 0);
  ASSERT_EQ(mkfifo(path_.c_str(), 0600), 0);
  EXPECT_THAT(why_not(path_), HasSubstr("not a regular file"));
}

TEST_F(PerfSecret, TheLaunchersDescriptorComesFirstAndIsClosed) {
  int ends[2];
  ASSERT_EQ(pipe(ends), 0);
  const std::string told = random_secret();
  ASSERT_EQ(told.size(), 32u);
  ASSERT_EQ(::write(ends[1], told.data(), told.size()), static_cast<ssize_t>(told.size()));
  close(ends[1]);
  set_ = {{"ZTCP_PERF_SECRET_FD", std::to_string(ends[0])},
          {"ZTCP_PERF_SECRET", "fedcba9876543210"}};
  EXPECT_EQ(find(""), told);
  EXPECT_EQ(close(ends[0]), -1) << "no other program gets it";
  set_.erase("ZTCP_PERF_SECRET_FD");
  EXPECT_EQ(find(""), "fedcba9876543210");
  set_.clear();
  EXPECT_EQ(find(""), "");
}

TEST_F(PerfSecret, AProofIsValidOnlyForItsSecretNoncesAndText) {
  const Nonce one = random_nonce();
  const Nonce other = random_nonce();
  const std::string text = "rank 1 of 2";
  const auto hello = std::as_bytes(std::span(text));
  const Proof proof = prove_rank("secret", one, hello);
  EXPECT_EQ(prove_rank("secret", one, hello), proof);
  EXPECT_NE(prove_rank("secreT", one, hello), proof);
  EXPECT_NE(prove_rank("secret", other, hello), proof);
  EXPECT_NE(prove_rank("secret", one, hello.first(4)), proof);
  EXPECT_NE(prove_rank_0("secret", one, other), prove_rank_0("secret", other, one));
  // Rank 0's proof never equals a rank's: no reflection.
  EXPECT_NE(prove_rank_0("secret", one, other), prove_rank("secret", one, other));
}

}  // namespace
}  // namespace ztcp::perf
