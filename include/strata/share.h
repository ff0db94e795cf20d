/* Peer GPUs, memory shared between processes, and memory registered with hardware. strata/strata.h includes this header;
 * docs/sharing.md has the whole picture.
 *
 *     the process that has the memory                        another one, over a connected Unix socket
 *
 *     strata_shared_t shared;                                strata_shared_t shared;
 *     strata_export(s, b.ref, &shared);                      strata_imported_t there;
 *     strata_share_send(socket, &shared);                    strata_share_receive(socket, &shared);
 *     strata_shared_close(&shared);                          strata_import(t, strata_gpu(0), &shared, &there);
 *                                                            strata_shared_close(&shared);
 *                                                            ... use there.ptr, and say so when done ...
 *     strata_free(s, b.ref);                                 strata_import_end(t, there.id);
 *
 * What can be shared   Memory of the layer `vmm`: physical handles. Of any other source that is E_UNSUPPORTED, and the text says what
 *                      to write in the strategy.
 * Ordering             Between processes the programs order their work themselves.
 * Freeing              A block that is freed here while other processes use it is in limbo: its memory serves nobody before they have
 *                      ended their imports, or have died (strata_shared_t.lease). Limbo is looked at when memory is short, at the
 *                      free of any block that was sent, at each export, and by strata_release().
 * What stays           A handle that was exported, or that is registered, is never moved. One that is registered does not go back
 *                      to the device either. */
#ifndef STRATA_SHARE_H
#define STRATA_SHARE_H

#include "strata/strata.h"

