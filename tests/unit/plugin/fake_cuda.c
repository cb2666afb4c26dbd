/* SPDX-License-Identifier: Apache-2.0
 * Copyright the ztcp authors
 *
 * A CUDA driver library with two GPUs, arranged by the test through fake_cuda_*. Built with the
 * real one's soname, so that the code under test finds it the way it finds the real one. */
#include <stdio.h>
#include <string.h>

int fake_cuda_count = 2;
int fake_cuda_initialised = 1;
int fake_cuda_current = -1; /* -1: no context is current. */
int fake_cuda_active = 0;   /* A bit per device with an active primary context. */
int fake_cuda_inits = 0;

enum { kSuccess = 0, kNotInitialised = 3, kInvalidContext = 201 };

int cuInit(unsigned flags) {
  (void)flags;
  ++fake_cuda_inits;
  return kSuccess;
}
int cuDeviceGetCount(int* count) {
  if (!fake_cuda_initialised) return kNotInitialised;
  *count = fake_cuda_count;
  return kSuccess;
}
int cuDeviceGet(int* device, int ordinal) {
  if (!fake_cuda_initialised) return kNotInitialised;
  *device = ordinal;
  return kSuccess;
}
int cuDeviceGetPCIBusId(char* text, int capacity, int device) {
  if (!fake_cuda_initialised) return kNotInitialised;
  snprintf(text, (size_t)capacity, "0000:%02X:00.0", 0x3b + device);
  return kSuccess;
}
int cuDeviceGetUuid_v2(unsigned char* bytes, int device) {
  memset(bytes, 0x10 + device, 16);
  return kSuccess;
}
int cuCtxGetDevice(int* device) {
  if (!fake_cuda_initialised) return kNotInitialised;
  if (fake_cuda_current < 0) return kInvalidContext;
  *device = fake_cuda_current;
  return kSuccess;
}
int cuDevicePrimaryCtxGetState(int device, unsigned* flags, int* active) {
  *flags = 0;
  *active = (fake_cuda_active >> device) & 1;
  return kSuccess;
}
