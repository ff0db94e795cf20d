/* The rig of the conformance checks, for tests. */
#ifndef STRATA_TESTS_FACADE_FIXTURE_H
#define STRATA_TESTS_FACADE_FIXTURE_H

#include "conform/rig.h"
#include "tests/harness/test.h"

#endif
