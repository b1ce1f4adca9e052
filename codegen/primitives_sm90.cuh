// Primitives of sm_90a, behind primitives.cuh: products of warp groups.  Under a plain C++ compiler
// they come from the emulator.
#if !defined(SUNDOG_PRIMITIVES_SM90_CUH) && !defined(SUNDOG_EMULATOR)
#define SUNDOG_PRIMITIVES_SM90_CUH

#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ < 900
#error "made for sm_90a: -gencode=arch=compute_90a,code=sm_90a"
#endif

namespace sd {

// The numbers of CUtensorMapDataType; what has one byte is a byte.
template <class T>
constexpr int kTensorType = 0;
template <>
constexpr int kTensorType<f16> = 6;
template <>
constexpr int kTensorType<float> = 7;
template <>
constexpr int kTensorType<bf16> = 9;

// What threads wrote to shared memory (cp_async included, behind its wait) is seen, after a barrier
// behind this, by the units that read it without threads: products of warp groups, bulk copies.
SD_INLINE void fence_async_proxy() { asm volatile("fence.proxy.async.shared::cta;" ::: "memory"); }

// --- clusters ---

// Waits for all threads of the cluster that have not returned, and orders shared and global memory
// among them; a warp comes as one.
SD_INLINE void cluster_sync() {
  asm volatile(
      "barrier.cluster.arrive.release.aligned;\n"
      "barrier.cluster.wait.acquire.aligned;" ::
          : "memory");
}

namespace detail {

SD_INLINE void load_cluster(uint32_t& dst, uint32_t address) {
  asm volatile("ld.shared::cluster.u32 %0, [%1];" : "=r"(dst) : "r"(address) : "memory");
}
SD_INLINE void load_cluster(uint2& dst, uint32_t address) {
  asm volatile("ld.shared::cluster.v2.u32 {%0, %1}, [%2];"
               : "=r"(dst.x), "=r"(dst.y)
               : "r"(address)
               : "memory");
}
SD_INLINE void load_cluster(uint4& dst, uint32_t address) {
  asm volatile("ld.shared::cluster.v4.u32 {%0, %1, %2, %3}, [%4];"
               : "=r"(dst.x), "=r"(dst.y), "=r"(dst.z), "=r"(dst.w)
               : "r"(address)
               : "memory");
}

}  // namespace detail

// One load of 4, 8 or 16 bytes of what lies in the arena of the cluster's block `rank` where `src`
// points to in this one's: behind a cluster_sync of both, and in front of another one.
template <class V>
SD_INLINE void load_cluster(V& dst, const void* src, int rank) {
  uint32_t address;
  asm("mapa.shared::cluster.u32 %0, %1, %2;" : "=r"(address) : "r"(shared_address(src)), "r"(rank));
  typename detail::Word<sizeof(V)>::Type word;
  detail::load_cluster(word, address);
  memcpy(&dst, &word, sizeof(V));
}
SD_INLINE float read_cluster(const float* src, int rank) {
  float value;
  load_cluster(value, src, rank);
  return value;
}

// --- barriers in shared memory, eight bytes each ---

// One that completes a phase when `count` arrivals and all bytes expected have come; then the next
// phase begins.  Phases are numbered from 0; a parity is that of a number.
SD_INLINE void mbarrier_init(uint64_t* barrier, int count) {
  asm volatile("mbarrier.init.shared::cta.b64 [%0], %1;" ::"r"(shared_address(barrier)), "r"(count)
               : "memory");
}
// Behind the last mbarrier_init of a thread, in front of the barrier of the block.
SD_INLINE void mbarrier_init_fence() {
  asm volatile("fence.mbarrier_init.release.cluster;" ::: "memory");
}
// Arrives, and expects so many bytes of copies in this phase.
SD_INLINE void mbarrier_expect(uint64_t* barrier, int bytes) {
  asm volatile(
      "mbarrier.arrive.expect_tx.shared::cta.b64 _, [%0], %1;" ::"r"(shared_address(barrier)),
      "r"(bytes)
      : "memory");
}
SD_INLINE void mbarrier_arrive(uint64_t* barrier) {
  asm volatile("mbarrier.arrive.shared::cta.b64 _, [%0];" ::"r"(shared_address(barrier))
               : "memory");
}
// Waits until the phase of that parity is complete: of a new barrier that of parity 1 is.
SD_INLINE void mbarrier_wait(uint64_t* barrier, int parity) {
  const uint32_t address = shared_address(barrier);
  uint32_t done;
  do {
    asm volatile(
        "{\n.reg .pred p;\nmbarrier.try_wait.parity.shared::cta.b64 p, [%1], %2;\n"
        "selp.u32 %0, 1, 0, p;\n}"
        : "=r"(done)
        : "r"(address), "r"(parity)
        : "memory");
  } while (done == 0);
}

// --- bulk tensor copies: one thread starts each ---

// A dimension of a tensor in device memory: its extent, its stride in elements, and how many
// elements of it one copy takes.
template <int64_t kExtent, int64_t kStride, int64_t kBox>
struct Dim {
  static constexpr int64_t extent = kExtent, stride = kStride, box = kBox;
};
// What the copy engine has to know of a tensor of T whose first element lies kOffset elements
// behind its pointer; the first dimension is the contiguous one.  Rows of kSwizzle (32, 64, 128)
// bytes are swizzled as matrix_tile has it; 0: not.
template <class T, int64_t kOffset, int kSwizzle, class... Dims>
struct alignas(64) TensorMap {
  uint64_t words[16];
};

// Starts the copy of a box to `dst` (a multiple of 128 bytes); `at` is its first element, by
// dimension.  A swizzle goes by addresses: rows are counted from a multiple of 8 kSwizzle.  What
// lies outside of the tensor arrives as zeros.  The bytes of the whole box count in at `barrier`.
template <class Map>
SD_INLINE void bulk_copy(void* dst, const Map& map, uint64_t* barrier, int c0, int c1) {
  asm volatile(
      "cp.async.bulk.tensor.2d.shared::cluster.global.tile.mbarrier::complete_tx::bytes [%0], "
      "[%1, {%3, %4}], [%2];" ::"r"(shared_address(dst)),
      "l"(&map), "r"(shared_address(barrier)), "r"(c0), "r"(c1)
      : "memory");
}
template <class Map>
SD_INLINE void bulk_copy(void* dst, const Map& map, uint64_t* barrier, int c0, int c1, int c2) {
  asm volatile(
      "cp.async.bulk.tensor.3d.shared::cluster.global.tile.mbarrier::complete_tx::bytes [%0], "
      "[%1, {%3, %4, %5}], [%2];" ::"r"(shared_address(dst)),
      "l"(&map), "r"(shared_address(barrier)), "r"(c0), "r"(c1), "r"(c2)
      : "memory");
}
template <class Map>
SD_INLINE void bulk_copy(void* dst, const Map& map, uint64_t* barrier, int c0, int c1, int c2,
                         int c3) {
  asm volatile(
      "cp.async.bulk.tensor.4d.shared::cluster.global.tile.mbarrier::complete_tx::bytes [%0], "
      "[%1, {%3, %4, %5, %6}], [%2];" ::"r"(shared_address(dst)),
      "l"(&map), "r"(shared_address(barrier)), "r"(c0), "r"(c1), "r"(c2), "r"(c3)
      : "memory");
}
template <class Map>
SD_INLINE void bulk_copy(void* dst, const Map& map, uint64_t* barrier, int c0, int c1, int c2,
                         int c3, int c4) {
  asm volatile(
      "cp.async.bulk.tensor.5d.shared::cluster.global.tile.mbarrier::complete_tx::bytes [%0], "
      "[%1, {%3, %4, %5, %6, %7}], [%2];" ::"r"(shared_address(dst)),
      "l"(&map), "r"(shared_address(barrier)), "r"(c0), "r"(c1), "r"(c2), "r"(c3), "r"(c4)
      : "memory");
}

#ifndef __CUDACC_RTC__
// Fills `map` for the tensor behind `pointer`, through the driver's own function.
template <class T, int64_t kOffset, int kSwizzle, class... Dims>
inline cudaError_t encode(TensorMap<T, kOffset, kSwizzle, Dims...>& map, const void* pointer) {
  using Encode = int (*)(void*, int, unsigned, void*, const uint64_t*, const uint64_t*,
                         const unsigned*, const unsigned*, int, int, int, int);
  static Encode function = nullptr;
  if (function == nullptr) {
    void* found = nullptr;
    cudaDriverEntryPointQueryResult result;
#if CUDART_VERSION >= 12050
    if (cudaError_t error = cudaGetDriverEntryPointByVersion("cuTensorMapEncodeTiled", &found,
                                                             12000, cudaEnableDefault, &result)) {
      return error;
    }
#else
    if (cudaError_t error =
            cudaGetDriverEntryPoint("cuTensorMapEncodeTiled", &found, cudaEnableDefault, &result)) {
      return error;
    }
#endif
    if (found == nullptr) return cudaErrorNotSupported;
    function = reinterpret_cast<Encode>(found);
  }
  constexpr unsigned kRank = sizeof...(Dims);
  const uint64_t extents[] = {static_cast<uint64_t>(Dims::extent)...};
  const uint64_t strides[] = {static_cast<uint64_t>(Dims::stride) * sizeof(T)...};
  const unsigned boxes[] = {static_cast<unsigned>(Dims::box)...};
  const unsigned steps[] = {static_cast<unsigned>(Dims::box > 0)...};
  const int swizzle = kSwizzle == 128 ? 3 : kSwizzle == 64 ? 2 : kSwizzle == 32 ? 1 : 0;
  T* first = const_cast<T*>(static_cast<const T*>(pointer)) + kOffset;
  const int error = function(&map, kTensorType<T>, kRank, first, extents, strides + 1, boxes, steps,
                             0, swizzle, /*L2 promotion, 128 bytes*/ 2, 0);
  return error == 0 ? cudaSuccess : cudaErrorInvalidValue;
}
#endif

// --- products of a warp group: four neighbouring warps, the first a multiple of four ---

#if defined(__CUDA_ARCH__) && !defined(__CUDA_ARCH_FEAT_SM90_ALL)
#error "made for sm_90a alone: -gencode=arch=compute_90a,code=sm_90a"
#endif

// How an operand lies in the arena, for the instruction: rows of kRow bytes (32, 64 or 128), in
// groups of eight, 16-byte word w of row r at w ^ (r * kRow / 128 % (kRow / 16)); `first` is a word
// of such a tile, whose rows start at a multiple of 8 kRow bytes.  Along K in the rows: `across`
// does not matter.  Across K (rows are steps of K): `across` is the distance in bytes of the next
// kRow bytes of a row.
template <int kRow>
SD_INLINE uint64_t matrix_tile(const void* first, int across) {
  static_assert(kRow == 32 || kRow == 64 || kRow == 128, "rows of 32, 64 or 128 bytes");
  const uint64_t mode = kRow == 128 ? 1 : kRow == 64 ? 2 : 3;
  return (mode << 62) | (static_cast<uint64_t>(8 * kRow / 16) << 32) |
         (static_cast<uint64_t>(across / 16 & 0x3fff) << 16) |
         ((shared_address(first) & 0x3ffff) >> 4);
}
// The same so many bytes further on.
SD_INLINE uint64_t matrix_tile_at(uint64_t tile, int bytes) {
  return tile + static_cast<uint64_t>(bytes / 16);
}

// Before the first product that reads registers written otherwise, accumulators included.
SD_INLINE void warpgroup_fence() { asm volatile("wgmma.fence.sync.aligned;" ::: "memory"); }
// Closes a group of products.
SD_INLINE void warpgroup_commit() { asm volatile("wgmma.commit_group.sync.aligned;" ::: "memory"); }
// Waits until all products are done; `d` are accumulators of some of them.
template <int kCount>
SD_INLINE void warpgroup_wait(float (&d)[kCount][4]) {
  asm volatile("wgmma.wait_group.sync.aligned 0;" ::: "memory");
#pragma unroll
  for (int i = 0; i < kCount; ++i) {
    asm volatile("" : "+f"(d[i][0]), "+f"(d[i][1]), "+f"(d[i][2]), "+f"(d[i][3])::"memory");
  }
}

namespace detail {

template <class T>
constexpr bool kIsBf16 = false;
template <>
constexpr bool kIsBf16<bf16> = true;

// One instruction of 64 x kN x 16: its registers, then the numbers of the operands behind them and
// the constraints of the registers.
template <int kN>
struct Product;
#define SD_SHARED(type, n, registers, a0, b0, use, ta, tb, ...)                      \
  asm volatile("{\n.reg .pred p;\nsetp.ne.b32 p, " use                               \
               ", 0;\nwgmma.mma_async.sync.aligned.m64n" #n "k16.f32." type "." type \
               " {" registers "}, " a0 ", " b0 ", p, 1, 1, " ta ", " tb ";\n}"       \
               : __VA_ARGS__                                                         \
               : "l"(a), "l"(b), "r"(add), "n"(kAcrossA), "n"(kAcrossB))
#define SD_MIXED(type, n, registers, a0, a1, a2, a3, b0, use, tb, ...)                           \
  asm volatile("{\n.reg .pred p;\nsetp.ne.b32 p, " use                                           \
               ", 0;\nwgmma.mma_async.sync.aligned.m64n" #n "k16.f32." type "." type             \
               " {" registers "}, {" a0 ", " a1 ", " a2 ", " a3 "}, " b0 ", p, 1, 1, " tb ";\n}" \
               : __VA_ARGS__                                                                     \
               : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "l"(b), "r"(add), "n"(kAcrossB))
#define SD_WIDTH(n, registers, i0, i1, i2, i3, i4, i5, i6, ...)                             \
  template <>                                                                               \
  struct Product<n> {                                                                       \
    template <class T, int kAcrossA, int kAcrossB>                                          \
    static SD_INLINE void run(float (*d)[4], uint64_t a, uint64_t b, int add) {             \
      if constexpr (kIsBf16<T>) {                                                           \
        SD_SHARED("bf16", n, registers, i0, i1, i2, i3, i4, __VA_ARGS__);                   \
      } else {                                                                              \
        SD_SHARED("f16", n, registers, i0, i1, i2, i3, i4, __VA_ARGS__);                    \
      }                                                                                     \
    }                                                                                       \
    template <class T, int kAcrossB>                                                        \
    static SD_INLINE void run(float (*d)[4], const uint32_t (&a)[4], uint64_t b, int add) { \
      if constexpr (kIsBf16<T>) {                                                           \
        SD_MIXED("bf16", n, registers, i0, i1, i2, i3, i4, i5, i6, __VA_ARGS__);            \
      } else {                                                                              \
        SD_MIXED("f16", n, registers, i0, i1, i2, i3, i4, i5, i6, __VA_ARGS__);             \
      }                                                                                     \
    }                                                                                       \
  };
#define SD_D(j) "+f"(d[j][0]), "+f"(d[j][1]), "+f"(d[j][2]), "+f"(d[j][3])
#define SD_D4(j) SD_D(j), SD_D(j + 1), SD_D(j + 2), SD_D(j + 3)
#define SD_R16 "%0, %1, %2, %3, %4, %5, %6, %7, %8, %9, %10, %11, %12, %13, %14, %15"
#define SD_R32 \
  SD_R16 ", %16, %17, %18, %19, %20, %21, %22, %23, %24, %25, %26, %27, %28, %29, %30, %31"
#define SD_R64                                                                            \
  SD_R32                                                                                  \
  ", %32, %33, %34, %35, %36, %37, %38, %39, %40, %41, %42, %43, %44, %45, %46, %47, %48" \
  ", %49, %50, %51, %52, %53, %54, %55, %56, %57, %58, %59, %60, %61, %62, %63"

SD_WIDTH(8, "%0, %1, %2, %3", "%4", "%5", "%6", "%7", "%8", "%9", "%10", SD_D(0))
SD_WIDTH(16, "%0, %1, %2, %3, %4, %5, %6, %7", "%8", "%9", "%10", "%11", "%12", "%13", "%14",
         SD_D(0), SD_D(1))
SD_WIDTH(32, SD_R16, "%16", "%17", "%18", "%19", "%20", "%21", "%22", SD_D4(0))
SD_WIDTH(64, SD_R32, "%32", "%33", "%34", "%35", "%36", "%37", "%38", SD_D4(0), SD_D4(4))
SD_WIDTH(128, SD_R64, "%64", "%65", "%66", "%67", "%68", "%69", "%70", SD_D4(0), SD_D4(4), SD_D4(8),
         SD_D4(12))

#undef SD_SHARED
#undef SD_MIXED
#undef SD_WIDTH
#undef SD_D
#undef SD_D4
#undef SD_R16
#undef SD_R32
#undef SD_R64

}  // namespace detail

// d[64, kN] (+)= a[64, 16] * b[16, kN] in f32, adding to d unless `add` is false; kN is 8, 16, 32,
// 64 or 128.  The warps hold 16 rows of d each, as mma_m16n8k16 would give them: d[j] are columns
// 8 j and on.  `kAcross`: the tile's rows are steps of K.  Starts the product; operands and d are
// not to be touched before warpgroup_wait.
template <class T, int kN, bool kAcrossA, bool kAcrossB>
SD_INLINE void warpgroup_mma(float (*d)[4], uint64_t a, uint64_t b, bool add) {
  detail::Product<kN>::template run<T, kAcrossA, kAcrossB>(d, a, b, add);
}
// The same with a in registers, as mma_m16n8k16 has it.
template <class T, int kN, bool kAcrossB>
SD_INLINE void warpgroup_mma(float (*d)[4], const uint32_t (&a)[4], uint64_t b, bool add) {
  detail::Product<kN>::template run<T, kAcrossB>(d, a, b, add);
}

}  // namespace sd

#endif  // SUNDOG_PRIMITIVES_SM90_CUH
