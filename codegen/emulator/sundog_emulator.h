// The host body of codegen/primitives.cuh: what a generated kernel sees when a C++ compiler builds
// it for the emulator.  The functions of namespace sd have the contracts written there; here they
// are thin calls into the runtime (runtime.h), which lives in its own object file so that the
// compiler's instrumentation touches nothing but the kernel's own loads and stores.
//
// Every collective and barrier takes the line of its call: the threads of a warp must meet in the
// same place of the source, not merely in the same kind of operation.
#ifndef SUNDOG_EMULATOR_H
#define SUNDOG_EMULATOR_H

#include <cmath>
#include <cstdint>
#include <cstring>
#include <type_traits>
#include <utility>

#define __global__
#define __device__
#define __host__
#define __constant__
#define __forceinline__ inline
#define __grid_constant__
#define __launch_bounds__(...)
#define __cluster_dims__(...)
#define __align__(n) __attribute__((aligned(n)))
#define SD_INLINE inline

#ifdef SUNDOG_EMULATOR_RESIDUES
#include "residues.h"
#else
#include "floats.h"
#endif

namespace sd {

// --- the runtime ---

namespace emulator {

struct Index {
  uint32_t x, y, z;
};

enum class Space { kGlobal, kShared };
enum class Operand { kF16, kBf16, kTf32, kResidueF16, kResidueBf16, kResidueWord };
inline constexpr Operand kF16Operand = kResidues ? Operand::kResidueF16 : Operand::kF16;
inline constexpr Operand kBf16Operand = kResidues ? Operand::kResidueBf16 : Operand::kBf16;
inline constexpr Operand kTf32Operand = kResidues ? Operand::kResidueWord : Operand::kTf32;

// The runtime takes registers as they are; the operand says what they hold.
inline float* raw(Real* d) { return reinterpret_cast<float*>(d); }

// The same for the whole life of an emulated thread, hence const.
[[gnu::const]] Index thread_index();
[[gnu::const]] Index block_index();
[[gnu::const]] Index block_dim();
[[gnu::const]] Index grid_dim();
[[gnu::const]] unsigned char* arena();

void check_address(const void* address, int bytes, Space space, bool write);
uint32_t shuffle(uint32_t value, int source_lane, int line);
uint32_t own_lane();
uint32_t ballot(bool predicate, int line);
void sync_warp(int line);
void sync_threads(int line);
bool sync_threads_any(bool predicate, int line);
void barrier_sync(int id, int count, int line);
void barrier_arrive(int id, int count, int line);
void fence_device();
void cluster_sync(int line);
void cluster_load(void* dst, const void* src, int bytes, int rank);
void copy_start(void* dst, const void* src, int bytes, bool predicate);
void copy_commit();
void copy_wait(int groups);
void ldmatrix(uint32_t* dst, const void* row, int matrices, bool transposed, int line);
uint32_t movmatrix(uint32_t src, int line);
void mma(float* d, const uint32_t* a, uint32_t b0, uint32_t b1, Operand operand, int line);
// A bulk tensor copy; dimensions from the contiguous one outwards.
struct BulkCopy {
  unsigned char* dst;
  const unsigned char* tensor;
  int rank, element, swizzle;                       // element and swizzle in bytes
  int64_t extents[5], strides[5], boxes[5], at[5];  // elements, bytes, elements, elements
};
void mbarrier_init(uint64_t* barrier, int count);
void mbarrier_expect(uint64_t* barrier, int bytes);
void mbarrier_arrive(uint64_t* barrier);
void mbarrier_wait(uint64_t* barrier, int parity);
void bulk_copy(const BulkCopy& copy, uint64_t* barrier);

void grid_wait();

void fence_async_proxy();
void warpgroup_fence(int line);
void warpgroup_commit(int line);
void warpgroup_wait(int line);
void warpgroup_mma(float (*d)[4], const uint32_t* a, uint64_t a_tile, uint64_t b_tile, int columns,
                   bool across_a, bool across_b, bool add, Operand operand, int line);
float atomic_add(float* address, float value);
uint32_t atomic_add(uint32_t* address, uint32_t value);
uint32_t atomic_increment(uint32_t* address, uint32_t limit);

// One row of the table by which the runtime finds a kernel.
struct Kernel {
  const char* name;
  int unit;
  int parameters;
  void (*call)(void* const* arguments);
};

// Calls a kernel with pointers from an array.
template <auto kKernel>
struct Invoke;
template <class... P, void (*kKernel)(P...)>
struct Invoke<kKernel> {
  static constexpr int kParameters = sizeof...(P);
  static void call(void* const* arguments) {
    call_each(arguments, std::index_sequence_for<P...>{});
  }
  template <std::size_t... kIndex>
  static void call_each(void* const* arguments, std::index_sequence<kIndex...>) {
    kKernel(convert<P>(arguments[kIndex])...);
  }
  // A pointer, or what holds one: a tensor map.
  template <class T>
  static T convert(void* argument) {
    if constexpr (std::is_pointer_v<T>) {
      return static_cast<T>(argument);
    } else {
      return T{static_cast<const unsigned char*>(argument)};
    }
  }
};

}  // namespace emulator

#define threadIdx (::sd::emulator::thread_index())
#define blockIdx (::sd::emulator::block_index())
#define blockDim (::sd::emulator::block_dim())
#define gridDim (::sd::emulator::grid_dim())

// --- shared memory ---

inline unsigned char* shared_arena() { return emulator::arena(); }

// --- warps ---

template <class T>
inline T shfl_idx(T value, int lane, int line = __builtin_LINE()) {
  static_assert(sizeof(T) == 4, "shuffles move words");
  uint32_t word;
  std::memcpy(&word, &value, 4);
  word = emulator::shuffle(word, lane & 31, line);
  std::memcpy(&value, &word, 4);
  return value;
}
template <class T>
inline T shfl_xor(T value, int mask, int line = __builtin_LINE()) {
  return shfl_idx(value, static_cast<int>(emulator::own_lane()) ^ mask, line);
}
inline uint32_t ballot(bool predicate, int line = __builtin_LINE()) {
  return emulator::ballot(predicate, line);
}
inline bool vote_any(bool predicate, int line = __builtin_LINE()) {
  return emulator::ballot(predicate, line) != 0;
}
inline bool vote_all(bool predicate, int line = __builtin_LINE()) {
  return emulator::ballot(predicate, line) == 0xffffffffu;
}

// --- barriers ---

inline void sync_warp(int line = __builtin_LINE()) { emulator::sync_warp(line); }
inline void sync_threads(int line = __builtin_LINE()) { emulator::sync_threads(line); }
inline bool sync_threads_any(bool predicate, int line = __builtin_LINE()) {
  return emulator::sync_threads_any(predicate, line);
}
inline void barrier_sync(int id, int count, int line = __builtin_LINE()) {
  emulator::barrier_sync(id, count, line);
}
inline void barrier_arrive(int id, int count, int line = __builtin_LINE()) {
  emulator::barrier_arrive(id, count, line);
}

// --- global and shared memory ---

namespace emulator {

template <class V>
inline void check(const void* address, Space space, bool write) {
  constexpr int kBytes = sizeof(V);
  static_assert(kBytes == 1 || kBytes == 2 || kBytes == 4 || kBytes == 8 || kBytes == 16,
                "a load or store has 1, 2, 4, 8 or 16 bytes");
#ifdef SUNDOG_EMULATOR_CHECKED
  check_address(address, kBytes, space, write);
#else
  (void)space;
  if (reinterpret_cast<uintptr_t>(address) % kBytes != 0) {
    check_address(address, kBytes, space, write);
  }
#endif
}

}  // namespace emulator

template <class V>
inline void load_global(V& dst, const void* src) {
  emulator::check<V>(src, emulator::Space::kGlobal, false);
  dst = *static_cast<const V*>(src);
}
template <class V>
inline void load_stream(V& dst, const void* src, bool there = true) {
  dst = V{};
  if (there) load_global(dst, src);
}
inline void loads_issued() {}
template <class V>
inline void store_global(void* dst, const V& src) {
  emulator::check<V>(dst, emulator::Space::kGlobal, true);
  *static_cast<V*>(dst) = src;
}
template <class V>
inline void store_stream(void* dst, const V& src) {
  store_global(dst, src);
}
template <class V>
inline void load_shared(V& dst, const void* src) {
  emulator::check<V>(src, emulator::Space::kShared, false);
  dst = *static_cast<const V*>(src);
}
template <class V>
inline void store_shared(void* dst, const V& src) {
  emulator::check<V>(dst, emulator::Space::kShared, true);
  *static_cast<V*>(dst) = src;
}

// --- runs that begin anywhere ---

template <class T, int kCount>
struct Window {
  static constexpr int kWord = 16 / sizeof(T);
  static_assert(sizeof(T) <= 4 && kCount <= kWord, "a window has two words");
  T at[2 * kWord];
};
template <class T, int kCount, class Index>
inline void load_window(Window<T, kCount>& window, const T* tensor, Index index, int64_t count) {
  constexpr int kWord = Window<T, kCount>::kWord;
  const Index within = index & (kWord - 1), first = index - within;
  const int64_t length = within > kWord - kCount ? 2 * kWord : kWord;
  emulator::check_address(tensor + first, first + kWord <= count ? 16 : static_cast<int>(sizeof(T)),
                          emulator::Space::kGlobal, false);
  for (int64_t i = 0; i < 2 * kWord; ++i) {
    window.at[i] = i < length && first + i < count ? tensor[first + i] : T{};
  }
}
template <class V, class T, int kCount, class Index>
inline void align_window(V& dst, const Window<T, kCount>& window, Index index) {
  const int first = static_cast<int>(index & (Window<T, kCount>::kWord - 1));
  for (int i = 0; i < kCount; ++i) dst[i] = window.at[first + i];
}

inline Real atomic_add(Real* address, Real value) {
#ifdef SUNDOG_EMULATOR_RESIDUES
  return Residue::of(emulator::atomic_add_residue(&address->code, value.code));
#else
  return emulator::atomic_add(address, value);
#endif
}
inline uint32_t atomic_add(uint32_t* address, uint32_t value) {
  return emulator::atomic_add(address, value);
}
inline uint32_t atomic_increment(uint32_t* address, uint32_t limit) {
  return emulator::atomic_increment(address, limit);
}
inline void fence_device() { emulator::fence_device(); }

// --- clusters ---

inline void cluster_sync(int line = __builtin_LINE()) { emulator::cluster_sync(line); }
template <class V>
inline void load_cluster(V& dst, const void* src, int rank) {
  V value;  // of which the instrumented kernel knows nothing
  emulator::cluster_load(&value, src, sizeof(V), rank);
  dst = value;
}
inline Real read_cluster(const Real* src, int rank) {
  Real value;
  load_cluster(value, src, rank);
  return value;
}

// --- asynchronous copies ---

template <int kBytes>
inline void cp_async(void* dst, const void* src, bool predicate = true) {
  static_assert(kBytes == 4 || kBytes == 8 || kBytes == 16, "cp.async copies 4, 8 or 16 bytes");
  emulator::copy_start(dst, src, kBytes, predicate);
}
inline void cp_async_commit() { emulator::copy_commit(); }
template <int kGroups>
inline void cp_async_wait() {
  emulator::copy_wait(kGroups);
}

// --- matrices ---

inline void ldmatrix_x1(uint32_t (&dst)[1], const void* row, int line = __builtin_LINE()) {
  emulator::ldmatrix(dst, row, 1, false, line);
}
inline void ldmatrix_x2(uint32_t (&dst)[2], const void* row, int line = __builtin_LINE()) {
  emulator::ldmatrix(dst, row, 2, false, line);
}
inline void ldmatrix_x4(uint32_t (&dst)[4], const void* row, int line = __builtin_LINE()) {
  emulator::ldmatrix(dst, row, 4, false, line);
}
inline void ldmatrix_x1_trans(uint32_t (&dst)[1], const void* row, int line = __builtin_LINE()) {
  emulator::ldmatrix(dst, row, 1, true, line);
}
inline void ldmatrix_x2_trans(uint32_t (&dst)[2], const void* row, int line = __builtin_LINE()) {
  emulator::ldmatrix(dst, row, 2, true, line);
}
inline void ldmatrix_x4_trans(uint32_t (&dst)[4], const void* row, int line = __builtin_LINE()) {
  emulator::ldmatrix(dst, row, 4, true, line);
}
inline uint32_t movmatrix_trans(uint32_t src, int line = __builtin_LINE()) {
  return emulator::movmatrix(src, line);
}

template <class T>
inline void mma_m16n8k16(Real (&d)[4], const uint32_t (&a)[4], uint32_t b0, uint32_t b1,
                         int line = __builtin_LINE());
template <>
inline void mma_m16n8k16<f16>(Real (&d)[4], const uint32_t (&a)[4], uint32_t b0, uint32_t b1,
                              int line) {
  emulator::mma(emulator::raw(d), a, b0, b1, emulator::kF16Operand, line);
}
template <>
inline void mma_m16n8k16<bf16>(Real (&d)[4], const uint32_t (&a)[4], uint32_t b0, uint32_t b1,
                               int line) {
  emulator::mma(emulator::raw(d), a, b0, b1, emulator::kBf16Operand, line);
}
inline void mma_m16n8k8_tf32(Real (&d)[4], const uint32_t (&a)[4], uint32_t b0, uint32_t b1,
                             int line = __builtin_LINE()) {
  emulator::mma(emulator::raw(d), a, b0, b1, emulator::kTf32Operand, line);
}

// --- barriers that count bytes, bulk tensor copies ---

inline void mbarrier_init(uint64_t* barrier, int count) { emulator::mbarrier_init(barrier, count); }
inline void mbarrier_init_fence() {}
inline void mbarrier_expect(uint64_t* barrier, int bytes) {
  emulator::mbarrier_expect(barrier, bytes);
}
inline void mbarrier_arrive(uint64_t* barrier) { emulator::mbarrier_arrive(barrier); }
inline void mbarrier_wait(uint64_t* barrier, int parity) {
  emulator::mbarrier_wait(barrier, parity);
}
template <int64_t kExtent, int64_t kStride, int64_t kBox>
struct Dim {
  static constexpr int64_t extent = kExtent, stride = kStride, box = kBox;
};
template <class T, int64_t kOffset, int kSwizzle, class... Dims>
struct TensorMap {
  const unsigned char* pointer;
};
template <class T, int64_t kOffset, int kSwizzle, class... Dims, class... At>
inline void bulk_copy(void* dst, const TensorMap<T, kOffset, kSwizzle, Dims...>& map,
                      uint64_t* barrier, At... at) {
  static_assert(sizeof...(At) == sizeof...(Dims) && sizeof...(At) <= 5, "a coordinate a dimension");
  constexpr int kSize = sizeof(T);
  const emulator::BulkCopy copy{static_cast<unsigned char*>(dst),
                                map.pointer + kOffset * kSize,
                                sizeof...(Dims),
                                kSize,
                                kSwizzle,
                                {Dims::extent...},
                                {Dims::stride * kSize...},
                                {Dims::box...},
                                {at...}};
  emulator::bulk_copy(copy, barrier);
}

// --- products of warp groups ---

inline void fence_async_proxy() { emulator::fence_async_proxy(); }
template <int kRow>
inline uint64_t matrix_tile(const void* first, int across) {
  static_assert(kRow == 32 || kRow == 64 || kRow == 128, "rows of 32, 64 or 128 bytes");
  const uint64_t mode = kRow == 128 ? 1 : kRow == 64 ? 2 : 3;
  const auto offset =
      static_cast<uint64_t>(static_cast<const unsigned char*>(first) - emulator::arena());
  return mode << 62 | uint64_t{8 * kRow / 16} << 32 |
         static_cast<uint64_t>(across / 16 & 0x3fff) << 16 | (offset & 0x3ffff) >> 4;
}
inline uint64_t matrix_tile_at(uint64_t tile, int bytes) {
  return tile + static_cast<uint64_t>(bytes / 16);
}
inline void warpgroup_fence(int line = __builtin_LINE()) { emulator::warpgroup_fence(line); }
inline void warpgroup_commit(int line = __builtin_LINE()) { emulator::warpgroup_commit(line); }
template <int kCount>
inline void warpgroup_wait(Real (&d)[kCount][4], int line = __builtin_LINE()) {
  emulator::warpgroup_wait(line);
  asm volatile("" : : "r"(&d[0][0]) : "memory");  // other lanes wrote d
}
template <class T>
inline constexpr emulator::Operand kOperandOf =
    std::is_same_v<T, f16> ? emulator::kF16Operand : emulator::kBf16Operand;
template <class T, int kN, bool kAcrossA, bool kAcrossB>
inline void warpgroup_mma(Real (*d)[4], uint64_t a, uint64_t b, bool add,
                          int line = __builtin_LINE()) {
  static_assert(kN == 8 || kN == 16 || kN == 32 || kN == 64 || kN == 128, "no such width");
  emulator::warpgroup_mma(reinterpret_cast<float(*)[4]>(d), nullptr, a, b, kN, kAcrossA, kAcrossB,
                          add, kOperandOf<T>, line);
}
template <class T, int kN, bool kAcrossB>
inline void warpgroup_mma(Real (*d)[4], const uint32_t (&a)[4], uint64_t b, bool add,
                          int line = __builtin_LINE()) {
  static_assert(kN == 8 || kN == 16 || kN == 32 || kN == 64 || kN == 128, "no such width");
  emulator::warpgroup_mma(reinterpret_cast<float(*)[4]>(d), a, 0, b, kN, false, kAcrossB, add,
                          kOperandOf<T>, line);
}

// --- programmatic dependent launch ---

inline void grid_launch_dependents() {}  // a dependent kernel is taken to start early in any case
inline void grid_wait() { emulator::grid_wait(); }

}  // namespace sd

#ifdef SUNDOG_EMULATOR_RESIDUES
#define float ::sd::Residue
#define double ::sd::Wide
#endif

#endif  // SUNDOG_EMULATOR_H
