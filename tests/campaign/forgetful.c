/* Records what a program does to the files below a folder, so that a power loss at any moment can be worked out.
 *
 * Preloaded into a program (LD_PRELOAD). Environment:
 *   FORGETFUL_FOLDER  the folder, absolute, without symbolic links
 *   FORGETFUL_LOG     the file that gets a record of every change below the folder; optional
 *   FORGETFUL_SPACE   a file of 8 bytes: how many bytes may still be written below the folder, then the disk is full;
 *                     counted down here, and changed by others at any time; optional
 *
 * A record is 32 bytes, little-endian: operation, descriptor, then a number and the lengths of two texts;
 * then the texts. forgetful_disk.py reads it. One lock holds an operation and its record together, so the order of
 * the records is the order of the operations.
 *
 * Not seen: writes through mmap (SQLite's -shm, which means nothing after a power loss) and of C's stdio. The reader
 * finds out: a log without a loss must give the files that are there.
 */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <pthread.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/uio.h>
#include <unistd.h>

#define MOST_FILES 65536

enum { OPEN = 1, WRITE, TRUNCATE, RENAME, UNLINK, MKDIR, RMDIR, LINK, FSYNC, CLOSE, DUP };

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static unsigned char below[MOST_FILES]; /* which descriptors are of files below the folder */
static const char *folder;
static size_t folder_length;
static int log_file = -1;
static int64_t *space; /* shared */

#define REAL(name) ((__typeof__(&name))real(#name))

static void *real(const char *name) {
    void *found = dlsym(RTLD_NEXT, name);
    if (!found) abort();
    return found;
}

static int is_below(int descriptor) { return descriptor >= 0 && descriptor < MOST_FILES && below[descriptor]; }

/* Write the whole path of `path` to `whole`, and tell whether it is below the folder. */
static int resolve(int at, const char *path, char *whole) {
    char link[64];
    ssize_t length = 0;
    if (!folder || !path) return 0;
    if (path[0] != '/') {
        if (at == AT_FDCWD) {
            if (!getcwd(whole, PATH_MAX)) return 0;
            length = (ssize_t)strlen(whole);
        } else {
            snprintf(link, sizeof link, "/proc/self/fd/%d", at);
            length = readlink(link, whole, PATH_MAX - 1);
            if (length < 0) return 0;
        }
        whole[length++] = '/';
    }
    if ((size_t)length + strlen(path) >= PATH_MAX) return 0;
    strcpy(whole + length, path);
    return !strncmp(whole, folder, folder_length) && (whole[folder_length] == '/' || !whole[folder_length]);
}

static void record(int operation, int descriptor, int64_t number, const void *first, uint64_t first_length,
                   const void *second, uint64_t second_length) {
    unsigned char head[32];
    int32_t small[2] = {operation, descriptor};
    uint64_t large[3] = {(uint64_t)number, first_length, second_length};
    if (log_file < 0) return;
    memcpy(head, small, 8);
    memcpy(head + 8, large, 24);
    struct iovec parts[3] = {{head, 32}, {(void *)first, first_length}, {(void *)second, second_length}};
    size_t whole = 32 + first_length + second_length;
    if (REAL(writev)(log_file, parts, 3) != (ssize_t)whole) abort();
}

static void record_path(int operation, int descriptor, int64_t number, const char *path) {
    record(operation, descriptor, number, path, strlen(path), "", 0);
}

static int is_full(void) { return space && *space <= 0; }

/* Return how many of `wanted` bytes the disk takes, or -1 where it is full. */
static ssize_t room(int descriptor, size_t wanted) {
    if (!space || !is_below(descriptor) || !wanted) return (ssize_t)wanted;
    if (is_full()) {
        errno = ENOSPC;
        return -1;
    }
    return (int64_t)wanted < *space ? (ssize_t)wanted : (ssize_t)*space;
}

static void written(int descriptor, int64_t start, const void *content, ssize_t count) {
    if (space) *space -= count;
    record(WRITE, descriptor, start, content, (uint64_t)count, "", 0);
}

