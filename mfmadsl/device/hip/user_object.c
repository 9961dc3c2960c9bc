/* Objects of the program that live as long as a graph, or longer. */
#include "graph.h"

#include <stdlib.h>

typedef struct UserObject {
  void *pointer;
  void (*destroy)(void *);
  unsigned users;
  struct UserObject *next;
} UserObject;
static UserObject *objects;

static hipError_t change_users(UserObject *object, int64_t by) {
  lock();
  UserObject **place = &objects;
  while (*place && *place != object) place = &(*place)->next;
  hipError_t error = *place && by && object->users + by >= 0 ? hipSuccess : hipErrorInvalidValue;
  bool last = !error && !(object->users += (unsigned)by);
  if (last) *place = object->next;
  unlock();
  if (last) {
    object->destroy(object->pointer);
    free(object);
  }
  return error;
}
static hipError_t check_object(UserObject *object, unsigned count) {
  UserObject *each = objects;
  while (each && each != object) each = each->next;
  return each && each->users >= count ? hipSuccess : hipErrorInvalidValue;
}
API hipError_t hipUserObjectCreate(UserObject **object, void *pointer, void (*destroy)(void *),
                                   unsigned users, unsigned flags) {
  if (!object || !destroy || !users || flags != 1) return done(hipErrorInvalidValue);
  UserObject *made = malloc(sizeof *made);
  if (!made) return done(hipErrorOutOfMemory);
  lock();
  *made = (UserObject){pointer, destroy, users, objects};
  *object = objects = made;
  unlock();
  return hipSuccess;
}
API hipError_t hipUserObjectRelease(UserObject *object, unsigned count) {
  return done(change_users(object, -(int64_t)count));
}
API hipError_t hipUserObjectRetain(UserObject *object, unsigned count) {
  return done(change_users(object, count));
}

/* Those that a graph has, and how often. */
struct Kept {
  UserObject *object;
  unsigned count;
  struct Kept *next;
};

void release_kept(hipGraph_t graph) {
  for (struct Kept *each = graph->kept, *next; each; each = next) {
    next = each->next;
    change_users(each->object, -(int64_t)each->count);
    free(each);
  }
  graph->kept = NULL;
}

API hipError_t hipGraphRetainUserObject(hipGraph_t graph, UserObject *object, unsigned count,
                                        unsigned flags) {
  enum { MOVE = 1 };
  struct Kept *made = flags <= MOVE ? malloc(sizeof *made) : NULL;
  if (!made) return done(flags <= MOVE ? hipErrorOutOfMemory : hipErrorInvalidValue);
  lock();
  hipError_t error = is_graph(graph) && count ? hipSuccess : hipErrorInvalidValue;
  /* Moved from the program, or one more user. */
  if (!error) error = flags == MOVE ? check_object(object, count) : change_users(object, count);
  if (!error)
    *made = (struct Kept){object, count, graph->kept}, graph->kept = made;
  else
    free(made);
  unlock();
  return done(error);
}
API hipError_t hipGraphReleaseUserObject(hipGraph_t graph, UserObject *object, unsigned count) {
  hipError_t error = hipErrorInvalidValue;
  lock();
  for (struct Kept **place = is_graph(graph) && count ? &graph->kept : NULL; place && *place;
       place = &(*place)->next) {
    struct Kept *each = *place;
    if (each->object != object || each->count < count) continue;
    each->count -= count;
    error = change_users(object, -(int64_t)count);
    if (!each->count) *place = each->next, free(each);
    break;
  }
  unlock();
  return done(error);
}
