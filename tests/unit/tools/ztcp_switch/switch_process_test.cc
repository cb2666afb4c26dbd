// SPDX-License-Identifier: Apache-2.0
// Copyright the ztcp authors
//
// The ztcp_switch program between memif clients of this process: frames cross, counters count, and
// it leaves no file behind. ZTCP_SWITCH names the program.
#include <array>
#include <chrono>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <sys/wait.h>
#include <thread>
#include <unistd.h>
#include <vector>

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "transport/link/dpdk_link.h"
#include "transport/link/eal.h"

namespace ztcp::fabric {
namespace {

namespace fs = std::filesystem;
using Bytes = std::vector<std::byte>;
constexpr std::size_t kPorts = 3;

// Bounds every wait for another process; passing never depends on it.
template <class Condition>
bool within_seconds(int seconds, Condition condition) {
  const auto deadline = std::chrono::steady_clock::now() + std::chrono::seconds(seconds);
  while (!condition()) {
    if (std::chrono::steady_clock::now() > deadline) return false;
    std::this_thread::sleep_for(std::chrono::microseconds(100));
  }
  return true;
}

MacAddress mac_of(std::size_t host) { return {{2, 0, 0, 0, 0, static_cast<std::uint8_t>(host)}}; }

class SwitchProcess : public testing::Test {
 protected:
  static void SetUpTestSuite() {
    link::EalConfig config;
    config.node_memory_mib = {160};
    ASSERT_TRUE(link::start_eal(config));
    link::register_poller_thread();
  }

  void SetUp() override {
    folder_ = fs::temp_directory_path() / ("ztcp-switch-test." + std::to_string(getpid()));
    fs::create_directory(folder_);
  }
  void TearDown() override {
    clients_.clear();
    if (pid_ > 0) {
      kill(pid_, SIGKILL);
      waitpid(pid_, nullptr, 0);
    }
    fs::remove_all(folder_);
  }

  std::string socket(std::size_t i) const { return folder_ / ("p" + std::to_string(i)); }

  // Returns when the switch reports that it is ready.
  void start(const std::vector<std::string>& more = {}) {
    std::array<int, 2> ready{};
    ASSERT_EQ(pipe(ready.data()), 0);
    std::vector<std::string> arguments = {
        std::getenv("ZTCP_SWITCH"), "--quiet",    "--json",
        folder_ / "counters.json",  "--ready-fd", std::to_string(ready[1])};
    for (std::size_t i = 0; i < kPorts; ++i)
      arguments.insert(arguments.end(),
                       {"--port", "memif:" + socket(i) + ",id=" + std::to_string(i) + ",mtu=9000"});
    arguments.insert(arguments.end(), more.begin(), more.end());
    std::vector<char*> raw;
    for (std::string& a : arguments) raw.push_back(a.data());
    raw.push_back(nullptr);
    pid_ = fork();
    if (pid_ == 0) {
      execv(raw[0], raw.data());
      _exit(127);
    }
    close(ready[1]);
    std::array<char, 6> text{};
    std::size_t got = 0;
    for (ssize_t n = 1; n > 0 && got < text.size();
         got += static_cast<std::size_t>(std::max<ssize_t>(n, 0)))
      n = read(ready[0], text.data() + got, text.size() - got);
    close(ready[0]);
    ASSERT_EQ(std::string(text.data(), got), "ready\n");
  }

  void connect_clients() {
    for (std::size_t i = 0; i < kPorts; ++i) {
      link::MemifConfig config;
      config.socket_path = socket(i);
      config.id = static_cast<std::uint32_t>(i);
      config.mac = mac_of(i);
      config.mtu_bytes = 9000;
      config.rx_frames = 1023;
      auto opened = link::open_memif(config);
      ASSERT_TRUE(opened);
      clients_.push_back(std::move(*opened));
    }
    // The switch checks its carriers at intervals: it correctly drops earlier frames.
    ASSERT_TRUE(within_seconds(60, [&] {
      drain();
      const nlohmann::json seen = counters();
      bool up = true;
      for (std::size_t i = 0; i < kPorts; ++i)
        up &= clients_[i]->is_up() && seen["ports"][i]["up"].get<bool>();
      return up;
    }));
  }

