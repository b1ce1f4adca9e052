// The hooks of -fsanitize=thread: the compiler calls one before each load and store of the kernel
// that may be seen by others.  These stand in for the sanitizer's own runtime, which is not linked.
// Names and arguments are those of the ABI of GCC and Clang.
#ifndef SUNDOG_EMULATOR_HOOKS_H
#define SUNDOG_EMULATOR_HOOKS_H

#include "bulk.h"

extern "C" char __executable_start, end;

namespace sd::emulator {

// A load or store by the running thread, found by its address.
inline void touch(const void* address, uint64_t bytes, bool write, const void* pc) {
  Worker* worker = current_worker;
  if (!worker || !worker->fiber) return;
  const auto* p = static_cast<const unsigned char*>(address);
  if (static_cast<uint64_t>(p - worker->arena) < worker->arena_bytes) {
    return check_shared(*worker, p, static_cast<int>(bytes),
                        write ? Shadow::Kind::kWrite : Shadow::Kind::kRead, own_actor(*worker), pc);
  }
  if (worker->stacks.contains(p)) return;
  if (near_arena(*worker, p)) {
    return check_shared(*worker, p, static_cast<int>(bytes), Shadow::Kind::kRead,
                        own_actor(*worker), pc);
  }
  // Constants of the program itself.
  const auto* start = reinterpret_cast<const unsigned char*>(&__executable_start);
  const auto* stop = reinterpret_cast<const unsigned char*>(&end);
  if (!write && p >= start && p < stop) return;
  check_global(*worker, p, bytes, write, pc);
}

inline void touch_aligned(const void* address, int bytes, bool write, const void* pc) {
  if (!current_worker || !current_worker->fiber) return;
  check_aligned(address, bytes, write ? "a store" : "a load", pc);
  touch(address, static_cast<uint64_t>(bytes), write, pc);
}

}  // namespace sd::emulator

#define SUNDOG_HOOKS(n)                                                    \
  void __tsan_read##n(void* p) {                                           \
    sd::emulator::touch_aligned(p, n, false, __builtin_return_address(0)); \
  }                                                                        \
  void __tsan_write##n(void* p) {                                          \
    sd::emulator::touch_aligned(p, n, true, __builtin_return_address(0));  \
  }                                                                        \
  void __tsan_volatile_read##n(void* p) {                                  \
    sd::emulator::touch_aligned(p, n, false, __builtin_return_address(0)); \
  }                                                                        \
  void __tsan_volatile_write##n(void* p) {                                 \
    sd::emulator::touch_aligned(p, n, true, __builtin_return_address(0));  \
  }                                                                        \
  void __tsan_unaligned_read##n(void* p) {                                 \
    sd::emulator::touch(p, n, false, __builtin_return_address(0));         \
  }                                                                        \
  void __tsan_unaligned_write##n(void* p) {                                \
    sd::emulator::touch(p, n, true, __builtin_return_address(0));          \
  }

extern "C" {
SUNDOG_HOOKS(1)
SUNDOG_HOOKS(2)
SUNDOG_HOOKS(4)
SUNDOG_HOOKS(8)
SUNDOG_HOOKS(16)
void __tsan_read_range(void* p, unsigned long n) {
  sd::emulator::touch(p, n, false, __builtin_return_address(0));
}
void __tsan_write_range(void* p, unsigned long n) {
  sd::emulator::touch(p, n, true, __builtin_return_address(0));
}
void* __tsan_memcpy(void* to, const void* from, unsigned long n) {
  sd::emulator::touch(from, n, false, __builtin_return_address(0));
  sd::emulator::touch(to, n, true, __builtin_return_address(0));
  return std::memcpy(to, from, n);
}
void* __tsan_memset(void* to, int value, unsigned long n) {
  sd::emulator::touch(to, n, true, __builtin_return_address(0));
  return std::memset(to, value, n);
}
void __tsan_init() {}
void __tsan_func_entry(void*) {}
void __tsan_func_exit() {}
void __tsan_vptr_update(void**, void*) {}
void __tsan_vptr_read(void**) {}
}

#undef SUNDOG_HOOKS

#endif  // SUNDOG_EMULATOR_HOOKS_H
