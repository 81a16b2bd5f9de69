/* The pointer set against a plain table: random additions and removals, with many pointers that share a home. */
#include "base/pointer_set.h"
#include "check.h"

enum { POINTERS = 3000 };

int main(void)
{
    struct pointer_set set = {0};
    static bool in[POINTERS];
    static char memory[POINTERS * 64];
    uint64_t state = 1;
    size_t count = 0;
    int wrong = 0;
    CHECK(!pointer_set_has(&set, memory) && !pointer_set_remove(&set, memory), "an empty set has nothing");
    for (int round = 0; round < 300000; ++round) {
        /* Grows, shrinks to a few, grows again. */
        const bool shrinking = round / 30000 % 2;
        const int i = (int)(check_random(&state) % POINTERS);
        void *const pointer = memory + 64 * i;
        wrong += pointer_set_has(&set, pointer) != in[i];
        if (check_random(&state) % 4 < (shrinking ? 1u : 3u)) {
            CHECK(pointer_set_add(&set, pointer), "add");
            count += !in[i];
            in[i] = true;
        } else {
            wrong += pointer_set_remove(&set, pointer) != in[i];
            count -= in[i];
            in[i] = false;
        }
        wrong += set.count != count;
    }
    for (int i = 0; i < POINTERS; ++i)
        wrong += pointer_set_has(&set, memory + 64 * i) != in[i];
    CHECK_INT(wrong, 0);
    CHECK(!pointer_set_has(&set, NULL), "NULL is never in");
    free(set.slots);
    return check_result();
}
