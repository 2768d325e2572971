/* For the processes that load this: a clock that can be set, and a disk that takes its time.
 * The file $TROUBLED holds two longs: seconds to add to CLOCK_REALTIME, milliseconds to add to each fsync.
 * What the kernel itself writes down, such as the times of files, is not touched. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <fcntl.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/time.h>
#include <time.h>
#include <unistd.h>

static const volatile long *troubles;

__attribute__((constructor)) static void map_troubles(void) {
    const char *path = getenv("TROUBLED");
    int fd = path ? open(path, O_RDONLY | O_CLOEXEC) : -1;
    if (fd < 0) return;
    void *at = mmap(NULL, 2 * sizeof(long), PROT_READ, MAP_SHARED, fd, 0);
    if (at != MAP_FAILED) troubles = at;
    close(fd);
}

int clock_gettime(clockid_t which, struct timespec *now) {
    static int (*real)(clockid_t, struct timespec *);
    if (!real) real = dlsym(RTLD_NEXT, "clock_gettime");
    int answer = real(which, now);
    if (answer == 0 && which == CLOCK_REALTIME && troubles) now->tv_sec += troubles[0];
    return answer;
}

int gettimeofday(struct timeval *restrict now, void *restrict zone) {
    (void)zone;
    struct timespec exact;
    int answer = clock_gettime(CLOCK_REALTIME, &exact);
    now->tv_sec = exact.tv_sec;
    now->tv_usec = exact.tv_nsec / 1000;
    return answer;
}

time_t time(time_t *now) {
    struct timespec exact;
    clock_gettime(CLOCK_REALTIME, &exact);
    if (now) *now = exact.tv_sec;
    return exact.tv_sec;
}

static void wait_for_disk(void) {
    if (troubles && troubles[1]) usleep((useconds_t)troubles[1] * 1000);
}

int fsync(int fd) {
    static int (*real)(int);
    if (!real) real = dlsym(RTLD_NEXT, "fsync");
    wait_for_disk();
    return real(fd);
}

int fdatasync(int fd) {
    static int (*real)(int);
    if (!real) real = dlsym(RTLD_NEXT, "fdatasync");
    wait_for_disk();
    return real(fd);
}
