/* What differs between instruction sets: the vector width and the names of the tables.
 *
 * Compiled with -DISA=baseline|avx2|avx512|neon. Vector types wider than the machine's are catastrophically slow, so every
 * tile size derives from VECTOR_BYTES. */
#ifndef KERNELS_ISA_H
#define KERNELS_ISA_H

#include <stddef.h>
#include <stdint.h>

#ifndef ISA
#error "compile kernels with -DISA=<name>"
#endif

#define ISA_PASTE_(a, b) a##_##b
#define ISA_PASTE(a, b) ISA_PASTE_(a, b)
/* const struct gemm_kernels KERNEL_TABLE(gemm_kernels) = {...} */
#define KERNEL_TABLE(name) ISA_PASTE(name, ISA)

#if defined(__AVX512F__)
enum { VECTOR_BYTES = 64 };
#define VECTOR_SIZE 64
#elif defined(__AVX2__)
enum { VECTOR_BYTES = 32 };
#define VECTOR_SIZE 32
#else
enum { VECTOR_BYTES = 16 };
#define VECTOR_SIZE 16
#endif

typedef float vector_f32 __attribute__((vector_size(VECTOR_SIZE), aligned(4), may_alias));
typedef double vector_f64 __attribute__((vector_size(VECTOR_SIZE), aligned(8), may_alias));
typedef int32_t vector_i32 __attribute__((vector_size(VECTOR_SIZE), aligned(4), may_alias));
enum { LANES_F32 = VECTOR_BYTES / 4, LANES_F64 = VECTOR_BYTES / 8 };

/* Before a loop whose iterations don't depend on each other, whatever its pointers may look like. */
#if defined(__clang__)
#define INDEPENDENT_ITERATIONS _Pragma("clang loop vectorize(assume_safety)")
#else
#define INDEPENDENT_ITERATIONS _Pragma("GCC ivdep")
#endif

/* The elements of two vectors at constant places, in the two compilers' words; index_type: of GCC's places. */
#ifdef __clang__
#define VECTOR_SHUFFLE(x, y, index_type, ...) __builtin_shufflevector(x, y, __VA_ARGS__)
#else
#define VECTOR_SHUFFLE(x, y, index_type, ...) __builtin_shuffle(x, y, (index_type){__VA_ARGS__})
#endif

/* The elements of one vector at places known at run time only (modulo its length). */
#ifdef __clang__
#define VECTOR_PICK(x, places) __builtin_shufflevector(x, places)
#else
#define VECTOR_PICK(x, places) __builtin_shuffle(x, places)
#endif

#endif
