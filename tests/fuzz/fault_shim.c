/* Lets calls of one kind fail in a program: LD_PRELOAD, with a file of counters and what to do in the environment.

     FAULT_COUNTS=FILE   a file of 64-bit counters, one a kind, that all processes of the program share; made by who starts it
     FAULT_KIND=write    the kind that fails: write, rename, sync, open, allocation
     FAULT_AT=7          the seventh call of that kind fails; without it none does
     FAULT_FOREVER=1     and so do all later ones
     FAULT_ERROR=28      errno of the failing calls; for allocations ENOMEM always
     FAULT_RANK=1        only in this rank of Open MPI
     FAULT_EXCEPT=a,b    calls from libraries whose names contain one of these do not fail; "spared" is then appended to FAULT_TRACE
     FAULT_TRACE=FILE    where the failing call came from is appended there
     FAULT_STACKS=FILE   for every call of the kind the hash of where it came from is appended there, 64 bits each

   Calls count from main on, and not while libraries are loaded. Standard output and error never fail. */

#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <execinfo.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/uio.h>
#include <unistd.h>

enum kind { kind_write, kind_rename, kind_sync, kind_open, kind_allocation, n_kinds };
static char const* const names[n_kinds] = {"write", "rename", "sync", "open", "allocation"};
static int const usual_error[n_kinds] = {ENOSPC, EIO, EIO, ENOSPC, ENOMEM};

static _Atomic int64_t* counts; /* null: nothing is counted yet */
static int which = -1, error_number, forever, stacks = -1;
static int64_t at;
static char const *trace_file, *spared;
static __thread int paused __attribute__((tls_model("initial-exec")));

static ssize_t real_write(int file, void const* data, size_t n) {
  static ssize_t (*function)(int, void const*, size_t);
  if (function == NULL)
    function = (ssize_t(*)(int, void const*, size_t))dlsym(RTLD_NEXT, "write");
  return function(file, data, n);
}

static int real_open(char const* path, int flags, mode_t mode) {
  static int (*function)(char const*, int, ...);
  if (function == NULL)
    function = (int (*)(char const*, int, ...))dlsym(RTLD_NEXT, "open");
  return function(path, flags, mode);
}

/* Whether one of these frames is in a library of FAULT_EXCEPT. */
static int is_spared(void* const* frames, int n) {
  char list[256];
  snprintf(list, sizeof list, "%s", spared);
  char* rest = NULL;
  for (char* name = strtok_r(list, ",", &rest); name != NULL; name = strtok_r(NULL, ",", &rest))
    for (int i = 0; i < n; ++i) {
      Dl_info info;
      if (dladdr(frames[i], &info) != 0 && info.dli_fname != NULL && strstr(info.dli_fname, name) != NULL)
        return 1;
    }
  return 0;
}

/* Whether this call is one that fails; errno is then set. */
static int fails(enum kind kind) {
  if (counts == NULL || paused)
    return 0;
  int64_t const number = atomic_fetch_add(&counts[kind], 1) + 1;
  if ((int)kind != which)
    return 0;
  if (stacks >= 0) {
    ++paused;
    void* frames[40];
    int const n = backtrace(frames, 40);
    uint64_t hash[2] = {1469598103934665603u, (uint64_t)number};
    for (int i = 1; i < n; ++i)
      hash[0] = (hash[0] ^ (uint64_t)frames[i]) * 1099511628211u;
    real_write(stacks, hash, sizeof hash);
    --paused;
  }
  if (at == 0 || !(number == at || (forever && number > at)))
    return 0;
  if (trace_file != NULL || spared != NULL) {
    ++paused;
    void* frames[60];
    int const n = backtrace(frames, 60);
    int const is_one = spared != NULL && is_spared(frames + 2, n - 2);
    if (trace_file != NULL && number == at) {
      int const file = real_open(trace_file, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0666);
      if (is_one)
        real_write(file, "spared\n", 7);
      backtrace_symbols_fd(frames + 2, n - 2, file);
      close(file);
    }
    --paused;
    if (is_one)
      return 0;
  }
  errno = error_number;
  return 1;
}

