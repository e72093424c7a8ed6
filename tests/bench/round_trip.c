/* Prints how long a cache line takes from one processor to another and back, in ns: two threads hand a
   counter to and fro. What a second thread of the simulator gains depends on it: see second_thread.py. */
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <time.h>

enum { TRIPS = 50000, WARM = 5000 };

static _Alignas(128) uint32_t turn;

static void pass_on(uint32_t from)
{
    while (__atomic_load_n(&turn, __ATOMIC_ACQUIRE) != from) {
    }
    __atomic_store_n(&turn, from + 1, __ATOMIC_RELEASE);
}

static void *other(void *unused)
{
    for (uint32_t i = 0; i < TRIPS + WARM; i++) {
        pass_on(2 * i + 1);
    }
    return unused;
}

int main(void)
{
    pthread_t thread;
    struct timespec begin, end;
    if (pthread_create(&thread, NULL, other, NULL)) {
        return 1;
    }
    for (uint32_t i = 0; i < TRIPS + WARM; i++) {
        if (i == WARM) {
            clock_gettime(CLOCK_MONOTONIC, &begin);
        }
        pass_on(2 * i);
    }
    pthread_join(thread, NULL);
    clock_gettime(CLOCK_MONOTONIC, &end);
    printf("%.0f\n",
           ((double)(end.tv_sec - begin.tv_sec) * 1e9 + (double)(end.tv_nsec - begin.tv_nsec)) / TRIPS);
    return 0;
}
