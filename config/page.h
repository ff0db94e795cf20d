/* The parts of docs/strategy.md. Each part is written in the file that implements the described facts. */
#ifndef STRATA_CONFIG_PAGE_H
#define STRATA_CONFIG_PAGE_H

#include <stdio.h>

void strata_page_keys(FILE *out); /* reader.c */
void strata_page_layers(FILE *out); /* reader_stack.c */
void strata_page_reclaim(FILE *out); /* reader_beside.c */
void strata_page_idle(FILE *out); /* reader_beside.c */
void strata_page_branches(FILE *out); /* reader_branches.c */
void strata_page_devices(FILE *out); /* reader_devices.c */
void strata_page_named(FILE *out); /* reader_named.c */
void strata_page_kinds(FILE *out); /* words.c */
void strata_page_paths(FILE *out); /* load.c */
void strata_page_limits(FILE *out); /* tree.c */

#endif