  // The switch's counters while it runs.
  nlohmann::json counters() {
    const fs::path path = folder_ / "counters.json";
    fs::remove(path);
    kill(pid_, SIGUSR1);
    nlohmann::json seen;
    EXPECT_TRUE(within_seconds(60, [&] {
      std::ifstream file(path);
      seen = nlohmann::json::parse(file, nullptr, false);
      return !seen.is_discarded();
    }));
    return seen;
  }

  Bytes frame(std::size_t from, MacAddress to, std::size_t size, int tag) {
    Bytes bytes(size);
    for (std::size_t i = 14; i < size; ++i)
      bytes[i] = static_cast<std::byte>(i * 5 + static_cast<std::size_t>(tag));
    std::copy(to.bytes.begin(), to.bytes.end(), reinterpret_cast<std::uint8_t*>(bytes.data()));
    const MacAddress mine = mac_of(from);
    std::copy(mine.bytes.begin(), mine.bytes.end(),
              reinterpret_cast<std::uint8_t*>(bytes.data()) + 6);
    bytes[12] = std::byte{0x88};  // Local experimental: not answered.
    bytes[13] = std::byte{0xb5};
    return bytes;
  }

  void send(std::size_t from, const Bytes& bytes) {
    TxFrame out;
    out.header_bytes = 14;
    std::copy_n(bytes.begin(), 14, out.header.begin());
    out.l2_bytes = 14;
    out.fragment_count = 1;
    out.fragments[0] = {bytes.data() + 14, static_cast<std::uint32_t>(bytes.size() - 14),
                        kUnmapped};
    out.payload_bytes = out.fragments[0].size_bytes;
    out.copy_payload = true;
    ASSERT_TRUE(within_seconds(60, [&] { return clients_[from]->transmit({&out, 1}) == 1; }));
  }

  // Reads the frames that have arrived at every client.
  void drain() {
    for (std::size_t i = 0; i < clients_.size(); ++i) {
      std::array<RxFrame, 32> frames;
      const std::size_t n = clients_[i]->receive(frames);
      for (std::size_t k = 0; k < n; ++k) {
        Bytes bytes(frames[k].head.begin(), frames[k].head.end());
        for (const auto piece : frames[k].more)
          bytes.insert(bytes.end(), piece.begin(), piece.end());
        arrived_[i].push_back(std::move(bytes));
      }
      clients_[i]->release(std::span(frames).first(n));
    }
  }
  bool wait_arrived(std::size_t at, std::size_t count) {
    return within_seconds(60, [&] {
      drain();
      return arrived_[at].size() >= count;
    });
  }

  // Ends the switch cleanly and reads its report.
  nlohmann::json stop() {
    kill(pid_, SIGTERM);
    int status = 0;
    EXPECT_TRUE(within_seconds(60, [&] { return waitpid(pid_, &status, WNOHANG) == pid_; }));
    EXPECT_TRUE(WIFEXITED(status) && WEXITSTATUS(status) == 0);
    pid_ = -1;
    std::ifstream file(folder_ / "counters.json");
    return nlohmann::json::parse(file);
  }

