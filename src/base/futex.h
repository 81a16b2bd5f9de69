/* Words that threads wait on: bounded spinning, then sleep in the kernel.
 *
 * The pattern everywhere: whoever changes the word wakes only when somebody said that it sleeps, because a wake-up is a system
 * call. Spinning pays only where the other side has a core of its own (spin_is_useful). */
#ifndef BASE_FUTEX_H
#define BASE_FUTEX_H

#include <linux/futex.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

enum { SPIN_NANOSECONDS = 50000 };

static inline int64_t clock_nanoseconds(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (int64_t)now.tv_sec * 1000000000 + now.tv_nsec;
}

static inline void cpu_relax(void)
{
#if defined(__x86_64__)
    __builtin_ia32_pause();
#elif defined(__aarch64__)
    __asm__ volatile("yield");
#endif
}

/* Sleeps while *word == seen, at most until `deadline` (clock_nanoseconds; negative: for ever). May return early. */
static inline void futex_sleep(_Atomic uint32_t *word, uint32_t seen, int64_t deadline)
{
    struct timespec until = {.tv_sec = deadline / 1000000000, .tv_nsec = deadline % 1000000000};
    syscall(SYS_futex, word, FUTEX_WAIT_BITSET_PRIVATE, seen, deadline < 0 ? NULL : &until, NULL, FUTEX_BITSET_MATCH_ANY);
}

static inline void futex_wake(_Atomic uint32_t *word, int sleepers)
{
    syscall(SYS_futex, word, FUTEX_WAKE_PRIVATE, sleepers, NULL, NULL, 0);
}

/* True as soon as done(argument); false when SPIN_NANOSECONDS passed. Offers the core to others every microsecond or two: the
 * application's threads mustn't wait for one that only waits. */
static inline __attribute__((always_inline)) bool spin_until(bool (*done)(const void *argument), const void *argument)
{
    const int64_t start = clock_nanoseconds();
    do {
        for (int i = 0; i < 64; ++i) {
            if (done(argument))
                return true;
            cpu_relax();
        }
        sched_yield();
    } while (clock_nanoseconds() - start < SPIN_NANOSECONDS);
    return false;
}

struct word_seen {
    _Atomic uint32_t *word;
    uint32_t seen;
};

static inline bool word_changed(const void *argument)
{
    const struct word_seen *const it = argument;
    return atomic_load_explicit(it->word, memory_order_acquire) != it->seen;
}

static inline bool spin_until_changed(_Atomic uint32_t *word, uint32_t seen)
{
    const struct word_seen it = {word, seen};
    return spin_until(word_changed, &it);
}

/* May this process use more than one core (affinity mask, container's quota)? Read once. */
bool spin_is_useful(void);

#endif
