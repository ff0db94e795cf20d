/* Sentences that contain facts. */
#include <string.h>

#include "facade/figures/amounts.h"
#include "facade/report/facts.h"

enum { MAX_SIZES = 8 };

typedef enum fact_kind { FACT_SIZE, FACT_COUNT, FACT_TEXT } fact_kind_t;
typedef struct fact {
    const char *name;
    fact_kind_t kind;
    size_t offset;
} fact_t;

static const fact_t known[] = {
#define FACT(name) {#name, FACT_SIZE, offsetof(strata_facts_t, name)},
    STRATA_FACT_SIZES(FACT)
#undef FACT
#define FACT(name) {#name, FACT_COUNT, offsetof(strata_facts_t, name)},
        STRATA_FACT_COUNTS(FACT)
#undef FACT
#define FACT(name) {#name, FACT_TEXT, offsetof(strata_facts_t, name)},
            STRATA_FACT_TEXTS(FACT)
#undef FACT
                {"reason", FACT_TEXT, offsetof(strata_facts_t, reason)},
};

static const fact_t *find(const char *name, size_t length) {
    for (size_t i = 0; i < sizeof known / sizeof *known; i++)
        if (strlen(known[i].name) == length && memcmp(known[i].name, name, length) == 0) return &known[i];
    return NULL;
}

static uint64_t number_of(const strata_facts_t *facts, const fact_t *fact) {
    uint64_t number;
    memcpy(&number, (const char *)facts + fact->offset, sizeof number);
    return number;
}

/* Returns the next fact that a sentence names, if all its braces close, or NULL. Moves *at past it. */
static const fact_t *next_fact(const char **at, size_t *before) {
    *before = strcspn(*at, "{");
    const char *open = *at + *before;
    if (!*open) return NULL;
    size_t length = strcspn(open + 1, "}");
    *at = open + length + 2;
    return find(open + 1, length);
}

static unsigned unit_of(const strata_facts_t *facts, const char *sentence) {
    uint64_t sizes[MAX_SIZES];
    size_t count = 0, before;
    const fact_t *fact;
    for (const char *at = sentence; (fact = next_fact(&at, &before)) != NULL;)
        if (fact->kind == FACT_SIZE && count < MAX_SIZES) sizes[count++] = number_of(facts, fact);
    return strata_amounts_unit(sizes, count);
}

static void write_fact(const strata_facts_t *facts, strata_text_t *text, const fact_t *fact, unsigned unit) {
    char amount[48];
    if (fact->kind == FACT_SIZE) strata_amount_print(number_of(facts, fact), unit, amount, sizeof amount);
    if (fact->kind == FACT_SIZE) strata_text_append(text, "%s", amount);
    else if (fact->kind == FACT_COUNT) strata_text_append(text, "%llu", (unsigned long long)number_of(facts, fact));
    else strata_text_append(text, "%s", (const char *)facts + fact->offset);
}

/* A plural after a count of one loses its last letter. */
static void write_words(strata_text_t *text, const char *words, size_t length, bool of_one) {
    size_t noun = of_one && *words == ' ' ? 1 + strspn(words + 1, "abcdefghijklmnopqrstuvwxyz") : 0;
    if (noun > 1 && words[noun - 1] == 's') {
        strata_text_append(text, "%.*s", (int)(noun - 1), words);
        words += noun;
        length -= noun;
    }
    strata_text_append(text, "%.*s", (int)length, words);
}

void strata_facts_write(const strata_facts_t *facts, strata_text_t *text, const char *sentence) {
    unsigned unit = unit_of(facts, sentence);
    const fact_t *fact;
    bool of_one = false;
    size_t before;
    for (const char *at = sentence, *from = at;; from = at) {
        fact = next_fact(&at, &before);
        write_words(text, from, before, of_one);
        if (!fact) return;
        write_fact(facts, text, fact, unit);
        of_one = fact->kind == FACT_COUNT && number_of(facts, fact) == 1;
    }
}
