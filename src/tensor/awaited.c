/* See awaited.h. A list of the handles that have a ticket; short, as callers destroy such a handle once they have its shape. */
#include "tensor/awaited.h"

#include <pthread.h>
#include <string.h>

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER; /* guards all below, and the shape of listed handles */
static struct aclTensor *first;                          /* by next_awaited */
static uint64_t last_ticket;

struct awaited_shape awaited_begin(struct aclTensor *handle)
{
    if (!handle)
        return (struct awaited_shape){NULL, 0};
    pthread_mutex_lock(&lock);
    if (handle->ticket == 0) {
        handle->ticket = ++last_ticket;
        handle->next_awaited = first;
        first = handle;
    }
    const struct awaited_shape awaited = {handle, handle->ticket};
    pthread_mutex_unlock(&lock);
    return awaited;
}

void awaited_answer(const struct awaited_shape *awaited, int ndim, const int64_t *sizes)
{
    pthread_mutex_lock(&lock);
    for (struct aclTensor *t = first; t; t = t->next_awaited)
        if (t == awaited->handle && t->ticket == awaited->ticket) {
            t->view.ndim = (uint8_t)ndim;
            memcpy(t->view.sizes, sizes, (size_t)ndim * sizeof *sizes);
            view_make_contiguous(&t->view);
        }
    pthread_mutex_unlock(&lock);
}

void awaited_forget(struct aclTensor *handle)
{
    pthread_mutex_lock(&lock);
    struct aclTensor **link = &first;
    while (*link && *link != handle)
        link = &(*link)->next_awaited;
    if (*link)
        *link = handle->next_awaited;
    handle->ticket = 0;
    pthread_mutex_unlock(&lock);
}

void awaited_forget_after_fork(void)
{
    lock = (pthread_mutex_t)PTHREAD_MUTEX_INITIALIZER;
    first = NULL;
}
