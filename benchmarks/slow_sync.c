/* SPDX-License-Identifier: Apache-2.0
 *
 * A disk whose sync takes as long as SLOW_SYNC_US says, below every library of the process:
 * preloaded, so that SQLite's syncs and those of Python wait alike.
 */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <stdlib.h>
#include <unistd.h>

static void wait_as_a_disk_would(void) {
    const char *text = getenv("SLOW_SYNC_US");
    usleep(text ? (useconds_t)atoi(text) : 2000);
}

int fsync(int fd) {
    static int (*real)(int);
    if (!real) real = (int (*)(int))dlsym(RTLD_NEXT, "fsync");
    wait_as_a_disk_would();
    return real(fd);
}

int fdatasync(int fd) {
    static int (*real)(int);
    if (!real) real = (int (*)(int))dlsym(RTLD_NEXT, "fdatasync");
    wait_as_a_disk_would();
    return real(fd);
}