  fs::path folder_;
  pid_t pid_ = -1;
  std::vector<std::unique_ptr<link::Link>> clients_;
  std::array<std::vector<Bytes>, kPorts> arrived_;
};

TEST_F(SwitchProcess, CarriesFramesBetweenItsPortsAndLeavesNothingBehind) {
  ASSERT_NO_FATAL_FAILURE(start());
  ASSERT_NO_FATAL_FAILURE(connect_clients());
  const Bytes hello = frame(0, kBroadcastMac, 60, 1);
  send(0, hello);
  ASSERT_TRUE(wait_arrived(1, 1));
  ASSERT_TRUE(wait_arrived(2, 1));
  EXPECT_EQ(arrived_[1][0], hello);

  std::vector<Bytes> sent;
  for (int i = 0; i < 500; ++i) {
    sent.push_back(frame(1, mac_of(0), 60 + static_cast<std::size_t>(i) * 17, i));
    send(1, sent.back());
    drain();
  }
  ASSERT_TRUE(wait_arrived(0, sent.size()));
  EXPECT_EQ(arrived_[0], sent) << "every byte, in order";
  EXPECT_EQ(arrived_[2].size(), 1U) << "only the broadcast";

  const nlohmann::json counters = stop();
  EXPECT_EQ(counters["ports"][1]["rx_frames"], 500);
  EXPECT_EQ(counters["ports"][0]["tx_frames"], 500);
  EXPECT_EQ(counters["ports"][0]["flooded"], 1);
  for (std::size_t i = 0; i < kPorts; ++i) EXPECT_FALSE(fs::exists(socket(i)));
}

// The path of a socket is typed, perhaps by root.
TEST_F(SwitchProcess, RefusesToReplaceAFile) {
  const std::string path = folder_ / "passwd";
  std::ofstream(path) << "root";
  const std::string program = std::getenv("ZTCP_SWITCH");
  const std::string command = program + " --port memif:" + path + " 2>&1";
  std::FILE* run = popen(command.c_str(), "r");
  ASSERT_NE(run, nullptr);
  std::array<char, 4096> said{};
  const std::size_t size = std::fread(said.data(), 1, said.size(), run);
  EXPECT_NE(pclose(run), 0);
  EXPECT_NE(std::string(said.data(), size).find("is the name of a file, which was left alone"),
            std::string::npos)
      << said.data();
  EXPECT_EQ(fs::file_size(path), 4U);
}

TEST_F(SwitchProcess, RefusesMorePortsThanDpdkHas) {
  std::string command = std::string(std::getenv("ZTCP_SWITCH"));
  for (int i = 0; i < 33; ++i) command += " --port memif:" + socket(100 + static_cast<unsigned>(i));
  std::FILE* run = popen((command + " 2>&1").c_str(), "r");
  ASSERT_NE(run, nullptr);
  std::array<char, 4096> said{};
  EXPECT_GT(std::fread(said.data(), 1, said.size() - 1, run), 0U);
  EXPECT_EQ(WEXITSTATUS(pclose(run)), 2);
  EXPECT_NE(std::string(said.data()).find("33 memif ports, but DPDK has no more than 32"),
            std::string::npos)
      << said.data();
}

TEST_F(SwitchProcess, LosesTheConfiguredShareOfFrames) {
  ASSERT_NO_FATAL_FAILURE(start({"--loss", "20%", "--seed", "5"}));
  ASSERT_NO_FATAL_FAILURE(connect_clients());
  for (int i = 0; i < 1000; ++i) {
    send(0, frame(0, kBroadcastMac, 100, i));
    drain();
  }
  const auto accounted = [&](const nlohmann::json& seen, std::size_t port) {
    return arrived_[port].size() + seen["ports"][port]["impaired_loss"].get<std::size_t>();
  };
  EXPECT_TRUE(within_seconds(60, [&] {
    drain();
    const nlohmann::json seen = counters();
    return accounted(seen, 1) >= 1000 && accounted(seen, 2) >= 1000;
  }));
  const nlohmann::json last = stop();
  for (const std::size_t port : {1U, 2U}) {
    EXPECT_EQ(accounted(last, port), 1000U) << last.dump(2);
    EXPECT_NEAR(static_cast<double>(arrived_[port].size()), 800, 60);
  }
}

TEST_F(SwitchProcess, AcceptsAClientThatComesBack) {
  ASSERT_NO_FATAL_FAILURE(start());
  ASSERT_NO_FATAL_FAILURE(connect_clients());
  clients_.erase(clients_.begin() + 1, clients_.end());
  while (clients_.size() < kPorts) {
    link::MemifConfig config;
    const std::size_t i = clients_.size();
    config.socket_path = socket(i);
    config.id = static_cast<std::uint32_t>(i);
    config.mac = mac_of(i);
    config.mtu_bytes = 9000;
    config.rx_frames = 1023;
    auto opened = link::open_memif(config);
    ASSERT_TRUE(opened);
    clients_.push_back(std::move(*opened));
  }
  // The first frames may arrive before the new connection is up.
  const Bytes hello = frame(0, kBroadcastMac, 60, 1);
  EXPECT_TRUE(within_seconds(60, [&] {
    send(0, hello);
    drain();
    return !arrived_[1].empty() && !arrived_[2].empty();
  }));
  stop();
}

}  // namespace
}  // namespace ztcp::fabric
