/* Network operators give the same bits with any number of pool threads: this program runs itself with several sizes of the pool
 * and compares what it prints (one hash an output). */
#include <unistd.h>

#include "operators/tensors.h"

static uint64_t seed = 1;

static void print_hash(const char *what, const struct tensor *t)
{
    uint64_t hash = 14695981039346656037u;
    for (int64_t i = 0; i < t->room * (int64_t)dtype_bytes(t->dtype); ++i)
        hash = (hash ^ t->memory[i]) * 1099511628211u;
    printf("%s %016llx\n", what, (unsigned long long)hash);
}

static void hash_convolution(enum dtype dtype, int64_t images, int64_t in, int64_t out, int64_t taps, int64_t stride)
{
    const int64_t size = 17, out_size = (size + 2 - taps) / stride + 1, ones[] = {1, 1}, strides[] = {stride, stride};
    const bool wanted[] = {true, true, true};
    aclBoolArray *const mask = aclCreateBoolArray(wanted, 3);
    aclIntArray *const one = aclCreateIntArray(ones, 2), *const step = aclCreateIntArray(strides, 2);
    struct tensor x = tensor_random(dtype, PLAIN, &seed, SIZES(images, in, size, size)),
                  w = tensor_random(dtype, PLAIN, &seed, SIZES(out, in, taps, taps));
    struct tensor y = tensor_new(dtype, PLAIN, SIZES(images, out, out_size, out_size)),
                  dx = tensor_new(dtype, PLAIN, SIZES(images, in, size, size));
    struct tensor dw = tensor_new(dtype, PLAIN, SIZES(out, in, taps, taps)), db = tensor_new(dtype, PLAIN, SIZES(out));
    struct tensor mean = tensor_new(DTYPE_F32, PLAIN, SIZES(out)), invstd = tensor_new(DTYPE_F32, PLAIN, SIZES(out));
    struct tensor z = tensor_new(dtype, PLAIN, SIZES(images, out, out_size, out_size));
    RUN(Convolution, x.handle, w.handle, NULL, step, one, one, false, NULL, 1, y.handle, 0);
    RUN(ConvolutionBackward, y.handle, x.handle, w.handle, NULL, step, one, one, false, NULL, 1, mask, 0, dx.handle, dw.handle,
        db.handle);
    RUN(BatchNorm, y.handle, NULL, NULL, NULL, NULL, true, .1, 1e-5, z.handle, mean.handle, invstd.handle);
    struct tensor *const all[] = {&x, &w, &y, &dx, &dw, &db, &mean, &invstd, &z};
    for (int i = 2; i < 9; ++i)
        print_hash("convolution", all[i]);
    for (int i = 0; i < 9; ++i)
        tensor_free(all[i]);
    aclDestroyBoolArray(mask);
    aclDestroyIntArray(one);
    aclDestroyIntArray(step);
}

static void hash_product(enum dtype dtype, int64_t m, int64_t n, int64_t k)
{
    double alpha_value = .7;
    aclScalar *const alpha = aclCreateScalar(&alpha_value, ACL_DOUBLE);
    struct tensor a = tensor_random(dtype, PLAIN, &seed, SIZES(m, k)), b = tensor_random(dtype, PLAIN, &seed, SIZES(k, n));
    struct tensor row = tensor_random(dtype, PLAIN, &seed, SIZES(n)), out = tensor_new(dtype, PLAIN, SIZES(m, n));
    RUN(Addmm, row.handle, a.handle, b.handle, alpha, alpha, out.handle, 0);
    print_hash("product", &out);
    struct tensor loss = tensor_new(dtype, PLAIN, 0, NULL);
    RUN(MseLoss, out.handle, row.handle, 1, loss.handle);
    print_hash("loss", &loss);
    aclDestroyScalar(alpha);
    struct tensor *const all[] = {&a, &b, &row, &out, &loss};
    for (int i = 0; i < 5; ++i)
        tensor_free(all[i]);
}

static void print_all(void)
{
    static const enum dtype types[] = {DTYPE_F32, DTYPE_F64, DTYPE_BF16};
    for (int t = 0; t < 3; ++t) {
        for (int64_t stride = 1; stride < 3; ++stride) {
            hash_convolution(types[t], 9, 32, 32, 3, stride);
            hash_convolution(types[t], 1, 16, 24, 3, stride);
            hash_convolution(types[t], 5, 3, 30, 1, stride);
        }
        hash_product(types[t], 128, 512, 600);
        hash_product(types[t], 1, 700, 900);
        hash_product(types[t], 33, 1000, 10);
    }
}

static char *output_with(const char *program, const char *threads)
{
    enum { BYTES = 1 << 16 };
    char command[4200];
    snprintf(command, sizeof command, "NPU_POOL_THREADS=%s '%s' print", threads, program);
    FILE *const pipe = popen(command, "r");
    char *const text = calloc(BYTES, 1);
    CHECK(pipe && fread(text, 1, BYTES - 1, pipe) > 0, "%s printed nothing", command);
    CHECK(pipe && pclose(pipe) == 0, "%s failed", command);
    return text;
}

int main(int count, char **arguments)
{
    if (count > 1) {
        tensors_begin();
        print_all();
        return check_failures ? EXIT_FAILURE : EXIT_SUCCESS;
    }
    char program[4096] = {0};
    CHECK(readlink("/proc/self/exe", program, sizeof program - 1) > 0, "readlink");
    char *const one = output_with(program, "1"), *const two = output_with(program, "2"), *const five = output_with(program, "5");
    CHECK(strcmp(one, two) == 0, "1 and 2 threads differ:\n%s\n%s", one, two);
    CHECK(strcmp(one, five) == 0, "1 and 5 threads differ:\n%s\n%s", one, five);
    (void)arguments;
    free(one);
    free(two);
    free(five);
    return check_result();
}
