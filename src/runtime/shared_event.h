/* Events that another process waits for: a page that both map, with how often the event was recorded and which record is done.
 *
 * The process that made the event counts; the other one reads. Counted references: the event's own and one of each record under
 * way. */
#ifndef RUNTIME_SHARED_EVENT_H
#define RUNTIME_SHARED_EVENT_H

#include <stdbool.h>
#include <stdint.h>

struct shared_event;

int shared_event_create(struct shared_event **event);
/* Of a handle that shared_event_describe wrote in another process. */
int shared_event_open(const char *handle, struct shared_event **event);
void shared_event_describe(const struct shared_event *event, char *handle, int bytes);
void shared_event_hold(struct shared_event *event);
void shared_event_release(struct shared_event *event);

/* Counts a record and returns its number, from 1. */
uint64_t shared_event_record(struct shared_event *event);
void shared_event_complete(struct shared_event *event, uint64_t number);
/* The latest record's number; 0: none yet. */
uint64_t shared_event_latest(const struct shared_event *event);
bool shared_event_reached(const struct shared_event *event, uint64_t number);
/* deadline: clock_nanoseconds, negative: none. False: the time is up, or the other process ended before it came so far. */
bool shared_event_wait(const struct shared_event *event, uint64_t number, int64_t deadline);

#endif
