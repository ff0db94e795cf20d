/* An object that has no table of layers. */
int strata_test_nothing(void);

int strata_test_nothing(void) { return 0; }
