// SPDX-License-Identifier: Apache-2.0
// Copyright the ztcp authors
#pragma once

namespace ztcp {

// For each pass of a loop that polls memory: leaves execution units to the core's other thread. A
// pause takes tens of nanoseconds. Arm's `yield` does nothing on most server cores, so `isb`, which
// refetches the instructions behind it, makes the pause there.
inline void cpu_pause() noexcept {
#if defined(__aarch64__)
  asm volatile("isb" ::: "memory");
#else
  __builtin_ia32_pause();
#endif
}

}  // namespace ztcp