static void begin(void) {
  char const* const path = getenv("FAULT_COUNTS");
  char const* const kind = getenv("FAULT_KIND");
  char const* const rank = getenv("FAULT_RANK");
  char const* const own_rank = getenv("OMPI_COMM_WORLD_RANK");
  if (path == NULL || (rank != NULL && (own_rank == NULL || strcmp(rank, own_rank) != 0)))
    return;
  int const file = real_open(path, O_RDWR | O_CLOEXEC, 0);
  void* const memory = file < 0 ? MAP_FAILED : mmap(NULL, n_kinds * sizeof *counts, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
  if (memory == MAP_FAILED) {
    static char const text[] = "fault shim: cannot map the file of FAULT_COUNTS\n";
    real_write(2, text, sizeof text - 1);
    _exit(99);
  }
  close(file);
  for (int i = 0; kind != NULL && i < n_kinds; ++i)
    if (strcmp(kind, names[i]) == 0)
      which = i;
  at = getenv("FAULT_AT") != NULL ? atoll(getenv("FAULT_AT")) : 0;
  forever = getenv("FAULT_FOREVER") != NULL;
  error_number = which < 0 ? 0 : getenv("FAULT_ERROR") != NULL ? atoi(getenv("FAULT_ERROR")) : usual_error[which];
  trace_file = getenv("FAULT_TRACE");
  spared = getenv("FAULT_EXCEPT");
  void* frame;
  backtrace(&frame, 1); /* loads what it needs */
  if (getenv("FAULT_STACKS") != NULL)
    stacks = real_open(getenv("FAULT_STACKS"), O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0666);
  counts = memory;
}

static int (*main_of_program)(int, char**, char**);
static int main_that_counts(int n, char** arguments, char** environment) {
  begin();
  int const code = main_of_program(n, arguments, environment);
  ++paused; /* destructors of static objects */
  return code;
}

int __libc_start_main(int (*program)(int, char**, char**), int n, char** arguments, void (*init)(void), void (*fini)(void),
                      void (*linker_fini)(void), void* stack) {
  int (*const start)(int (*)(int, char**, char**), int, char**, void (*)(void), void (*)(void), void (*)(void), void*) =
      (int (*)(int (*)(int, char**, char**), int, char**, void (*)(void), void (*)(void), void (*)(void), void*))dlsym(
          RTLD_NEXT, "__libc_start_main");
  main_of_program = program;
  return start(main_that_counts, n, arguments, init, fini, linker_fini, stack);
}

void* dlopen(char const* path, int flags) {
  static void* (*function)(char const*, int);
  if (function == NULL)
    function = (void* (*)(char const*, int))dlsym(RTLD_NEXT, "dlopen");
  ++paused;
  void* const handle = function(path, flags);
  --paused;
  return handle;
}

/* Files. */

#define NEXT(type, name, ...)                                  \
  static type (*function)(__VA_ARGS__);                        \
  if (function == NULL)                                        \
  function = (type(*)(__VA_ARGS__))dlsym(RTLD_NEXT, #name)

static int is_file(int descriptor) {
  struct stat status;
  return descriptor > 2 && counts != NULL && fstat(descriptor, &status) == 0 && S_ISREG(status.st_mode);
}

ssize_t write(int file, void const* data, size_t n) {
  return is_file(file) && fails(kind_write) ? -1 : real_write(file, data, n);
}
ssize_t pwrite(int file, void const* data, size_t n, off_t place) {
  NEXT(ssize_t, pwrite, int, void const*, size_t, off_t);
  return is_file(file) && fails(kind_write) ? -1 : function(file, data, n, place);
}
ssize_t pwrite64(int file, void const* data, size_t n, off64_t place) {
  NEXT(ssize_t, pwrite64, int, void const*, size_t, off64_t);
  return is_file(file) && fails(kind_write) ? -1 : function(file, data, n, place);
}
ssize_t writev(int file, struct iovec const* parts, int n) {
  NEXT(ssize_t, writev, int, struct iovec const*, int);
  return is_file(file) && fails(kind_write) ? -1 : function(file, parts, n);
}
size_t fwrite(void const* data, size_t size, size_t n, FILE* file) {
  NEXT(size_t, fwrite, void const*, size_t, size_t, FILE*);
  return is_file(fileno(file)) && fails(kind_write) ? 0 : function(data, size, n, file);
}
int ftruncate(int file, off_t n) {
  NEXT(int, ftruncate, int, off_t);
  return is_file(file) && fails(kind_write) ? -1 : function(file, n);
}
int ftruncate64(int file, off64_t n) {
  NEXT(int, ftruncate64, int, off64_t);
  return is_file(file) && fails(kind_write) ? -1 : function(file, n);
}

int rename(char const* from, char const* to) {
  NEXT(int, rename, char const*, char const*);
  return fails(kind_rename) ? -1 : function(from, to);
}
int renameat(int from_folder, char const* from, int to_folder, char const* to) {
  NEXT(int, renameat, int, char const*, int, char const*);
  return fails(kind_rename) ? -1 : function(from_folder, from, to_folder, to);
}

int fsync(int file) {
  NEXT(int, fsync, int);
  return fails(kind_sync) ? -1 : function(file);
}
int fdatasync(int file) {
  NEXT(int, fdatasync, int);
  return fails(kind_sync) ? -1 : function(file);
}
int syncfs(int file) {
  NEXT(int, syncfs, int);
  return fails(kind_sync) ? -1 : function(file);
}

static int writes(int flags) {
  return (flags & O_ACCMODE) != O_RDONLY;
}
#define OPEN(name)                                                           \
  int name(char const* path, int flags, ...) {                               \
    NEXT(int, name, char const*, int, ...);                                  \
    va_list more;                                                            \
    va_start(more, flags);                                                   \
    mode_t const mode = (flags & (O_CREAT | O_TMPFILE)) != 0 ? va_arg(more, mode_t) : 0; \
    va_end(more);                                                            \
    return writes(flags) && fails(kind_open) ? -1 : function(path, flags, mode); \
  }
OPEN(open)
OPEN(open64)
#define OPENAT(name)                                                         \
  int name(int folder, char const* path, int flags, ...) {                   \
    NEXT(int, name, int, char const*, int, ...);                             \
    va_list more;                                                            \
    va_start(more, flags);                                                   \
    mode_t const mode = (flags & (O_CREAT | O_TMPFILE)) != 0 ? va_arg(more, mode_t) : 0; \
    va_end(more);                                                            \
    return writes(flags) && fails(kind_open) ? -1 : function(folder, path, flags, mode); \
  }
OPENAT(openat)
OPENAT(openat64)
#define FOPEN(name)                                                          \
  FILE* name(char const* path, char const* mode) {                           \
    NEXT(FILE*, name, char const*, char const*);                             \
    return strpbrk(mode, "wa+") != NULL && fails(kind_open) ? NULL : function(path, mode); \
  }
FOPEN(fopen)
FOPEN(fopen64)

/* Memory. */

void* __libc_malloc(size_t);
void* __libc_calloc(size_t, size_t);
void* __libc_realloc(void*, size_t);
void* __libc_memalign(size_t, size_t);

void* malloc(size_t n) {
  return fails(kind_allocation) ? NULL : __libc_malloc(n);
}
void* calloc(size_t n, size_t size) {
  return fails(kind_allocation) ? NULL : __libc_calloc(n, size);
}
void* realloc(void* memory, size_t n) {
  return fails(kind_allocation) ? NULL : __libc_realloc(memory, n);
}
void* memalign(size_t alignment, size_t n) {
  return fails(kind_allocation) ? NULL : __libc_memalign(alignment, n);
}
void* aligned_alloc(size_t alignment, size_t n) {
  return fails(kind_allocation) ? NULL : __libc_memalign(alignment, n);
}
int posix_memalign(void** memory, size_t alignment, size_t n) {
  if (fails(kind_allocation))
    return ENOMEM;
  *memory = __libc_memalign(alignment, n);
  return *memory == NULL ? ENOMEM : 0;
}
