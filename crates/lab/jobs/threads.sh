# needs: cc
# Threads, processes, shared memory and semaphores.
cat > one.c <<'C'
#include <pthread.h>
#include <semaphore.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <fcntl.h>
#include <unistd.h>
static void *run(void *sum) { ++*(int *)sum; return 0; }
int main(void) {
    pthread_t thread;
    int sum = 0;
    if (pthread_create(&thread, 0, run, &sum) || pthread_join(thread, 0) || sum != 1) return 1;
    int file = shm_open("/job", O_CREAT | O_RDWR, 0600);
    if (file < 0 || ftruncate(file, 4096)) return 2;
    int *shared = mmap(0, 4096, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
    sem_t *gate = sem_open("/gate", O_CREAT, 0600, 0);
    if (shared == MAP_FAILED || gate == SEM_FAILED) return 3;
    if (!fork()) { *shared = 7; sem_post(gate); _exit(0); }
    sem_wait(gate);
    wait(0);
    return *shared == 7 ? 0 : 4;
}
C
cc -pthread -o one one.c -lrt
./one
