#include "tests/chunked/model.h"

#include <stddef.h>

static uint64_t rounded(const model_t *model, uint64_t size) {
    uint64_t unit = model->rules->unit;
    return (size + unit - 1) / unit * unit;
}

static uint32_t lane_of(const model_t *model, uint32_t stream, uint64_t size) {
    return model->rules->lane ? model->rules->lane(stream, size) : 0;
}

static model_block_t *add(model_t *model, model_block_t block) {
    uint32_t at = 0;
    while (at < model->count && model->blocks[at].chunk) at++;
    if (at == model->count) model->count++;
    model->blocks[at] = block;
    return &model->blocks[at];
}

static model_block_t *best(model_t *model, uint32_t lane, uint64_t size) {
    model_block_t *found = NULL;
    for (model_block_t *block = model->blocks; block < model->blocks + model->count; block++) {
        if (!block->chunk || block->live || block->lane != lane || block->size < size) continue;
        if (!found || block->size < found->size || (block->size == found->size && block->at < found->at)) found = block;
    }
    bool takes = found && (!model->rules->takes || model->rules->takes(model, found->size, size));
    return takes ? found : NULL;
}

static const model_block_t *serve(model_t *model, model_block_t *block, uint64_t size) {
    model_block_t rest = *block;
    block->live = true;
    if (block->size == size || (model->rules->cuts && !model->rules->cuts(model, block, size))) return block;
    rest.size -= size;
    block->size = size;
    if (model->rules->high) block->at += rest.size;
    else rest.at += size;
    (void)add(model, rest);
    return block;
}

const model_block_t *model_allocate(model_t *model, uint32_t stream, uint64_t size, uint64_t *chunk) {
    size = rounded(model, size);
    model_block_t *block = best(model, lane_of(model, stream, size), size);
    *chunk = block ? 0 : model->rules->chunk(model, size);
    return block ? serve(model, block, size) : NULL;
}

const model_block_t *model_grow(model_t *model, uint32_t stream, uint64_t size, uint64_t at, uint64_t chunk) {
    size = rounded(model, size);
    uint64_t base = model->rules->high ? at + size - chunk : at;
    model_block_t fresh = {.at = base, .size = chunk, .chunk = ++model->chunks, .lane = lane_of(model, stream, size)};
    return serve(model, add(model, fresh), size);
}

void model_free(model_t *model, uint64_t at) {
    model_block_t *block = model->blocks;
    while (!block->chunk || !block->live || block->at != at) block++;
    block->live = false;
    for (model_block_t *other = model->blocks; other < model->blocks + model->count; other++) {
        if (other == block || other->chunk != block->chunk || other->live) continue;
        if (other->at + other->size != block->at && block->at + block->size != other->at) continue;
        if (other->at < block->at) block->at = other->at;
        block->size += other->size;
        other->chunk = 0;
    }
}

static bool is_whole(const model_t *model, const model_block_t *block) {
    uint32_t parts = 0;
    for (uint32_t i = 0; i < model->count; i++) parts += model->blocks[i].chunk == block->chunk;
    return parts == 1;
}

uint64_t model_release(model_t *model) {
    uint64_t released = 0;
    for (model_block_t *block = model->blocks; block < model->blocks + model->count; block++) {
        if (!block->chunk || block->live || !is_whole(model, block)) continue;
        released += block->size;
        block->chunk = 0;
    }
    return released;
}

uint64_t model_reserved(const model_t *model) {
    uint64_t reserved = 0;
    for (uint32_t i = 0; i < model->count; i++) reserved += model->blocks[i].chunk ? model->blocks[i].size : 0;
    return reserved;
}