#ifdef __cplusplus
extern "C" {
#endif

/* ---- peer GPUs ---- */

/* From now on the GPU `peer` may use memory of the GPU `device`: what this facade has there, and what it gets later, under every
 * strategy. Memory that moves keeps it. It lasts until the facade is closed; with memory of `system` and of the default pool of
 * `cuda_malloc_async` as long as the driver lets it, for both are the process's.
 *
 * Errors: E_INVALID (no such device of the facade, or twice the same); E_UNSUPPORTED (the GPUs do not reach one another); E_DEVICE,
 * E_NO_MEMORY: what exists may have been opened to the peer in part, and what comes is not. */
STRATA_API strata_status_t strata_enable_peer(strata_t facade, uint32_t device, uint32_t peer);

/* ---- giving memory to another process ---- */

/* A block may lie in so many handles: as many descriptors go in one message. `registrable: true` of vmm puts it in one. */
#define STRATA_SHARE_SEGMENTS 250u

/* A physical handle, which is the same segment in every block that lies in it. */
typedef struct strata_segment {
    uint64_t number; /* in the process that has it */
    uint64_t size; /* bytes */
} strata_segment_t;

/* A block as another process can be told of it. The descriptors are its holder's: strata_shared_close(). */
typedef struct strata_shared {
    uint64_t owner[2]; /* of the process that has the memory: random */
    uint64_t sender; /* the process that it was received from, as the system says; 0: it was not received */
    uint64_t offset; /* of the block in its first segment */
    uint64_t size; /* of the block */
    uint32_t device; /* of the memory, as its process counts them: for the program's information */
    uint32_t count; /* of segments, one after the other */
    strata_segment_t segments[STRATA_SHARE_SEGMENTS];
    int descriptors[STRATA_SHARE_SEGMENTS]; /* of the segments */
    int lease; /* a descriptor too: the owner keeps the memory as long as any process has a copy of it open, even after the free */
} strata_shared_t;

/* Fills `shared`, with descriptors of its own. The block may be exported as often as one likes. From now on it counts as sent
 * (sent_blocks) as long as anybody has a message of it, or an import. This process keeps one descriptor for each such block.
 *
 * Errors: E_STALE; E_UNSUPPORTED (not in handles; the device shares none; 0 bytes); E_LIMIT (in more handles than
 * STRATA_SHARE_SEGMENTS); E_DEVICE, where no descriptor is left too. */
STRATA_API strata_status_t strata_export(strata_t facade, strata_ref_t ref, strata_shared_t *shared);
/* Closes the descriptors; `shared` names no memory afterwards. */
STRATA_API void strata_shared_close(strata_shared_t *shared);

/* Sends it over a connected socket (AF_UNIX, SOCK_STREAM), descriptors included, and receives one. They block as long as the socket
 * does; give it SO_RCVTIMEO and SO_SNDTIMEO where the other end is not trusted. What was received has descriptors to be closed. The
 * receiver believes nothing: after E_FORMAT (what came is no such message, or says what cannot be) no descriptor is left open, and
 * the socket should be closed. E_IO: the socket failed, or its end or its time has come. E_INVALID: it is no such socket. */
STRATA_API strata_status_t strata_share_send(int socket, const strata_shared_t *shared);
STRATA_API strata_status_t strata_share_receive(int socket, strata_shared_t *shared);

/* Without a socket of both: the bytes of `shared` came by any way (a queue, a file, a pickle) from a process of the same user that
 * exported it, and has not closed it yet. Takes its descriptors through the system (pidfd_getfd of Linux 5.6), each a new one here
 * that is to be closed; the other process must let this one look into it as a debugger may. `process` is its number.
 *
 * Errors: E_FORMAT (what it says cannot be); E_IO (the process has ended or closed it, or lets nobody in): nothing is open then. */
STRATA_API strata_status_t strata_share_fetch(uint64_t process, strata_shared_t *shared);

/* ---- using memory of another process ---- */

typedef struct strata_imported {
    void *ptr; /* of the block, for work on the place's device and its enabled peers */
    size_t size;
    uint64_t id; /* for strata_import_end() */
} strata_imported_t;

/* Maps the block in a gpu place. A copy of its lease stays open until its last import here has ended. A segment is imported once, however many blocks lie in it, and stays until the last of them has
 * ended: the addresses in use are at most the sizes of the blocks and a segment more each. It does not count as reserved: it is the
 * other process's. The descriptors may be closed after the return. strata_close() answers E_BUSY while an import is live, unless it
 * is forced.
 *
 * Errors: E_FORMAT (what it says cannot be; the lease is none); E_DEVICE (a descriptor names no memory that this device can map; no
 * descriptor is left); E_UNSUPPORTED (the
 * place is not of a GPU, or the device imports nothing); E_NO_MEMORY (no addresses are left); E_HOST_MEMORY; E_LIMIT (2^20 imports).
 */
STRATA_API strata_status_t strata_import(strata_t facade, strata_place_t place, const strata_shared_t *shared,
                                         strata_imported_t *imported);
/* The program uses it no more. With the last import of a block the host waits for the device, and then tells the owner; with the last
 * one of its segments they are unmapped. E_STALE: there
 * is no such import. E_CAPTURE: a stream is being captured, so nothing can be waited for; nothing has happened. */
STRATA_API strata_status_t strata_import_end(strata_t facade, uint64_t id);

/* ---- registering memory with hardware ---- */

typedef struct strata_registration {
    void *ptr; /* of the block */
    size_t size;
    void *base; /* of the first handle that it lies in */
    size_t base_size; /* of all handles that it lies in, which follow one another */
    uint32_t handles; /* how many. 1 is what NCCL and RDMA want; `registrable: true` of vmm makes sure of it */
    uint32_t place;
} strata_registration_t;

/* Keeps the handles of a block where they are, with their memory, until they are unregistered: call it before ncclCommRegister(),
 * ibv_reg_mr() and the like. It counts. E_STALE; E_UNSUPPORTED (as strata_export()). */
STRATA_API strata_status_t strata_register(strata_t facade, strata_ref_t ref, strata_registration_t *registration);
/* Ends it; the block may have been freed. E_UNKNOWN_POINTER: nothing is registered there. */
STRATA_API strata_status_t strata_unregister(strata_t facade, const strata_registration_t *registration);

#ifdef __cplusplus
}
#endif
#endif
