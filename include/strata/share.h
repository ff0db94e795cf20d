/* Peer GPUs, memory shared between processes, and memory registered with hardware. strata/strata.h includes this header, and
 * docs/sharing.md describes the design.
 *
 *     the process that has the memory                        another one, over a connected Unix socket
 *
 *     strata_shared_t shared;                                strata_shared_t shared;
 *     strata_export(s, b.ref, &shared);                      strata_imported_t there;
 *     strata_share_send(socket, &shared);                    strata_share_receive(socket, &shared);
 *     strata_shared_close(&shared);                          strata_import(t, strata_gpu(0), &shared, &there);
 *                                                            strata_shared_close(&shared);
 *                                                            ... use there.ptr, then notify the owner ...
 *     strata_free(s, b.ref);                                 strata_import_end(t, there.id);
 *
 * Which memory         Memory of the layer `vmm`: physical handles. Any other source is E_UNSUPPORTED, and the text names the
 *                      change to the strategy.
 * Ordering             Between processes the programs order their work themselves.
 * Freeing              A block that is freed here while other processes use it is in limbo: its memory is not reused until they
 *                      have ended their imports, or have died (strata_shared_t.lease). Limbo is checked when memory is short, at
 *                      the free of any block that was sent, at each export, and by strata_release().
 * Fixed handles        A handle that was exported, or that is registered, is never moved. A registered one is not given back to
 *                      the device either. */
#ifndef STRATA_SHARE_H
#define STRATA_SHARE_H

#include "strata/strata.h"

