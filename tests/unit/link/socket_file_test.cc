// SPDX-License-Identifier: Apache-2.0
// Copyright the ztcp authors
#include "transport/link/socket_file.h"

#include <atomic>
#include <chrono>
#include <cstring>
#include <fcntl.h>
#include <filesystem>
#include <fstream>
#include <string>
#include <sys/file.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <thread>
#include <unistd.h>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/support/log_capture.h"

namespace ztcp::link {
namespace {

namespace fs = std::filesystem;
using testing::HasSubstr;

sockaddr_un address_of(const std::string& path) {
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  path.copy(address.sun_path, sizeof(address.sun_path) - 1);
  return address;
}

// A socket of `type` bound to `path`; its file stays when the descriptor is closed.
Fd bound_socket(const std::string& path, int type = SOCK_SEQPACKET) {
  Fd fd(::socket(AF_UNIX, type | SOCK_CLOEXEC, 0));
  const sockaddr_un address = address_of(path);
  EXPECT_EQ(::bind(fd.get(), reinterpret_cast<const sockaddr*>(&address), sizeof(address)), 0);
  return fd;
}

class SocketFile : public testing::Test {
 protected:
  void SetUp() override {
    std::string pattern = testing::TempDir() + "socketXXXXXX";
    ASSERT_NE(mkdtemp(pattern.data()), nullptr);
    folder_ = pattern;
    path_ = folder_ + "/0.sock";
  }
  void TearDown() override { fs::remove_all(folder_); }

  std::string folder_;
  std::string path_;
  ztcp::test::LogCapture log_;
};

TEST_F(SocketFile, AFreePathIsAccepted) {
  EXPECT_TRUE(make_way_for_server(path_));
  EXPECT_TRUE(log_.warned().empty());
}

TEST_F(SocketFile, TheSocketOfAKilledServerIsRemoved) {
  bound_socket(path_);
  EXPECT_TRUE(make_way_for_server(path_));
  EXPECT_FALSE(fs::exists(path_));
}

TEST_F(SocketFile, ASocketInUseStays) {
  const Fd server = bound_socket(path_);
  ASSERT_EQ(::listen(server.get(), 1), 0);
  const auto refused = make_way_for_server(path_);
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().code, Errc::kBusy);
  EXPECT_TRUE(fs::is_socket(path_));
  EXPECT_THAT(log_.warned(), HasSubstr("is served by another process"));
}

// The kernel makes a connect() wait for room in the backlog.
TEST_F(SocketFile, AServerWithAFullBacklogDoesNotBlock) {
  const Fd server = bound_socket(path_);
  ASSERT_EQ(::listen(server.get(), 0), 0);
  const Fd guest(::socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0));
  const sockaddr_un address = address_of(path_);
  ASSERT_EQ(::connect(guest.get(), reinterpret_cast<const sockaddr*>(&address), sizeof(address)),
            0);
  alarm(10);
  EXPECT_FALSE(make_way_for_server(path_));
  alarm(0);
  EXPECT_TRUE(fs::is_socket(path_));
}

TEST_F(SocketFile, ASocketInUseOfAnotherTypeStays) {
  for (const int type : {SOCK_STREAM, SOCK_DGRAM}) {
    const Fd server = bound_socket(path_, type);
    EXPECT_FALSE(make_way_for_server(path_));
    EXPECT_TRUE(fs::is_socket(path_));
    fs::remove(path_);
  }
}

TEST_F(SocketFile, AnotherUsersStays) {
  if (geteuid() != 0) GTEST_SKIP() << "giving a file away needs root";
  bound_socket(path_);
  ASSERT_EQ(::chown(path_.c_str(), 65534, 65534), 0);
  EXPECT_FALSE(make_way_for_server(path_));
  EXPECT_TRUE(fs::is_socket(path_));
  EXPECT_THAT(log_.warned(), HasSubstr("belongs to user 65534"));
  EXPECT_THAT(log_.warned(), HasSubstr("rm " + path_));
}

TEST_F(SocketFile, AMissingFolderIsNamed) {
  EXPECT_FALSE(make_way_for_server(folder_ + "/missing/0.sock"));
  EXPECT_THAT(log_.warned(), HasSubstr("folder " + folder_ + "/missing: No such file"));
}

