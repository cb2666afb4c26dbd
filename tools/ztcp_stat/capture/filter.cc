// SPDX-License-Identifier: Apache-2.0
// Copyright the ztcp authors
#include "tools/ztcp_stat/capture/filter.h"

#include <array>
#include <dlfcn.h>
#include <pcap/pcap.h>
#include <utility>

#include <fmt/format.h>

namespace ztcp::capture {

// The functions of libpcap; their ABI has been the same since 1.0.
struct PcapApi {
  decltype(&pcap_open_dead) open_dead = nullptr;
  decltype(&pcap_close) close = nullptr;
  decltype(&pcap_compile) compile = nullptr;
  decltype(&pcap_geterr) geterr = nullptr;
  decltype(&pcap_freecode) freecode = nullptr;
  decltype(&pcap_offline_filter) offline_filter = nullptr;
};

namespace {

constexpr int kMostFrameBytes = 262144;  // libpcap's limit.

template <class Function>
bool take(void* library, Function& to, const char* name) {
  to = reinterpret_cast<Function>(dlsym(library, name));
  return to != nullptr;
}

tl::expected<PcapApi, std::string> open_library() {
  void* library = nullptr;
  for (const char* name : {"libpcap.so.0.8", "libpcap.so.1"}) {  // Debian's, and the others'.
    library = dlopen(name, RTLD_NOW | RTLD_LOCAL);
    if (library != nullptr) break;
  }
  if (library == nullptr)
    return tl::unexpected<std::string>(
        "--filter needs libpcap: apt-get install tcpdump, or dnf install libpcap; or filter the "
        "file later: tcpdump -r FILE EXPRESSION");
  PcapApi api;
  const bool has_all =
      take(library, api.open_dead, "pcap_open_dead") && take(library, api.close, "pcap_close") &&
      take(library, api.compile, "pcap_compile") && take(library, api.geterr, "pcap_geterr") &&
      take(library, api.freecode, "pcap_freecode") &&
      take(library, api.offline_filter, "pcap_offline_filter");
  if (!has_all) return tl::unexpected<std::string>("libpcap is too old for --filter");
  return api;
}

}  // namespace

struct Filter::Program {
  explicit Program(const PcapApi& functions) : api(functions) {}
  ~Program() {
    if (is_compiled) api.freecode(&code);
    if (dead != nullptr) api.close(dead);
  }
  Program(const Program&) = delete;
  Program& operator=(const Program&) = delete;

  const PcapApi api;
  pcap_t* dead = nullptr;
  bool is_compiled = false;
  bpf_program code{};
};

Filter::Filter(std::unique_ptr<Program> program) : program_(std::move(program)) {}
Filter::Filter(Filter&&) noexcept = default;
Filter& Filter::operator=(Filter&&) noexcept = default;
Filter::~Filter() = default;

tl::expected<Filter, std::string> Filter::compile(const std::string& expression) {
  const auto api = open_library();
  if (!api) return tl::unexpected(api.error());
  auto program = std::make_unique<Program>(*api);
  program->dead = api->open_dead(DLT_EN10MB, kMostFrameBytes);
  if (program->dead == nullptr) return tl::unexpected<std::string>("libpcap is out of memory");
  if (api->compile(program->dead, &program->code, expression.c_str(), 1, PCAP_NETMASK_UNKNOWN) != 0)
    return tl::unexpected(fmt::format("--filter '{}': {}", expression, api->geterr(program->dead)));
  program->is_compiled = true;
  return Filter(std::move(program));
}

bool Filter::matches(std::span<const std::byte> frame, std::uint32_t original_bytes) const {
  pcap_pkthdr header{};
  header.caplen = static_cast<bpf_u_int32>(frame.size());
  header.len = original_bytes;
  return program_->api.offline_filter(&program_->code, &header,
                                      reinterpret_cast<const u_char*>(frame.data())) != 0;
}

}  // namespace ztcp::capture