__attribute__((constructor)) static void begin(void) {
    const char *log = getenv("FORGETFUL_LOG"), *shared = getenv("FORGETFUL_SPACE");
    folder = getenv("FORGETFUL_FOLDER");
    if (!folder) return;
    folder_length = strlen(folder);
    if (shared) {
        int file = REAL(open)(shared, O_RDWR | O_CLOEXEC);
        space = mmap(NULL, sizeof *space, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
        if (space == MAP_FAILED) abort();
        REAL(close)(file);
    }
    if (log) log_file = REAL(open)(log, O_WRONLY | O_APPEND | O_CREAT | O_CLOEXEC, 0666);
    if (log && log_file < 0) abort();
}

static int opened(int at, const char *path, int flags, mode_t mode) {
    char whole[PATH_MAX];
    int ours = resolve(at, path, whole), is_new = 0;
    struct stat there;
    if (!ours) return REAL(openat)(at, path, flags, mode);
    pthread_mutex_lock(&lock);
    is_new = (flags & O_CREAT) && stat(whole, &there);
    int descriptor = -1;
    if (is_new && is_full())
        errno = ENOSPC;
    else
        descriptor = REAL(openat)(at, path, flags, mode);
    int error = errno;
    if (descriptor >= 0 && descriptor < MOST_FILES) {
        below[descriptor] = 1;
        record_path(OPEN, descriptor, flags | (is_new ? (int64_t)1 << 40 : 0), whole);
    }
    pthread_mutex_unlock(&lock);
    errno = error;
    return descriptor;
}

#define OPENING(name)                                                                                              \
    int name(const char *path, int flags, ...) {                                                                   \
        va_list more;                                                                                              \
        va_start(more, flags);                                                                                     \
        mode_t mode = flags & (O_CREAT | O_TMPFILE) ? va_arg(more, mode_t) : 0;                                    \
        va_end(more);                                                                                              \
        return opened(AT_FDCWD, path, flags, mode);                                                                \
    }
#define OPENING_AT(name)                                                                                           \
    int name(int at, const char *path, int flags, ...) {                                                           \
        va_list more;                                                                                              \
        va_start(more, flags);                                                                                     \
        mode_t mode = flags & (O_CREAT | O_TMPFILE) ? va_arg(more, mode_t) : 0;                                    \
        va_end(more);                                                                                              \
        return opened(at, path, flags, mode);                                                                      \
    }
OPENING(open)
OPENING(open64)
OPENING_AT(openat)
OPENING_AT(openat64)

int creat(const char *path, mode_t mode) { return opened(AT_FDCWD, path, O_CREAT | O_WRONLY | O_TRUNC, mode); }
int creat64(const char *path, mode_t mode) { return creat(path, mode); }

int close(int descriptor) {
    if (!is_below(descriptor)) return REAL(close)(descriptor);
    pthread_mutex_lock(&lock);
    below[descriptor] = 0;
    record(CLOSE, descriptor, 0, "", 0, "", 0);
    int done = REAL(close)(descriptor), error = errno;
    pthread_mutex_unlock(&lock);
    errno = error;
    return done;
}

/* `other` has become the same as `descriptor`. */
static int duplicated(int descriptor, int other) {
    if (other >= 0 && other < MOST_FILES) {
        below[other] = (unsigned char)is_below(descriptor);
        if (below[other]) record(DUP, descriptor, other, "", 0, "", 0);
    }
    return other;
}

#define GUARDED(call)                                                                                              \
    pthread_mutex_lock(&lock);                                                                                     \
    __typeof__(call) done = (call);                                                                                \
    int error = errno;                                                                                             \
    pthread_mutex_unlock(&lock);                                                                                   \
    errno = error;                                                                                                 \
    return done;

int dup(int descriptor) { GUARDED(duplicated(descriptor, REAL(dup)(descriptor))) }
int dup2(int descriptor, int other) { GUARDED(duplicated(descriptor, REAL(dup2)(descriptor, other))) }
int dup3(int descriptor, int other, int flags) { GUARDED(duplicated(descriptor, REAL(dup3)(descriptor, other, flags))) }

static int controlled(int descriptor, int command, void *value) {
    int done = REAL(fcntl)(descriptor, command, value);
    return command == F_DUPFD || command == F_DUPFD_CLOEXEC ? duplicated(descriptor, done) : done;
}

#define CONTROL(name)                                                                                              \
    int name(int descriptor, int command, ...) {                                                                   \
        va_list more;                                                                                              \
        va_start(more, command);                                                                                   \
        void *value = va_arg(more, void *);                                                                        \
        va_end(more);                                                                                              \
        if (command != F_DUPFD && command != F_DUPFD_CLOEXEC) return REAL(fcntl)(descriptor, command, value);      \
        GUARDED(controlled(descriptor, command, value))                                                            \
    }
CONTROL(fcntl)
CONTROL(fcntl64)

static ssize_t write_here(int descriptor, const void *content, size_t count) {
    ssize_t taken = room(descriptor, count);
    if (taken < 0) return -1;
    ssize_t done = REAL(write)(descriptor, content, (size_t)taken);
    if (done > 0) written(descriptor, lseek(descriptor, 0, SEEK_CUR) - done, content, done);
    return done;
}

ssize_t write(int descriptor, const void *content, size_t count) {
    if (!is_below(descriptor)) return REAL(write)(descriptor, content, count);
    GUARDED(write_here(descriptor, content, count))
}

/* A call that writes several pieces may write fewer of them. */
static ssize_t write_pieces(int descriptor, const struct iovec *pieces, int count, off_t start, int is_placed) {
    ssize_t sum = 0;
    for (int n = 0; n < count; n++) {
        size_t length = pieces[n].iov_len;
        ssize_t taken = room(descriptor, length), done = -1;
        if (taken >= 0 && !is_placed) done = write_here(descriptor, pieces[n].iov_base, length);
        if (taken >= 0 && is_placed) {
            done = REAL(pwrite)(descriptor, pieces[n].iov_base, (size_t)taken, start + sum);
            if (done > 0) written(descriptor, start + sum, pieces[n].iov_base, done);
        }
        if (done < 0) return sum ? sum : -1;
        sum += done;
        if ((size_t)done < length) break;
    }
    return sum;
}

ssize_t writev(int descriptor, const struct iovec *pieces, int count) {
    if (!is_below(descriptor)) return REAL(writev)(descriptor, pieces, count);
    GUARDED(write_pieces(descriptor, pieces, count, 0, 0))
}

#define WRITING_AT(name)                                                                                           \
    ssize_t name(int descriptor, const void *content, size_t count, off_t start) {                                 \
        if (!is_below(descriptor)) return REAL(name)(descriptor, content, count, start);                           \
        struct iovec piece = {(void *)content, count};                                                             \
        GUARDED(write_pieces(descriptor, &piece, 1, start, 1))                                                     \
    }
WRITING_AT(pwrite)
WRITING_AT(pwrite64)

#define WRITING_PIECES_AT(name)                                                                                    \
    ssize_t name(int descriptor, const struct iovec *pieces, int count, off_t start) {                             \
        if (!is_below(descriptor)) return REAL(name)(descriptor, pieces, count, start);                            \
        GUARDED(write_pieces(descriptor, pieces, count, start, 1))                                                 \
    }
WRITING_PIECES_AT(pwritev)
WRITING_PIECES_AT(pwritev64)

static int truncated(int descriptor, off_t size) {
    int done = REAL(ftruncate)(descriptor, size);
    if (!done && is_below(descriptor)) record(TRUNCATE, descriptor, size, "", 0, "", 0);
    return done;
}

int ftruncate(int descriptor, off_t size) { GUARDED(truncated(descriptor, size)) }
int ftruncate64(int descriptor, off_t size) { GUARDED(truncated(descriptor, size)) }

/* Space set aside in advance: a file of that size, without content. */
static int allocated(int descriptor, int mode, off_t start, off_t size) {
    struct stat before, after;
    if (is_below(descriptor) && is_full()) {
        errno = ENOSPC;
        return -1;
    }
    fstat(descriptor, &before);
    int done = REAL(fallocate)(descriptor, mode, start, size);
    fstat(descriptor, &after);
    if (!done && is_below(descriptor) && after.st_size != before.st_size)
        record(TRUNCATE, descriptor, after.st_size, "", 0, "", 0);
    return done;
}

int fallocate(int descriptor, int mode, off_t start, off_t size) { GUARDED(allocated(descriptor, mode, start, size)) }
int fallocate64(int descriptor, int mode, off_t start, off_t size) { GUARDED(allocated(descriptor, mode, start, size)) }
int posix_fallocate(int descriptor, off_t start, off_t size) { return fallocate(descriptor, 0, start, size) ? errno : 0; }
int posix_fallocate64(int descriptor, off_t start, off_t size) { return posix_fallocate(descriptor, start, size); }

static int synced(int descriptor, int (*sync)(int)) {
    int done = sync(descriptor);
    if (!done && is_below(descriptor)) record(FSYNC, descriptor, 0, "", 0, "", 0);
    return done;
}

int fsync(int descriptor) { GUARDED(synced(descriptor, REAL(fsync))) }
int fdatasync(int descriptor) { GUARDED(synced(descriptor, REAL(fdatasync))) }

static int renamed(int from_at, const char *from, int to_at, const char *to, unsigned int flags) {
    char whole_from[PATH_MAX], whole_to[PATH_MAX];
    int ours = resolve(from_at, from, whole_from) & resolve(to_at, to, whole_to);
    int done = REAL(renameat2)(from_at, from, to_at, to, flags);
    if (!done && ours) record(RENAME, -1, flags, whole_from, strlen(whole_from), whole_to, strlen(whole_to));
    return done;
}

int rename(const char *from, const char *to) { GUARDED(renamed(AT_FDCWD, from, AT_FDCWD, to, 0)) }
int renameat(int from_at, const char *from, int to_at, const char *to) { GUARDED(renamed(from_at, from, to_at, to, 0)) }
int renameat2(int from_at, const char *from, int to_at, const char *to, unsigned int flags) {
    GUARDED(renamed(from_at, from, to_at, to, flags))
}

static int linked(int from_at, const char *from, int to_at, const char *to, int flags) {
    char whole_from[PATH_MAX], whole_to[PATH_MAX];
    int ours = resolve(from_at, from, whole_from) & resolve(to_at, to, whole_to);
    int done = REAL(linkat)(from_at, from, to_at, to, flags);
    if (!done && ours) record(LINK, -1, flags, whole_from, strlen(whole_from), whole_to, strlen(whole_to));
    return done;
}

int link(const char *from, const char *to) { GUARDED(linked(AT_FDCWD, from, AT_FDCWD, to, 0)) }
int linkat(int from_at, const char *from, int to_at, const char *to, int flags) {
    GUARDED(linked(from_at, from, to_at, to, flags))
}

static int removed(int at, const char *path, int flags) {
    char whole[PATH_MAX];
    int ours = resolve(at, path, whole);
    int done = REAL(unlinkat)(at, path, flags);
    if (!done && ours) record_path(flags & AT_REMOVEDIR ? RMDIR : UNLINK, -1, 0, whole);
    return done;
}

int unlink(const char *path) { GUARDED(removed(AT_FDCWD, path, 0)) }
int unlinkat(int at, const char *path, int flags) { GUARDED(removed(at, path, flags)) }
int rmdir(const char *path) { GUARDED(removed(AT_FDCWD, path, AT_REMOVEDIR)) }

static int made(int at, const char *path, mode_t mode) {
    char whole[PATH_MAX];
    int ours = resolve(at, path, whole);
    if (ours && is_full() && access(whole, F_OK)) {
        errno = ENOSPC;
        return -1;
    }
    int done = REAL(mkdirat)(at, path, mode);
    if (!done && ours) record_path(MKDIR, -1, 0, whole);
    return done;
}

int mkdir(const char *path, mode_t mode) { GUARDED(made(AT_FDCWD, path, mode)) }
int mkdirat(int at, const char *path, mode_t mode) { GUARDED(made(at, path, mode)) }
