// SPDX-License-Identifier: Apache-2.0
// Copyright the ztcp authors
#include "tests/support/memory_pipe.h"

#include <algorithm>
#include <cstring>
#include <utility>

namespace ztcp::test {
namespace {

std::vector<std::byte> read(const Pipe::Buffer& from) {
  if (from.region) return from.region->read(from.bytes);
  return {from.bytes.begin(), from.bytes.end()};
}

void fill(Pipe::Buffer& buffer, std::span<const std::byte> bytes) {
  if (buffer.region)
    buffer.region->receive(buffer.bytes.data(), bytes);
  else if (!bytes.empty())
    std::memcpy(buffer.bytes.data(), bytes.data(), bytes.size());
  buffer.is_filled = true;
  buffer.moved = bytes.size();
}

}  // namespace

void Pipe::Operation::begin(std::size_t count) {
  state = State::kPosted;
  buffers_ = static_cast<std::uint8_t>(count);
  parts.fill({});
  was_asked = false;
  arrivals.clear();
}

void Pipe::Operation::end(Errc code, const char* where) {
  state = State::kFailed;
  error = {code, 0, where};
}

Result<bool> Pipe::Operation::test(std::span<std::size_t> sizes_bytes) {
  const std::lock_guard lock(fabric->mutex);
  if (state == State::kFailed) return tl::unexpected<Error>(error);
  if (state != State::kDone && fabric->dead) return tl::unexpected<Error>(*fabric->dead);
  if (state == State::kPosted && buffers_ == 0 && std::exchange(was_asked, true)) {
    for (const auto& [region, arrived] : arrivals)
      for (const MemoryRegion::Arrival& one : arrived) region->write(one);
    state = State::kDone;
  }
  if (state != State::kDone) return false;
  for (std::size_t i = 0; i < std::min<std::size_t>(buffers_, sizes_bytes.size()); ++i)
    sizes_bytes[i] = parts[i].moved;
  state = State::kFree;
  return true;
}

Pipe::Pipe(const std::shared_ptr<MemoryFabric>& shared) : fabric(shared) {
  for (Table* table : {&sends, &receives, &flushes})
    for (Operation& operation : *table) operation.fabric = shared;
}

Pipe::Operation* Pipe::take(Table& table, std::size_t buffers) {
  for (Operation& operation : table)
    if (operation.state == State::kFree) {
      operation.begin(buffers);
      return &operation;
    }
  return nullptr;
}

void Pipe::send(Operation& operation) {
  const Buffer& from = operation.parts[0];
  if (eager_bytes + from.bytes.size() <= kEagerBytes) {
    eager_bytes += from.bytes.size();
    messages.push_back({from.tag, nullptr, read(from)});
    operation.parts[0].moved = from.bytes.size();
    operation.state = State::kDone;
  } else {
    messages.push_back({from.tag, &operation, {}});
  }
  match();
}

void Pipe::receive(Operation& operation) {
  posted.push_back(&operation);
  match();
}

void Pipe::match() {
  for (Operation* receive : posted) {
    const std::span<Buffer> buffers(receive->parts.data(), receive->buffers());
    for (Buffer& buffer : buffers) {
      if (buffer.is_filled || receive->state != State::kPosted) continue;
      const auto message = std::ranges::find(messages, buffer.tag, &Message::tag);
      if (message == messages.end()) continue;
      if (!deliver(*message, buffer)) receive->end(Errc::kTruncated, "memory");
      messages.erase(message);
    }
    if (receive->state == State::kPosted && std::ranges::all_of(buffers, &Buffer::is_filled))
      receive->state = State::kDone;
  }
  std::erase_if(posted, [](const Operation* one) { return one->state != State::kPosted; });
}

bool Pipe::deliver(Message& message, Buffer& buffer) {
  const std::vector<std::byte> bytes =
      message.send != nullptr ? read(message.send->parts[0]) : std::move(message.eager);
  if (message.send != nullptr) {
    message.send->state = State::kDone;
    message.send->parts[0].moved = bytes.size();
  } else {
    eager_bytes -= bytes.size();
  }
  if (bytes.size() > buffer.bytes.size()) return false;
  fill(buffer, bytes);
  return true;
}

}  // namespace ztcp::test