#ifdef __cplusplus
extern "C" {
#endif

/* ---- peer GPUs ---- */

/* Lets the GPU `peer` use the memory of the GPU `device`: the facade's present memory there, and its later memory, under every
 * strategy. Memory that moves keeps the access. It lasts until the facade is closed. For memory of `system` and of the default
 * pool of `cuda_malloc_async`, which belong to the process, it lasts as long as the driver allows.
 *
 * Returns E_INVALID if the facade has no such device, or if both are equal. Returns E_UNSUPPORTED if the GPUs cannot reach one
 * another. After E_DEVICE or E_NO_MEMORY some present memory may be open to the peer, and later memory is not. */
STRATA_API strata_status_t strata_enable_peer(strata_t facade, uint32_t device, uint32_t peer);

/* ---- giving memory to another process ---- */

/* The maximum number of handles of a shared block, because one message carries at most that many descriptors. `registrable: true`
 * of vmm puts a block in one handle. */
#define STRATA_SHARE_SEGMENTS 250u

/* A physical handle. It is the same segment in every block that has bytes in it. */
typedef struct strata_segment {
    uint64_t number; /* the owner's number of it */
    uint64_t size; /* bytes */
} strata_segment_t;

/* The description of a block for another process. The holder owns the descriptors and must call strata_shared_close(). */
typedef struct strata_shared {
    uint64_t owner[2]; /* of the process that has the memory: random */
    uint64_t sender; /* the process that it was received from, as the system reports it, or 0 */
    uint64_t offset; /* of the block in its first segment */
    uint64_t size; /* of the block */
    uint32_t device; /* of the memory, as its process counts them; only informative */
    uint32_t count; /* of segments, one after the other */
    strata_segment_t segments[STRATA_SHARE_SEGMENTS];
    int descriptors[STRATA_SHARE_SEGMENTS]; /* of the segments */
    int lease; /* also a descriptor: the owner keeps the memory while any process has a copy of it open, even after the free */
} strata_shared_t;

/* Fills `shared`, with descriptors of its own. A block may be exported any number of times. It counts as sent (sent_blocks) while
 * any process has a message or an import of it. This process keeps one descriptor for each such block.
 *
 * Returns E_STALE. Returns E_UNSUPPORTED if the block is not in handles or has 0 bytes, or if the device shares none. Returns
 * E_LIMIT for more handles than STRATA_SHARE_SEGMENTS, and E_DEVICE, which includes a lack of descriptors. */
STRATA_API strata_status_t strata_export(strata_t facade, strata_ref_t ref, strata_shared_t *shared);
/* Closes the descriptors. `shared` names no memory afterwards. */
STRATA_API void strata_shared_close(strata_shared_t *shared);

/* Send a message over a connected socket (AF_UNIX, SOCK_STREAM), descriptors included, and receive one. They block as long as the
 * socket does. Set SO_RCVTIMEO and SO_SNDTIMEO if the other end is not trusted. The received descriptors must be closed. The
 * receiver trusts no data: E_FORMAT reports anything but a valid message. No descriptor is left open then, and the socket should
 * be closed. Returns E_IO if the socket failed, ended or timed out, and E_INVALID for another kind of socket. */
STRATA_API strata_status_t strata_share_send(int socket, const strata_shared_t *shared);
STRATA_API strata_status_t strata_share_receive(int socket, strata_shared_t *shared);

/* Fetches descriptors without a socket between both. `shared` may arrive by any means (a queue, a file, a pickle). Its sender is
 * a process of the same user that exported it, and has not closed it yet. `process` is that process's id. Each descriptor is a
 * new one here, which must be closed. The system provides it (pidfd_getfd of Linux 5.6) if the other process lets this one
 * inspect it as a debugger may.
 *
 * Returns E_FORMAT if the contents are invalid. Returns E_IO if the process has ended, has closed it, or does not allow access.
 * Nothing is open then. */
STRATA_API strata_status_t strata_share_fetch(uint64_t process, strata_shared_t *shared);

/* ---- using memory of another process ---- */

typedef struct strata_imported {
    void *ptr; /* of the block, for work on the place's device and its enabled peers */
    size_t size;
    uint64_t id; /* for strata_import_end() */
} strata_imported_t;

/* Maps the block in a gpu place. A copy of its lease stays open until its last import here has ended. A segment is imported once,
 * however many blocks have bytes in it, and stays until the last of them has ended. So the addresses in use are at most the sizes
 * of the blocks and one more segment each. The memory does not count as reserved, because it is the other process's. The
 * descriptors may be closed after the return. strata_close() returns E_BUSY while an import is live, unless it is forced.
 *
 * Returns E_FORMAT if the contents or the lease are invalid. Returns E_DEVICE if this device cannot map a descriptor, or if no
 * descriptor is left. Returns E_UNSUPPORTED if the place is not of a GPU, or the device imports nothing. Returns E_NO_MEMORY if
 * no addresses are left, E_HOST_MEMORY, and E_LIMIT above 2^20 imports. */
STRATA_API strata_status_t strata_import(strata_t facade, strata_place_t place, const strata_shared_t *shared,
                                         strata_imported_t *imported);
/* Ends the program's use. At the last import of a block the host waits for the device, and then closes the lease, which notifies
 * the owner. At the last one of its segments they are unmapped. Returns E_STALE if there is no such import. Returns E_CAPTURE,
 * and nothing happens, if a stream is being captured, because nothing can be waited for then. */
STRATA_API strata_status_t strata_import_end(strata_t facade, uint64_t id);

/* ---- registering memory with hardware ---- */

typedef struct strata_registration {
    void *ptr; /* of the block */
    size_t size;
    void *base; /* of the first handle of the block */
    size_t base_size; /* of all handles of the block, which follow one another */
    uint32_t handles; /* their number. NCCL and RDMA need 1; `registrable: true` of vmm ensures it */
    uint32_t place;
} strata_registration_t;

/* Keeps the handles of a block in place, with their memory, until they are unregistered. Call it before ncclCommRegister(),
 * ibv_reg_mr() and the like. Registrations are counted. Returns E_STALE, and E_UNSUPPORTED as strata_export(). */
STRATA_API strata_status_t strata_register(strata_t facade, strata_ref_t ref, strata_registration_t *registration);
/* Ends one registration. The block may have been freed. Returns E_UNKNOWN_POINTER if there is none at that address. */
STRATA_API strata_status_t strata_unregister(strata_t facade, const strata_registration_t *registration);

#ifdef __cplusplus
}
#endif
#endif