// Two servers start at once: the second must not take the first one's socket, which does not listen
// yet, for one without a server.
TEST_F(SocketFile, TheFolderIsLockedWhileAServerStarts) {
  const auto starting = make_way_for_server(path_);
  ASSERT_TRUE(starting);
  const Fd other(::open(folder_.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  EXPECT_NE(::flock(other.get(), LOCK_EX | LOCK_NB), 0);
}

TEST_F(SocketFile, ALockThatIsHeldForEverIsIgnored) {
  const Fd other(::open(folder_.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  ASSERT_EQ(::flock(other.get(), LOCK_EX), 0);
  alarm(30);
  EXPECT_TRUE(make_way_for_server(path_));
  alarm(0);
}

// The folder's owner replaces it by a link to a system folder, again and again: a file with the
// socket's name there must survive.
TEST_F(SocketFile, ReplacingTheFolderByALinkDoesNotRedirectIt) {
  const std::string system = folder_ + "/system";
  const std::string own = folder_ + "/own";
  const std::string way = folder_ + "/way";
  fs::create_directory(system);
  fs::create_directory(own);
  std::ofstream(system + "/0.sock") << "precious";
  fs::create_directory_symlink(own, way);
  std::atomic<bool> stop{false};
  std::thread attacker([&] {
    for (int i = 0; !stop; ++i) {
      fs::create_directory_symlink(i % 2 == 0 ? system : own, way + ".new");
      fs::rename(way + ".new", way);
    }
  });
  int removed = 0;
  for (int i = 0; i < 2000; ++i) {
    if (!fs::exists(own + "/0.sock")) bound_socket(own + "/0.sock");
    removed += make_way_for_server(way + "/0.sock") ? 1 : 0;
    if (!fs::is_regular_file(system + "/0.sock")) break;
  }
  stop = true;
  attacker.join();
  EXPECT_EQ(fs::file_size(system + "/0.sock"), 8U);
  EXPECT_GT(removed, 0);
}

// Files that a mistyped path may name.
struct PlacedFile {
  const char* name;
  void (*place)(const std::string& path, const std::string& own);
};
class SocketFileKind : public SocketFile, public testing::WithParamInterface<PlacedFile> {};

TEST_P(SocketFileKind, IsRefusedByNameAndStays) {
  const std::string own = folder_ + "/own";
  std::ofstream(own) << "mine";
  GetParam().place(path_, own);
  struct stat before {};
  ASSERT_EQ(::lstat(path_.c_str(), &before), 0);
  const auto refused = make_way_for_server(path_);
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().code, Errc::kBadConfig);
  struct stat after {};
  ASSERT_EQ(::lstat(path_.c_str(), &after), 0);
  EXPECT_EQ(after.st_ino, before.st_ino);
  EXPECT_EQ(fs::file_size(own), 4U);
  EXPECT_THAT(log_.warned(), HasSubstr("memif socket " + path_ + " is the name of "));
}

INSTANTIATE_TEST_SUITE_P(
    All, SocketFileKind,
    testing::Values(
        PlacedFile{"File",
                   [](const std::string& path, const std::string&) { std::ofstream(path) << "x"; }},
        PlacedFile{"EmptyFile",
                   [](const std::string& path, const std::string&) { std::ofstream{path}; }},
        PlacedFile{"HardLink", [](const std::string& path,
                                  const std::string& own) { fs::create_hard_link(own, path); }},
        PlacedFile{"LinkToAFile", [](const std::string& path,
                                     const std::string& own) { fs::create_symlink(own, path); }},
        PlacedFile{"LinkToASocket",
                   [](const std::string& path, const std::string& own) {
                     bound_socket(own + ".sock");
                     fs::create_symlink(own + ".sock", path);
                   }},
        PlacedFile{"DanglingLink",
                   [](const std::string& path, const std::string& own) {
                     fs::create_symlink(own + "-missing", path);
                   }},
        PlacedFile{"Fifo", [](const std::string& path,
                              const std::string&) { ASSERT_EQ(::mkfifo(path.c_str(), 0666), 0); }},
        PlacedFile{"Folder", [](const std::string& path,
                                const std::string&) { fs::create_directory(path); }}),
    [](const auto& row) { return row.param.name; });

// The driver removes by name.
TEST_F(SocketFile, OnlyBoundSocketsAreRemoved) {
  const auto bind_one = [this] {
    Fd fd(::socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0));
    const sockaddr_un address = address_of(path_);
    EXPECT_EQ(
        bind_socket_file(fd.get(), reinterpret_cast<const sockaddr*>(&address), sizeof(address)),
        0);
    return fd;
  };
  bind_one();
  EXPECT_EQ(remove_socket_file(path_.c_str()), 0);
  EXPECT_FALSE(fs::exists(path_));
  // Another server's by now.
  bind_one();
  fs::rename(path_, path_ + ".old");
  bound_socket(path_);
  EXPECT_EQ(remove_socket_file(path_.c_str()), 0);
  EXPECT_TRUE(fs::is_socket(path_));
  // Never bound here.
  EXPECT_EQ(remove_socket_file(path_.c_str()), 0);
  EXPECT_TRUE(fs::is_socket(path_));
}

}  // namespace
}  // namespace ztcp::link
