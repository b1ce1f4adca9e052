// One emulated thread is one fiber: a stack and a saved stack pointer.  A switch saves only the
// callee-saved registers, as any function call would; on x86-64 that is six pushes and six pops,
// some 5 ns, where swapcontext takes two system calls.  Other machines use swapcontext.
#ifndef SUNDOG_EMULATOR_FIBER_H
#define SUNDOG_EMULATOR_FIBER_H

#include <sys/mman.h>

#include <cstddef>
#include <cstdint>
#if !defined(__x86_64__) && !defined(SUNDOG_EMULATOR_UCONTEXT)
#define SUNDOG_EMULATOR_UCONTEXT
#endif
#ifdef SUNDOG_EMULATOR_UCONTEXT
#include <ucontext.h>
#endif

namespace sd::emulator {

#ifndef SUNDOG_EMULATOR_UCONTEXT
using Context = void*;

extern "C" void sundog_switch(void** save, void* load);
asm(R"(
.text
.globl sundog_switch
.hidden sundog_switch
.type sundog_switch, @function
sundog_switch:
  pushq %rbp
  pushq %rbx
  pushq %r12
  pushq %r13
  pushq %r14
  pushq %r15
  movq %rsp, (%rdi)
  movq %rsi, %rsp
  popq %r15
  popq %r14
  popq %r13
  popq %r12
  popq %rbx
  popq %rbp
  ret
.size sundog_switch, .-sundog_switch
)");

inline void switch_context(Context& from, Context& to) { sundog_switch(&from, to); }

// Lets `context` begin in `entry` on the stack below `top`.
inline void start_context(Context& context, char* top, std::size_t, void (*entry)()) {
  void** stack = reinterpret_cast<void**>(reinterpret_cast<uintptr_t>(top) & ~uintptr_t{15});
  *--stack = nullptr;  // the return address of entry, which never returns
  *--stack = reinterpret_cast<void*>(entry);
  for (int i = 0; i < 6; ++i) *--stack = nullptr;
  context = stack;
}
#else
using Context = ucontext_t;

inline void switch_context(Context& from, Context& to) { swapcontext(&from, &to); }

inline void start_context(Context& context, char* top, std::size_t bytes, void (*entry)()) {
  getcontext(&context);
  context.uc_stack.ss_sp = top - bytes;
  context.uc_stack.ss_size = bytes;
  context.uc_link = nullptr;
  makecontext(&context, entry, 0);
}
#endif

// The stacks of one block.  Below each lies a page that faults, and the tops are staggered: tops at
// equal distances of a page would all fall into the same few cache sets.
class Stacks {
 public:
  static constexpr std::size_t kStackBytes = 64 << 10;
  static constexpr std::size_t kGuard = 4096;

  bool reserve(int count) {
    bytes_ = (kStackBytes + kGuard) * static_cast<std::size_t>(count);
    void* memory = mmap(nullptr, bytes_, PROT_READ | PROT_WRITE,
                        MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (memory == MAP_FAILED) return false;
    base_ = static_cast<char*>(memory);
    for (int i = 0; i < count; ++i) {
      mprotect(base_ + static_cast<std::size_t>(i) * (kStackBytes + kGuard), kGuard, PROT_NONE);
    }
    return true;
  }
  ~Stacks() {
    if (base_) munmap(base_, bytes_);
  }
  char* top(int i) const {
    return base_ + static_cast<std::size_t>(i + 1) * (kStackBytes + kGuard) - (i * 5 % 32) * 128;
  }
  bool contains(const void* address) const {
    return static_cast<std::size_t>(static_cast<const char*>(address) - base_) < bytes_;
  }

 private:
  char* base_ = nullptr;
  std::size_t bytes_ = 0;
};

}  // namespace sd::emulator

#endif  // SUNDOG_EMULATOR_FIBER_H
