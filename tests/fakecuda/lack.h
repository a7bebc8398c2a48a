/* SPDX-License-Identifier: MIT */
#ifndef FAKECUDA_LACK_H
#define FAKECUDA_LACK_H

/*
 * A client wants something that this driver does not have: writes a line into the file
 * FAKECUDA_LACKS, or to stderr.
 */
void fk_lack(const char *what, const char *name);

#endif
