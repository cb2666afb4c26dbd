// SPDX-License-Identifier: Apache-2.0
// Copyright the ztcp authors
//
// Each function of the list, as DPDK's mlx5 driver calls it: a jump through its slot, which leaves
// all arguments where they are, and so serves any signature. rdma_core.cc fills the slots before
// the driver runs.
#include "transport/link/mlx5/rdma_core_calls.h"

// The first instruction marks a target of indirect branches (hardening_args in meson.build).
#if defined(__x86_64__)
#define ZTCP_JUMP(slot) "endbr64\n jmp *" slot "(%rip)\n"
#elif defined(__aarch64__)
// x16 is the register that a jump between a call and its function may change.
#define ZTCP_JUMP(slot) "hint #34\n adrp x16, " slot "\n ldr x16, [x16, #:lo12:" slot "]\n br x16\n"
#endif

#define ZTCP_CALL(name, version)                                                               \
  asm(".pushsection .bss.ztcp_slot_" #name                                                     \
      ", \"aw\", %nobits\n"                                                                    \
      ".balign 8\n"                                                                            \
      ".globl ztcp_slot_" #name                                                                \
      "\n"                                                                                     \
      ".hidden ztcp_slot_" #name                                                               \
      "\n"                                                                                     \
      ".type ztcp_slot_" #name                                                                 \
      ", %object\n"                                                                            \
      ".size ztcp_slot_" #name                                                                 \
      ", 8\n"                                                                                  \
      "ztcp_slot_" #name                                                                       \
      ":\n .skip 8\n"                                                                          \
      ".popsection\n"                                                                          \
      ".pushsection .text.ztcp_jump_" #name                                                    \
      ", \"ax\", %progbits\n"                                                                  \
      ".balign 16\n"                                                                           \
      ".globl " #name                                                                          \
      "\n"                                                                                     \
      ".hidden " #name                                                                         \
      "\n"                                                                                     \
      ".type " #name ", %function\n" #name ":\n " ZTCP_JUMP("ztcp_slot_" #name) ".size " #name \
                                                                                ", . - " #name \
                                                                                "\n"           \
                                                                                ".popsection\n");
ZTCP_RDMA_CORE_CALLS(ZTCP_CALL, ZTCP_CALL, ZTCP_CALL)
